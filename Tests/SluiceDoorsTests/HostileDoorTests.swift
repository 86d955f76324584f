import SluiceBroker
import SluiceIO
import SluiceMQTT
import SluiceTopics
import SluiceWebSocket
import SluiceWire
import TestSupport
import Testing

@testable import SluiceDoors

/// Attacks on the gateways that no honest client makes. Their effect is bounded and reported, and an honest client is still served.
@Suite struct HostileDoorTests {
  /// An MQTT client that publishes to itself and must get each message.
  private final class Honest {
    let client: MQTTClient
    private var count = 0

    init(_ door: DoorWorld) {
      client = MQTTClient.connected(door, "honest", at: 3)
      client.subscribe("honest", .atLeastOnce)
      #expect(client.take() == ["connack 0", "suback 1 [1]"])
    }

    func isServed() -> Bool {
      count += 1
      client.publish("honest", "\(count)", .atLeastOnce, UInt16(count))
      for _ in 0..<3 { client.settle() }
      return Set(client.take()) == ["publish honest \"\(count)\" 1", "puback \(count)"]
    }
  }

  private static func world(
    _ limits: (inout MQTTLimits) -> Void = { _ in },
    _ configure: (inout BrokerConfiguration) -> Void = { _ in }
  ) throws -> DoorWorld {
    var options = DoorOptions()
    limits(&options.mqtt)
    return try DoorWorld([.http, .webSocket, .mqtt], options: options, configure)
  }

  private static func items(_ count: Int, _ prefix: String) -> [MQTTSubscribe.Item] {
    (0..<count).map { MQTTSubscribe.Item("\(prefix)/\($0)", MQTTSubscriptionOptions(.atLeastOnce)) }
  }

  @Test func subscriptionsOfManyClientsAreBoundedTogether() throws {
    let door = try Self.world({ _ in }) { $0.limits.patterns = 2000 }
    let honest = Honest(door)
    let clients = (0..<30).map { MQTTClient.connected(door, "c\($0)", at: 3) }
    for (number, client) in clients.enumerated() {
      client.send(.subscribe(MQTTSubscribe(1, Self.items(100, "\(number)"))))
    }
    door.settle(.seconds(2))
    var granted = 0
    for client in clients {
      client.settle(.milliseconds(1))
      let answer = client.take().last ?? ""
      #expect(answer.hasPrefix("suback 1"))
      granted += answer.split(separator: ",").filter { !$0.contains("151") }.count
    }
    #expect(granted == 2000 - 1)
    #expect(honest.isServed())
    for client in clients { client.bytes.abort() }
    door.settle(.seconds(1))
    let late = MQTTClient.connected(door, "late", at: 3)
    late.subscribe("t", .atLeastOnce)
    #expect(late.take() == ["connack 0", "suback 1 [1]"])
  }

  @Test func thousandsOfLevelsAreRefusedWithAReason() throws {
    let door = try Self.world()
    let honest = Honest(door)
    let client = MQTTClient.connected(door, "c", at: 3)
    _ = client.take()
    for levels in [2000, 30_000] {
      client.publish([String](repeating: "a", count: levels).joined(separator: "/"), "x", .atLeastOnce, 1)
      client.settle()
      #expect(client.take() == ["puback 1 \(MQTTReason.topicNameInvalid.rawValue)"])
      for level in ["a", "+"] {
        client.subscribe([String](repeating: level, count: levels).joined(separator: "/"), .atLeastOnce, 2)
        #expect(client.take() == ["suback 2 [\(MQTTReason.topicFilterInvalid.rawValue)]"])
      }
      #expect(honest.isServed())
    }
    // As many levels as the broker's names can have are accepted.
    let name = [String](repeating: "a", count: 128).joined(separator: "/")
    client.subscribe([String](repeating: "+", count: 128).joined(separator: "/"), .atMostOnce, 3)
    client.publish(name, "deep", .atLeastOnce, 4)
    client.settle()
    #expect(Set(client.take()) == ["suback 3 [0]", "puback 4", "publish \(name) \"deep\" 0"])
  }

