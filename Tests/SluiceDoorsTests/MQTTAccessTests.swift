import SluiceAccess
import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceMQTT
import SluiceStore
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

/// Sessions and wills of MQTT where clients authenticate.
@Suite struct MQTTAccessTests {
  private let door: DoorWorld

  init() throws {
    var policy = AccessPolicy()
    for (name, pattern) in [("alice", "a.>"), ("bob", "b.>")] {
      policy.users[name] = PasswordHash(of: "secret of \(name)", cost: .init(logN: 4, r: 1, p: 1))
      policy.permissions[name] = Permissions([Permissions.Rule(.all, on: try TopicPattern(pattern))])
    }
    door = try DoorWorld([.mqtt], store: MemoryStore(), access: policy)
  }

  private func session(_ user: String, _ id: String = "c", will: MQTTConnect.Will? = nil) -> MQTTClient {
    MQTTClient.connected(
      door, id, clean: false, expiry: 3600, will: will, user: (user, "secret of \(user)"))
  }

  @Test func sessionsOutliveTheBrokerThoughNoClientMayReadThem() throws {
    let alice = session("alice")
    alice.subscribe("a/b", .atLeastOnce)
    let reader = session("alice", "r")
    reader.subscribe("mqtt/+", .atMostOnce) { $0.append(user: "sluice-from", "earliest") }
    alice.publish("a/b", "1", .atLeastOnce, 1)
    alice.settle()
    alice.settle(.seconds(1))
    reader.settle()
    #expect(reader.take() == ["connack 0", "suback 1 [0]"])
    try door.restart()
    // The session is the identity's.
    #expect(session("bob").take() == ["connack 0"])
    let again = session("alice")
    #expect(again.take() == ["connack 0 present"])
    again.publish("a/b", "2", .atLeastOnce, 2)
    again.settle()
    #expect(again.take().contains("publish a/b \"2\" 1"))
  }

  @Test func aWillOfTheLastBrokerHasThePermissionsOfItsClient() throws {
    func will(_ topic: String) -> MQTTConnect.Will {
      MQTTConnect.Will(topic: topic, payload: Array("dead".utf8), qos: .atLeastOnce)
    }
    let watcher = session("alice", "w")
    watcher.subscribe("a/+", .atLeastOnce)
    _ = session("alice", "x", will: will("a/alice"))
    _ = session("bob", "x", will: will("a/bob"))
    watcher.settle()
    try door.restart()
    let again = session("alice", "w")
    again.settle(.seconds(1))
    #expect(again.take().filter { $0.hasPrefix("publish") } == ["publish a/alice \"dead\" 1"])
  }

  /// What a client of the network says about itself needs proof, though the broker's own parts need none.
  @Test func aClientCannotVouchForItself() throws {
    let bytes = door.connect(0)
    bytes.send(
      Hello(
        maximumFrame: 1 << 20, keepalive: 0, name: "x",
        credentials: .node(onBehalfOf: "mqtt-sessions", carrying: "=\n15 >")
      ).encoded(stream: 0))
    door.settle()
    var decoder = FrameDecoder(maximumFrame: 1 << 20, openingAt: .client)
    var answers: [FrameType] = []
    _ = try bytes.take().withUnsafeBytes { chunk in
      try decoder.decode(chunk) { header, _ in
        answers.append(header.type)
        return true
      }
    }
    #expect(answers == [.error])
  }
}
