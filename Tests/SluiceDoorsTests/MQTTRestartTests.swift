import SluiceAccess
import SluiceBroker
import SluiceDoors
import SluiceIO
import SluiceMQTT
import SluiceStore
import SluiceWire
import TestSupport
import Testing

/// MQTT sessions across restarts of brokers.
@Suite struct MQTTRestartTests {
  private let door: DoorWorld

  init() throws {
    door = try DoorWorld([.mqtt], store: MemoryStore())
  }

  private func messages(_ client: MQTTClient) -> [String] { client.take().filter { $0.hasPrefix("publish") } }

  private func session(_ id: String = "c", receiveMaximum: UInt32? = nil) -> MQTTClient {
    MQTTClient.connected(door, id, clean: false, expiry: 3600, receiveMaximum: receiveMaximum)
  }

  @Test(arguments: [MQTTQoS.atLeastOnce, .exactlyOnce], [false, true])
  func aSessionGoesOnWithTheNextBroker(qos: MQTTQoS, orderly: Bool) throws {
    let client = session()
    client.subscribe("t/+", qos)
    let publisher = MQTTClient.connected(door, "p")
    publisher.publish("t/a", "1", qos, 1)
    for _ in 0..<3 { for client in [publisher, client] { client.settle() } }
    #expect(messages(client) == ["publish t/a \"1\" \(qos.rawValue)"])
    client.settle(.seconds(2))
    try door.restart(orderly: orderly)
    let other = MQTTClient.connected(door, "p")
    other.publish("t/a", "2", qos, 2)
    other.publish("t/new", "3", qos, 3)
    for _ in 0..<3 { other.settle() }
    let again = session()
    again.settle()
    #expect(
      again.take().filter { !$0.hasPrefix("pubrel") }.sorted() == ["connack 0 present"]
        + ["a \"2\"", "new \"3\""].map {
          "publish t/\($0) \(qos.rawValue)"
        })
    again.settle()
    // The next broker knows the messages that were acknowledged to this one.
    again.settle(.seconds(2))
    try door.restart(orderly: orderly)
    #expect(session().take() == ["connack 0 present"])
  }

  @Test func whatWasUnderWayComesAgainUnderItsIdentifier() throws {
    let client = session(receiveMaximum: 3)
    client.subscribe("t", .exactlyOnce)
    client.acknowledges = false
    let publisher = MQTTClient.connected(door, "p")
    for number in 1...3 { publisher.publish("t", "\(number)", .exactlyOnce, UInt16(number)) }
    for _ in 0..<3 { for client in [publisher, client] { client.settle() } }
    #expect(messages(client).count == 3)
    // The client acknowledges only the second message, with PUBREC. The others are sent again.
    client.send(.acknowledgement(MQTTAcknowledgement(.pubrec, 2)))
    client.settle()
    #expect(client.take() == ["pubrel 2"])
    try door.restart()
    let again = session()
    again.settle()
    let lines = again.take()
    #expect(
      lines.filter { !$0.hasPrefix("pubrel") }
        == ["connack 0 present"] + [1, 3].map { "publish t \"\($0)\" 2 again" })
    #expect(lines.first { $0.hasPrefix("pubrel") } == "pubrel 2")
  }

  @Test func aMessageThatComesAgainToTheNextBrokerIsInTheLogOnce() throws {
    let client = session()
    client.acknowledges = false
    for number in 1...3 { client.publish("t", "\(number)", .exactlyOnce, UInt16(number)) }
    client.settle()
    #expect(client.take().dropFirst().sorted() == (1...3).map { "pubrec \($0)" })
    try door.restart()
    let again = session()
    for number in 1...4 {
      again.publish("t", "\(number)", .exactlyOnce, UInt16(number), isDuplicate: number < 4)
    }
    for _ in 0..<3 { again.settle() }
    #expect(again.take().filter { $0.hasPrefix("pubcomp") }.count == 4)
    #expect(try NativeClient(door).show("t").summary.nextOffset == 4)
  }

  @Test func aSessionThatWasEndedIsGone() throws {
    let client = session()
    client.subscribe("t", .atLeastOnce)
    client.disconnect()
    _ = MQTTClient.connected(door, "c", clean: true)
    let short = MQTTClient.connected(door, "d", clean: false, expiry: 10)
    short.subscribe("t", .atLeastOnce)
    short.settle()
    try door.restart()
    door.settle(.seconds(11))
    #expect(session("c").take() == ["connack 0"])
    #expect(session("d").take() == ["connack 0"])
  }

  @Test(arguments: [false, true]) func aWillComesWithTheNextBroker(orderly: Bool) throws {
    let watcher = session("w")
    watcher.subscribe("gone/+", .atLeastOnce)
    watcher.settle()
    let will = MQTTConnect.Will(topic: "gone/c", payload: Array("dead".utf8), qos: .atLeastOnce)
    _ = MQTTClient.connected(door, "c", will: will)
    try door.restart(orderly: orderly)
    let again = session("w")
    again.settle()
    #expect(messages(again) == ["publish gone/c \"dead\" 1"])
    again.settle(.seconds(2))
    try door.restart(orderly: orderly)
    let third = session("w")
    third.settle(.seconds(2))
    #expect(messages(third) == [])
  }

  @Test func theTopicOfSessionsStaysShort() throws {
    let client = session()
    client.subscribe("t", .exactlyOnce)
    let publisher = session("p")
    for number in 1...2000 {
      publisher.publish("t", "\(number)", .exactlyOnce, UInt16(number))
      publisher.settle(.milliseconds(10))
      client.settle(.milliseconds(10))
    }
    let topic = try NativeClient(door).show("mqtt.sessions").summary
    #expect(topic.nextOffset > 4000)
    #expect(topic.nextOffset - topic.firstOffset < 2000)
    try door.restart()
    #expect(session().take().first == "connack 0 present")
    #expect(session("p").take().first == "connack 0 present")
  }

  /// The broker's own connection for sessions ends, as any may. The state of this process is newer than an earlier process's records.
  @Test func aSessionIsTheNewestOneAfterItsJournalHasConnectedAgain() throws {
    let client = session()
    client.subscribe("old", .atLeastOnce)
    client.disconnect()
    client.settle(.seconds(1))
    try door.restart()
    let changed = session()
    changed.subscribe("new", .atLeastOnce)
    changed.send(.unsubscribe(MQTTUnsubscribe(2, ["old"])))
    changed.settle()
    changed.disconnect()
    changed.settle(.seconds(1))
    let operations = try NativeClient(door)
    for number in 1...20 as ClosedRange<UInt64> {
      operations.send(ConnectionClose(connection: number), stream: UInt32(number))
    }
    operations.settle(.seconds(5))
    let publisher = MQTTClient.connected(door, "p")
    publisher.publish("old", "1", .atLeastOnce, 1)
    publisher.publish("new", "2", .atLeastOnce, 2)
    publisher.settle()
    let again = session()
    again.settle()
    #expect(again.take() == ["connack 0 present", "publish new \"2\" 1"])
    again.disconnect()
    again.settle(.seconds(1))
    // The session still outlives the process.
    try door.restart()
    let last = session()
    last.settle()
    #expect(last.take() == ["connack 0 present"])
  }

  /// A will whose delay isn't over when the broker ends: it waits on, and the client may come back.
  @Test(arguments: [false, true], [false, true])
  func aWillWaitsForItsClientOverTheEndOfTheBroker(isBack: Bool, orderly: Bool) throws {
    let watcher = session("w")
    watcher.subscribe("gone/+", .atLeastOnce)
    watcher.settle()
    var will = MQTTConnect.Will(topic: "gone/c", payload: Array("dead".utf8), qos: .atLeastOnce)
    will.properties.append(.willDelay, 100)
    let client = MQTTClient.connected(door, "c", clean: false, expiry: 3600, will: will)
    client.bytes.abort()
    watcher.settle()
    try door.restart(orderly: orderly)
    if isBack { #expect(session("c").take() == ["connack 0 present"]) }
    let again = session("w")
    again.settle(.seconds(60))
    #expect(messages(again) == [])
    again.settle(.seconds(60))
    #expect(messages(again) == (isBack ? [] : ["publish gone/c \"dead\" 1"]))
  }

  /// A session that ends with its connection isn't written.
  @Test func aClientWithoutAKeptSessionWritesNothing() throws {
    session("kept").disconnect()
    door.settle(.seconds(1))
    let before = try NativeClient(door).show("mqtt.sessions").summary.nextOffset
    for (id, qos) in [("a", MQTTQoS.atLeastOnce), ("b", .exactlyOnce), ("a", .exactlyOnce)] {
      let client = MQTTClient.connected(door, id)
      client.subscribe("t", qos)
      client.publish("t", "x", qos, 1)
      for _ in 0..<3 { client.settle() }
      #expect(messages(client) == ["publish t \"x\" \(qos.rawValue)"])
    }
    #expect(try NativeClient(door).show("mqtt.sessions").summary.nextOffset == before)
    // An existing session ends.
    MQTTClient.connected(door, "kept").disconnect()
    door.settle(.seconds(1))
    #expect(try NativeClient(door).show("mqtt.sessions").summary.nextOffset > before)
    try door.restart()
    #expect(session("kept").take() == ["connack 0"])
  }

  /// An operator has deleted the topic: the sessions are written again.
  @Test func sessionsOutliveTheirTopic() throws {
    for id in ["a", "b"] {
      let client = session(id)
      client.subscribe("t", .atLeastOnce)
      client.disconnect()
    }
    let held = session("held")
    held.subscribe("t", .atLeastOnce)
    held.settle(.seconds(1))
    let native = try NativeClient(door)
    native.send(TopicDelete(topic: "mqtt.sessions"), stream: 9)
    native.settle(.seconds(5))
    held.subscribe("u", .atLeastOnce, 2)
    held.settle(.seconds(1))
    #expect(held.take().last == "suback 2 [1]")
    for _ in 0..<2 {
      try door.restart()
      let publisher = MQTTClient.connected(door, "p")
      for (number, topic) in ["t", "u"].enumerated() {
        publisher.publish(topic, topic, .atLeastOnce, UInt16(number + 1))
      }
      publisher.settle()
      for (id, topics) in [("a", ["t"]), ("b", ["t"]), ("held", ["t", "u"])] {
        let client = session(id)
        client.settle(.seconds(1))
        #expect(client.take() == ["connack 0 present"] + topics.map { "publish \($0) \"\($0)\" 1" })
        client.settle(.seconds(1))
      }
    }
  }

  @Test func wildcardsDoNotSelectTheTopicsOfTheDoors() throws {
    let client = session()
    client.subscribe("#", .exactlyOnce)
    client.publish("a", "x", .exactlyOnce, 1, retained: true)
    for _ in 0..<5 { client.settle(.seconds(1)) }
    #expect(messages(client) == ["publish a \"x\" 2"])
    // Without a message there is no record: otherwise each record would cause another one.
    let before = try NativeClient(door).show("mqtt.sessions").summary.nextOffset
    client.settle(.seconds(10))
    #expect(try NativeClient(door).show("mqtt.sessions").summary.nextOffset == before)
  }

  /// Clients and brokers are lost at any moment. No message is lost, and none is duplicated at QoS 2.
  @Test(arguments: 1...12 as ClosedRange<UInt64>)
  func nothingIsLostAndNothingComesTwice(seed: UInt64) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    let qos = seed % 2 == 0 ? MQTTQoS.exactlyOnce : .atLeastOnce
    var subscriber = PersistentClient(door, "s", qos)
    var publisher = PersistentClient(door, "p", qos)
    subscriber.client.subscribe("t/#", qos)
    for _ in 0..<60 {
      for _ in 0..<Int.random(in: 0..<6, using: &random) { publisher.publishNext() }
      door.settle(.microseconds(.random(in: 0..<3000, using: &random)))
      switch random.next() % 8 {
      case 0: publisher.reconnect()
      case 1: subscriber.reconnect()
      case 2:
        try door.restart(orderly: random.next() % 4 == 0)
        publisher.reconnect()
        subscriber.reconnect()
      default: break
      }
      publisher.run()
      subscriber.run()
    }
    for _ in 0..<50 {
      publisher.run(.milliseconds(100))
      subscriber.run(.milliseconds(100))
    }
    #expect(publisher.isIdle)
    let texts = subscriber.received
    #expect(Set(texts) == Set((0..<publisher.published).map { "m\($0)" }))
    if qos == .exactlyOnce { #expect(texts.count == publisher.published) }
  }
}
