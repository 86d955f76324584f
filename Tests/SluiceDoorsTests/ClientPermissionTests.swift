import SluiceAccess
import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceMQTT
import SluiceTLS
import SluiceWebSocket
import SluiceWire
import TestSupport
import Testing

/// Permissions that depend on the client's identifier, and those of anonymous clients, by every gateway.
@Suite struct ClientPermissionTests {
  private let door: DoorWorld

  init() throws {
    var policy = AccessPolicy()
    policy.users["home"] = PasswordHash(of: "pass", cost: Scrypt.Cost(logN: 4, r: 1, p: 1))
    policy.permissions["home"] = Permissions([
      Permissions.Rule([.publish, .create, .subscribe], on: try TopicPattern("devices.%u.%c.>"))
    ])
    policy.permissions["guest"] = Permissions([
      Permissions.Rule([.publish, .create, .subscribe], on: try TopicPattern("guests.%c"))
    ])
    policy.anonymous = "guest"
    door = try DoorWorld([.mqtt, .http, .webSocket], access: policy)
  }

  /// Whether a client of that name may publish to the topic by MQTT.
  private func mqtt(_ name: String, _ user: (String, String)?, _ topic: String) -> Bool {
    let client = MQTTClient.connected(door, name, user: user)
    client.settle(.seconds(1))
    client.publish(topic, "x", .atLeastOnce, 1)
    client.settle()
    return client.take().last == "puback 1"
  }

  private func http(_ name: String, _ user: (String, String)?, _ topic: String) -> Int {
    let client = door.connect(2)
    var head = "POST /topics/\(topic) HTTP/1.1\r\nHost: b\r\nUser-Agent: \(name)\r\nContent-Length: 1\r\n"
    if let user {
      head += "Authorization: Basic \(Base64Text.standard.encode(Array("\(user.0):\(user.1)".utf8)))\r\n"
    }
    client.send(head + "\r\nx")
    door.settle(.seconds(1))
    return Int(client.text.dropFirst(9).prefix(3)) ?? 0
  }

  private func native(_ name: String, _ user: (String, String)?, _ topic: String) throws -> Bool {
    let client = try NativeClient(
      door, name: name, credentials: user.map { .password($0.1, user: $0.0) } ?? .none)
    client.settle(.seconds(1))
    client.send(PublishOpen(topic: topic, acknowledgement: .none), stream: 1)
    client.settle()
    return client.frames.last?.header.type == .publishOpened
  }

  private func webSocket(_ name: String, _ user: (String, String)?, _ topic: String) throws -> Bool {
    let client = door.connect(3)
    client.send(WebSocketRequest(host: "broker", path: "/", subprotocols: ["sluice.1"]).bytes)
    door.settle()
    _ = client.take()
    let hello = Hello(
      maximumFrame: 1 << 20, keepalive: 0, name: name,
      credentials: user.map { .password($0.1, user: $0.0) } ?? .none)
    let open = PublishOpen(topic: topic, acknowledgement: .none)
    for frame in [hello.encoded(stream: 0), open.encoded(stream: 1)] {
      var message: [UInt8] = []
      frame.withUnsafeBytes {
        WebSocketEncoder.append(.binary, $0, isFinal: true, mask: WebSocketMask((1, 2, 3, 4)), to: &message)
      }
      client.send(message)
      door.settle(.seconds(1))
    }
    var types: [FrameType] = []
    var decoder = WebSocketDecoder(
      .client, limits: WebSocketDecoder.Limits(frame: .max >> 1, message: .max >> 1))
    var frames = FrameDecoder(maximumFrame: 1 << 24, openingAt: .client)
    var chunk = client.take()
    try chunk.withUnsafeMutableBytes { chunk in
      try decoder.decode(chunk) { event in
        guard case .part(_, let part, _, _, _) = event else { return }
        _ = try? frames.decode(UnsafeRawBufferPointer(part)) { header, _ in
          types.append(header.type)
          return true
        }
      }
    }
    return types.contains(.publishOpened)
  }

