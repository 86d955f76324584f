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

/// MQTT sessions and wills when clients authenticate.
@Suite struct MQTTAccessTests {
  private let door: DoorWorld
  private let policy: AccessPolicy

  init() throws {
    var policy = AccessPolicy()
    for (name, pattern) in [("alice", "a.>"), ("bob", "b.>")] {
      policy.users[name] = PasswordHash(of: "secret of \(name)", cost: .init(logN: 4, r: 1, p: 1))
      policy.permissions[name] = Permissions([Permissions.Rule(.all, on: try TopicPattern(pattern))])
    }
    self.policy = policy
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
    #expect(reader.take() == ["connack 0", "suback 1 [135]"])
    try door.restart()
    // The session belongs to the identity.
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

  /// Alice has permission to read `a.>`, and to read `$private.x` and `_inbox.x` only by their full names.
  @Test(
    arguments: [
      ("a/b", true), ("a/+", true), ("a/#", true), ("+/b", true), ("+/+/c", true), ("#", true),
      ("$share/g/a/+", true), ("$share/g/a/b", true),
      // `a.>` includes topics below `a`, but not `a` itself. A filter that matches both may be read in part.
      ("a", false), ("+", false), ("b", false), ("b/#", false), ("b/+", false), ("b/a/c", false),
      ("$share/g/b/+", false), ("$share/g/b/c", false),
    ])
  func aFilterIsGrantedWhereATopicOfItMayBeRead(filter: String, isGranted: Bool) throws {
    for version in MQTTVersion.allCases {
      let alice = MQTTClient.connected(door, "", version, user: ("alice", "secret of alice"))
      alice.subscribe(filter, .atLeastOnce)
      alice.settle()
      let refused = version == .v5 ? MQTTReason.notAuthorized : .unspecified
      #expect(alice.take() == ["connack 0", "suback 1 [\(isGranted ? 1 : refused.rawValue)]"], "\(filter)")
    }
  }

  @Test func onlyWhatMayBeReadIsDelivered() throws {
    let (alice, bob) = (session("alice", "all"), session("bob", "p"))
    for (number, filter) in ["#", "+/x", "b/x"].enumerated() {
      alice.subscribe(filter, .atLeastOnce, UInt16(number + 1))
    }
    #expect(alice.take() == ["connack 0", "suback 1 [1]", "suback 2 [1]", "suback 3 [135]"])
    bob.publish("b/x", "secret", .atLeastOnce, 1)
    alice.publish("a/x", "own", .atLeastOnce, 1)
    bob.settle()
    alice.settle(.seconds(1))
    #expect(Set(alice.take()) == ["puback 1", "publish a/x \"own\" 1"])
  }

  /// The topic of retained messages contains those of all topics.
  @Test func retainedMessagesOfTopicsThatMayNotBeReadAreNot() throws {
    var policy = AccessPolicy()
    for (name, pattern) in [("alice", "a.>"), ("bob", "b.>")] {
      policy.users[name] = PasswordHash(of: "secret of \(name)", cost: .init(logN: 4, r: 1, p: 1))
      policy.permissions[name] = Permissions([
        Permissions.Rule(.all, on: try TopicPattern(pattern)),
        Permissions.Rule([.subscribe, .publish, .create], on: try TopicPattern("mqtt.retained")),
      ])
    }
    let door = try DoorWorld([.mqtt], store: MemoryStore(), access: policy)
    func client(_ name: String) -> MQTTClient {
      MQTTClient.connected(door, name, user: (name, "secret of \(name)"))
    }
    let (alice, bob) = (client("alice"), client("bob"))
    bob.publish("b/x", "secret", .atLeastOnce, 1, retained: true)
    alice.publish("a/x", "own", .atLeastOnce, 1, retained: true)
    for client in [bob, alice] { client.settle(.seconds(1)) }
    #expect(alice.take() == ["connack 0", "puback 1"])
    alice.subscribe("#", .atLeastOnce, 2)
    alice.settle(.seconds(1))
    #expect(alice.take() == ["suback 2 [1]", "publish a/x \"own\" 1 retained"])
  }

  /// A client that reconnects subscribes again. Subscriptions whose permission was removed are refused, and get no messages.
  @Test func aSubscriptionWithoutItsPermissionIsRefusedWhenItIsAskedForAgain() throws {
    let alice = session("alice")
    alice.subscribe("a/+", .atLeastOnce)
    alice.subscribe("a/+", .atLeastOnce, 2)
    #expect(alice.take() == ["connack 0", "suback 1 [1]", "suback 2 [1]"])
    var policy = self.policy
    policy.permissions["alice"] = Permissions([Permissions.Rule(.all, on: try TopicPattern("c.>"))])
    door.broker.updateAccess(policy)
    door.settle()
    let again = session("alice")
    #expect(again.take() == ["connack 0 present"])
    again.subscribe("a/+", .atLeastOnce, 3)
    again.subscribe("c/+", .atLeastOnce, 4)
    #expect(again.take() == ["suback 3 [135]", "suback 4 [1]"])
    policy.permissions["alice"] = Permissions([Permissions.Rule(.all, on: try TopicPattern(">"))])
    door.broker.updateAccess(policy)
    again.publish("a/b", "1", .atLeastOnce, 1)
    again.settle(.seconds(1))
    #expect(again.take() == ["puback 1"])
  }

  /// A network client's statements about itself need proof, though those of the broker's own parts need none.
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
