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

/// Retained messages across restarts of brokers.
@Suite struct MQTTRetainedTests {
  private let door: DoorWorld

  init() throws {
    door = try DoorWorld([.mqtt], store: MemoryStore())
  }

  private func publisher() -> MQTTClient { MQTTClient.connected(door, "p") }

  /// The retained messages that a new subscriber gets.
  private func retained(_ filter: String = "state/#") -> [String] {
    let client = MQTTClient.connected(door, "", .v5)
    client.subscribe(filter, .atLeastOnce)
    client.settle()
    client.settle()
    return client.take().filter { $0.hasPrefix("publish") }.sorted()
  }

  /// The broker keeps retained messages and sessions through connections of its own, which don't count towards the limit of an address.
  @Test func theBrokersOwnConnectionsDoNotCountForAnAddress() throws {
    let door = try DoorWorld([.mqtt], store: MemoryStore()) { $0.limits.connectionsPerAddress = 2 }
    let publisher = MQTTClient.connected(door, "p")
    publisher.publish("t", "kept", .atLeastOnce, 1, retained: true)
    publisher.settle()
    publisher.settle()
    #expect(publisher.take() == ["connack 0", "puback 1"])
    let subscriber = MQTTClient.connected(door, "s", clean: false, expiry: 60)
    subscriber.subscribe("t", .atLeastOnce)
    subscriber.settle()
    #expect(subscriber.take() == ["connack 0", "suback 1 [1]", "publish t \"kept\" 1 retained"])
    // The limit for clients is reached.
    let third = MQTTClient.connected(door, "third")
    #expect(!third.take().contains("connack 0"))
  }