  @Test func everyDoorHasTheSameMatcher() throws {
    let home = ("home", "pass")
    for (name, topic, isAllowed) in [
      ("lamp", "devices.home.lamp.state", true), ("lamp", "devices.home.fan.state", false),
      ("lamp", "devices.other.lamp.state", false), ("lamp.1", "devices.home.lamp%2E1.state", true),
      ("*", "devices.home.lamp.state", false), ("*", "devices.home.%2A.state", true),
      (">", "devices.home.lamp.state", false), ("%c", "devices.home.%c.state", false),
    ] {
      let foreign = MQTTTopicName.name(ofBroker: topic)
      let inURL = topic.replacing("%", with: "%25")
      #expect(mqtt(name, home, foreign) == isAllowed, "\(name) \(topic)")
      #expect(http(name, home, inURL) == (isAllowed ? 200 : 403), "\(name) \(topic)")
      #expect(try native(name, home, topic) == isAllowed, "\(name) \(topic)")
      #expect(try webSocket(name, home, topic) == isAllowed, "\(name) \(topic)")
    }
  }

  @Test func anonymousClientsHaveTheirOwnPermissionsAtEveryDoor() throws {
    for (topic, isAllowed) in [("guests.g1", true), ("guests.g2", false), ("devices.home.g1.x", false)] {
      #expect(mqtt("g1", nil, MQTTTopicName.name(ofBroker: topic)) == isAllowed)
      #expect(http("g1", nil, topic) == (isAllowed ? 200 : 403))
      #expect(try native("g1", nil, topic) == isAllowed)
      #expect(try webSocket("g1", nil, topic) == isAllowed)
    }
    // Wrong credentials don't make a client anonymous.
    #expect(http("g1", ("home", "nope"), "guests.g1") == 401)
    #expect(MQTTClient.connected(door, "g1", user: ("guest", "")).await("connack 134"))
  }

  /// Client identifiers that look like filters get only their own level, and no access at all if they can't be a level.
  @Test(arguments: ["+", "#", "a/b", "$SYS", "+/#", "lamp/+"])
  func identifiersThatLookLikeFilters(id: String) throws {
    let client = MQTTClient.connected(door, id, user: ("home", "pass"))
    client.settle(.seconds(1))
    for (number, filter) in ["devices/home/lamp/#", "devices/home/+/state", "devices/+/lamp/x"].enumerated() {
      client.subscribe(filter, .atLeastOnce, UInt16(number + 1))
    }
    let publisher = MQTTClient.connected(door, "lamp", user: ("home", "pass"))
    publisher.settle(.seconds(1))
    publisher.publish("devices/home/lamp/state", "secret", .atLeastOnce, 1)
    publisher.settle()
    #expect(publisher.take().last == "puback 1")
    client.settle(.seconds(1))
    #expect(client.lines.filter { $0.hasPrefix("publish") } == [])
  }

  /// The will of a disconnected client is subject to the client's permissions, whichever part of the broker publishes it.
  @Test(arguments: [("lamp", true), ("fan", false)]) func willsAreTheClients(id: String, isPublished: Bool)
    throws
  {
    let will = MQTTConnect.Will(topic: "devices/home/lamp/gone", payload: [1], qos: .atLeastOnce)
    let victim = MQTTClient.connected(door, id, will: will, user: ("home", "pass"))
    victim.settle(.seconds(1))
    victim.lose()
    door.settle(.seconds(2))
    let probe = MQTTClient.connected(door, "lamp", user: ("home", "pass"))
    probe.settle(.seconds(1))
    probe.subscribe("devices/home/lamp/gone", .atMostOnce) { $0.append(user: "sluice-from", "earliest") }
    probe.settle(.seconds(1))
    #expect(probe.lines.contains { $0.hasPrefix("publish devices/home/lamp/gone") } == isPublished)
  }
}