  @Test func largeWillsThatWaitAreBounded() throws {
    let door = try Self.world { $0.willBytes = 10 << 20 }
    let honest = Honest(door)
    let watcher = MQTTClient.connected(door, "w", at: 3)
    watcher.subscribe("gone/+", .atMostOnce)
    _ = watcher.take()
    var will = MQTTConnect.Will(topic: "gone/x", payload: [UInt8](repeating: 7, count: 50_000))
    will.properties.append(.willDelay, 1000)
    for round in 0..<10 {
      let clients = (0..<100).map {
        MQTTClient.connected(door, "c\(round)-\($0)", at: 3, clean: false, expiry: 2000, will: will)
      }
      for client in clients { client.bytes.abort() }
      watcher.settle(.milliseconds(500))
    }
    watcher.settle(.seconds(1))
    let early = watcher.take().count
    // Wills that fit wait for their delay; all others are published at once.
    #expect(early == 1000 - (10 << 20) / will.heldBytes)
    let told = door.takeEvents()
    #expect(told.count == early)
    #expect(told.allSatisfy { if case .mqttWillPublishedEarly = $0 { true } else { false } })
    #expect(honest.isServed())
    watcher.settle(.seconds(1100))
    watcher.settle(.seconds(1))
    #expect(watcher.take().count == 1000 - early)
    #expect(door.broker.metrics[.connections] == 2)
  }

  private static let connect = MQTTConnect(.v5, clientID: String(repeating: "c", count: 200))
  private static let upgrade = WebSocketRequest(
    host: "broker", path: "/" + String(repeating: "x", count: 200), subprotocols: ["mqtt"])

  /// A byte per second of a request that would be valid.
  @Test(arguments: [1, 2, 3]) func clientsThatSendAByteASecondAreGivenUp(index: Int) throws {
    let door = try Self.world()
    let honest = Honest(door)
    var bytes: [UInt8] = []
    switch index {
    case 1:
      bytes = Array(
        "GET /topics/t?until=live HTTP/1.1\r\nHost: b\r\nX: \(String(repeating: "x", count: 200))".utf8)
    case 2: bytes = Self.upgrade.bytes
    default: MQTTPacket.connect(Self.connect).encode(into: &bytes, .v5)
    }
    let clients = (0..<50).map { _ in door.connect(index) }
    var seconds = 0
    for byte in bytes where clients.contains(where: { !$0.hasEnded }) {
      for client in clients where !client.hasEnded { client.send([byte]) }
      door.settle(.seconds(1))
      seconds += 1
      if seconds % 10 == 0 { #expect(honest.isServed()) }
    }
    #expect(clients.allSatisfy { $0.hasEnded })
    #expect(seconds <= 70, "they were given up after \(seconds) s")
    #expect(door.broker.metrics[.connections] == 1)
  }

  @Test(arguments: [1, 2]) func giantHeadersAreRefused(index: Int) throws {
    let door = try Self.world()
    let honest = Honest(door)
    let (start, giant) = ("GET / HTTP/1.1\r\nHost: b\r\n", String(repeating: "x", count: 1 << 20))
    let heads = [
      start + "X: " + giant, start + giant + ": x", "GET /" + giant, giant,
      start + (0..<50_000).map { "X\($0): y\r\n" }.joined(),
    ]
    for head in heads {
      let client = door.connect(index)
      client.send(head)
      door.settle(.seconds(2))
      #expect(client.hasEnded, "\(head.prefix(40))")
      #expect(client.text.hasPrefix("HTTP/1.1 4"), "\(head.prefix(40)): \(client.text.prefix(40))")
      #expect(honest.isServed())
    }
    #expect(door.broker.metrics[.connections] == 1)
  }
}