  /// An acknowledged message is stored, even if the broker stops right after that.
  @Test(arguments: [MQTTQoS.atLeastOnce, .exactlyOnce], [false, true])
  func anAcknowledgedMessageIsThereWithTheNextBroker(qos: MQTTQoS, orderly: Bool) throws {
    let client = publisher()
    client.publish("state/a", "old", qos, 1, retained: true)
    client.publish("state/a", "new", qos, 2, retained: true) { $0.append(user: "unit", "°C") }
    client.publish("state/b", "b", qos, 3, retained: true)
    for _ in 0..<3 { client.settle() }
    let answers = client.take().filter { $0.hasPrefix("pub") && !$0.hasPrefix("pubcomp") }
    #expect(Set(answers) == Set((1...3).map { "\(qos == .exactlyOnce ? "pubrec" : "puback") \($0)" }))
    for _ in 0..<3 {
      try door.restart(orderly: orderly)
      #expect(
        retained() == ["publish state/a \"new\" 1 retained unit=°C", "publish state/b \"b\" 1 retained"])
    }
  }

  /// The client gets the first answer to a message only after the message is stored.
  @Test(arguments: 1...20 as ClosedRange<UInt64>)
  func theAcknowledgementComesBehindTheStore(seed: UInt64) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    let client = publisher()
    var last = ""
    for number in 1...20 {
      client.publish("state/a", "\(number)", .atLeastOnce, UInt16(number), retained: true)
      if random.next() % 3 == 0 { client.settle(.microseconds(.random(in: 0..<5000, using: &random))) }
    }
    client.settle(.microseconds(.random(in: 0..<20_000, using: &random)))
    last = client.take().last { $0.hasPrefix("puback") } ?? "puback 0"
    try door.restart()
    let found = retained().first.flatMap { Int($0.split(separator: "\"")[1]) } ?? 0
    #expect(found >= Int(last.split(separator: " ")[1]) ?? 0, "\(last)")
  }

  @Test func aMessageWithoutAPayloadRemovesIt() throws {
    let client = publisher()
    client.publish("state/a", "a", .atLeastOnce, 1, retained: true)
    client.publish("state/b", "b", .atLeastOnce, 2, retained: true)
    client.settle()
    try door.restart()
    #expect(retained().count == 2)
    let again = publisher()
    again.publish("state/a", "", .atLeastOnce, 1, retained: true)
    again.settle()
    #expect(again.take().contains("puback 1"))
    for _ in 0..<2 {
      try door.restart()
      #expect(retained() == ["publish state/b \"b\" 1 retained"])
    }
  }

  @Test func aMessageExpiresThoughTheBrokerStartsAnew() throws {
    let client = publisher()
    client.publish("state/short", "s", .atLeastOnce, 1, retained: true) { $0.append(.messageExpiry, 100) }
    client.publish("state/long", "l", .atLeastOnce, 2, retained: true) { $0.append(.messageExpiry, 1000) }
    client.settle()
    door.settle(.seconds(40))
    // Twenty seconds pass with each restart.
    try door.restart()
    #expect(retained().count == 2)
    try door.restart()
    try door.restart()
    door.settle(.seconds(20))
    #expect(retained() == ["publish state/long \"l\" 1 retained"])
    try door.restart()
    #expect(retained() == ["publish state/long \"l\" 1 retained"])
  }

  @Test func aWillIsRetainedWithTheNextBroker() throws {
    let will = MQTTConnect.Will(
      topic: "state/c", payload: Array("gone".utf8), qos: .atLeastOnce, isRetained: true)
    let client = MQTTClient.connected(door, "c", will: will)
    client.publish("state/c", "here", .atLeastOnce, 1, retained: true)
    client.settle()
    // The will of a client that was connected is newer than the stored message.
    try door.restart()
    door.settle(.seconds(1))
    #expect(retained() == ["publish state/c \"gone\" 1 retained"])
    try door.restart()
    #expect(retained() == ["publish state/c \"gone\" 1 retained"])
  }

  @Test func theTopicHasTheNewestMessagesOnly() throws {
    let client = publisher()
    client.publish("state/first", "1", .atLeastOnce, 60_000, retained: true)
    for number in 1...3000 {
      client.publish("state/\(number % 5)", "\(number)", .atLeastOnce, UInt16(number), retained: true)
      client.settle(.milliseconds(5))
    }
    client.settle()
    for _ in 0..<2 {
      let topic = try NativeClient(door).show("mqtt.retained").summary
      #expect(topic.nextOffset == 3001)
      #expect(topic.records == 6)
      let messages = retained()
      let newest = (0..<5).map { "publish state/\($0) \"\($0 == 0 ? 3000 : 2995 + $0)\" 1 retained" }
      #expect(messages == newest + ["publish state/first \"1\" 1 retained"])
      try door.restart()
    }
  }

  @Test func manyMessagesComeBack() throws {
    let client = publisher()
    for number in 0..<3000 {
      client.publish("state/\(number)", "\(number)", .atLeastOnce, UInt16(number + 1), retained: true)
      if number % 100 == 99 { client.settle() }
    }
    for _ in 0..<5 { client.settle() }
    try door.restart()
    let other = publisher()
    // A client that connects at once finds all of them, and its changes stay.
    other.publish("state/7", "other", .atLeastOnce, 1, retained: true)
    other.settle()
    let reader = MQTTClient.connected(door, "r")
    reader.subscribe("state/+")
    for _ in 0..<5 { reader.settle() }
    #expect(reader.take().filter { $0.hasPrefix("publish") }.count == 3000)
    try door.restart()
    #expect(retained("state/7") == ["publish state/7 \"other\" 1 retained"])
  }

  @Test func deletingTheTopicDeletesTheMessages() throws {
    let client = publisher()
    client.publish("state/a", "a", .atLeastOnce, 1, retained: true)
    client.settle()
    let admin = try NativeClient(door)
    admin.send(TopicDelete(topic: "mqtt.retained"), stream: 9)
    admin.settle(.seconds(2))
    client.disconnect()
    let next = publisher()
    next.publish("state/b", "b", .atLeastOnce, 1, retained: true)
    next.settle(.seconds(1))
    #expect(next.take().contains("puback 1"))
    try door.restart()
    #expect(retained() == ["publish state/b \"b\" 1 retained"])
  }
}

/// Retained messages of clients with permissions.
@Suite struct MQTTRetainedAccessTests {
  @Test func aClientThatMayNotRetainIsToldOfItsMessage() throws {
    var policy = AccessPolicy()
    for (name, patterns) in [("alice", ["a.>"]), ("bob", ["a.>", "mqtt.retained"])] {
      policy.users[name] = PasswordHash(of: "secret", cost: .init(logN: 4, r: 1, p: 1))
      policy.permissions[name] = Permissions(
        try patterns.map { Permissions.Rule(.all, on: try TopicPattern($0)) })
    }
    let door = try DoorWorld([.mqtt], store: MemoryStore(), access: policy)
    for _ in 0..<2 {
      let alice = MQTTClient.connected(door, "a", user: ("alice", "secret"))
      alice.publish("a/x", "alice", .atLeastOnce, 1, retained: true)
      alice.settle()
      #expect(alice.take().contains("puback 1"))
      let bob = MQTTClient.connected(door, "b", user: ("bob", "secret"))
      bob.subscribe("a/+")
      bob.settle()
      #expect(!bob.take().contains("publish a/x \"alice\" 0 retained"))
      bob.publish("a/y", "bob", .atLeastOnce, 1, retained: true)
      bob.settle()
      #expect(bob.take().contains("puback 1"))
      try door.restart()
    }
    let bob = MQTTClient.connected(door, "b", user: ("bob", "secret"))
    bob.subscribe("a/+")
    bob.settle()
    #expect(bob.take().contains("publish a/y \"bob\" 0 retained"))
  }
}
