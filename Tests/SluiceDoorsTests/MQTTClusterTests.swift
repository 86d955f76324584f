import SluiceMQTT
import SluiceWire
import TestSupport
import Testing

/// MQTT clients at the nodes of a cluster.
@Suite struct MQTTClusterTests {
  private func messages(_ client: MQTTClient) -> [String] { client.take().filter { $0.hasPrefix("publish") } }

  private func session(
    _ nodes: DoorNodes, _ id: String = "c", at index: Int, expiry: UInt32 = 3600, clean: Bool = false,
    will: MQTTConnect.Will? = nil
  ) -> MQTTClient {
    let client = MQTTClient.connected(nodes, id, at: index, clean: clean, expiry: expiry, will: will)
    #expect(client.await("connack"))
    return client
  }

  private func run(_ clients: MQTTClient..., for time: Duration = .seconds(1)) {
    for _ in 0..<Int(time / .milliseconds(100)) { for client in clients { client.settle() } }
  }

  @Test(arguments: [MQTTQoS.atLeastOnce, .exactlyOnce])
  func aSessionGoesOnAtAnotherNode(qos: MQTTQoS) throws {
    let nodes = try DoorNodes()
    let client = session(nodes, at: 0)
    client.subscribe("t/+", qos)
    let publisher = session(nodes, "p", at: 1)
    publisher.publish("t/a", "1", qos, 1)
    run(publisher, client)
    #expect(messages(client) == ["publish t/a \"1\" \(qos.rawValue)"])
    client.lose()
    publisher.publish("t/a", "2", qos, 2)
    run(publisher)
    let again = session(nodes, at: 2)
    run(again)
    #expect(again.take().first == "connack 0 present")
    #expect(again.payloads.map { String(decoding: $0, as: UTF8.self) } == ["2"])
  }

  @Test func theSameClientAtAnotherNodeTakesTheConnectionOver() throws {
    let nodes = try DoorNodes()
    let client = session(nodes, at: 0)
    client.acknowledges = false
    client.subscribe("t", .atLeastOnce)
    client.publish("t", "1", .atLeastOnce, 1)
    run(client)
    #expect(client.take().contains("publish t \"1\" 1"))
    let again = session(nodes, at: 1)
    run(client, again)
    #expect(client.take() == ["disconnect 142"])
    #expect(client.bytes.hasEnded)
    #expect(again.take() == ["connack 0 present", "publish t \"1\" 1 again"])
  }

  @Test func aNodeThatDiesLeavesItsSessions() throws {
    let nodes = try DoorNodes()
    let client = session(nodes, at: 0)
    client.acknowledges = false
    client.subscribe("t", .exactlyOnce)
    let publisher = session(nodes, "p", at: 1)
    for number in 1...3 { publisher.publish("t", "\(number)", .exactlyOnce, UInt16(number)) }
    run(publisher, client)
    #expect(messages(client).count == 3)
    client.send(.acknowledgement(MQTTAcknowledgement(.pubrec, 2)))
    run(client)
    nodes.node(0)?.kill()
    let again = session(nodes, at: 1)
    run(again, for: .seconds(3))
    let lines = again.take()
    #expect(
      lines.filter { !$0.hasPrefix("pubrel") }
        == ["connack 0 present"] + [1, 3].map { "publish t \"\($0)\" 2 again" })
    #expect(lines.first { $0.hasPrefix("pubrel") } == "pubrel 2")
  }

  @Test func aNodeThatWakesUpHasLostItsSessions() throws {
    let nodes = try DoorNodes()
    let client = session(nodes, at: 0)
    client.subscribe("t", .exactlyOnce)
    client.settle()
    _ = client.take()
    nodes.node(0)?.pause()
    let again = session(nodes, at: 1)
    #expect(again.take() == ["connack 0 present"])
    nodes.node(0)?.goOn()
    run(client, again, for: .seconds(5))
    #expect(client.bytes.hasEnded)
    #expect(!again.bytes.hasEnded)
    // The node serves clients again.
    #expect(session(nodes, "d", at: 0).take() == ["connack 0"])
  }

  @Test(arguments: [0, 3] as [UInt32])
  func theWillOfAClientWhoseNodeDiedIsPublishedOnce(delay: UInt32) throws {
    let nodes = try DoorNodes()
    let watcher = session(nodes, "w", at: 1)
    watcher.subscribe("gone/+", .atLeastOnce)
    var will = MQTTConnect.Will(topic: "gone/c", payload: Array("dead".utf8), qos: .atLeastOnce)
    if delay > 0 { will.properties.append(.willDelay, delay) }
    _ = session(nodes, at: 0, will: will)
    nodes.node(0)?.kill()
    run(watcher, for: .seconds(20))
    #expect(messages(watcher) == ["publish gone/c \"dead\" 1"])
  }

  @Test func aClientThatIsBackInTimeHasNoWill() throws {
    let nodes = try DoorNodes()
    let watcher = session(nodes, "w", at: 1)
    watcher.subscribe("gone/+", .atLeastOnce)
    var will = MQTTConnect.Will(topic: "gone/c", payload: Array("dead".utf8), qos: .atLeastOnce)
    will.properties.append(.willDelay, 30)
    let client = session(nodes, at: 0, will: will)
    client.lose()
    run(watcher)
    let again = session(nodes, at: 2)
    run(watcher, again, for: .seconds(40))
    #expect(messages(watcher) == [])
    // The will of a client isn't published either if its node dies.
    let third = session(nodes, "d", at: 0, will: will)
    third.settle()
    nodes.node(0)?.kill()
    _ = session(nodes, "d", at: 1)
    run(watcher, for: .seconds(40))
    #expect(messages(watcher) == [])
  }

  @Test func theWillOfAClientThatIsLostIsPublishedOnce() throws {
    let nodes = try DoorNodes()
    let watcher = session(nodes, "w", at: 1)
    watcher.subscribe("gone/+", .atLeastOnce)
    let will = MQTTConnect.Will(topic: "gone/c", payload: Array("dead".utf8), qos: .atLeastOnce)
    let client = session(nodes, at: 0, will: will)
    client.lose()
    run(watcher, for: .seconds(3))
    nodes.node(0)?.kill()
    run(watcher, for: .seconds(20))
    #expect(messages(watcher) == ["publish gone/c \"dead\" 1"])
  }

  @Test func anOrderlyStopHandsSessionsOver() throws {
    let nodes = try DoorNodes()
    let client = session(nodes, at: 0)
    client.subscribe("t", .atLeastOnce)
    run(client)
    nodes.node(0)?.stop()
    run(client, for: .seconds(10))
    #expect(client.bytes.hasEnded)
    let again = session(nodes, at: 1)
    #expect(again.take().first == "connack 0 present")
    let publisher = session(nodes, "p", at: 2)
    publisher.publish("t", "x", .atLeastOnce, 1)
    run(publisher, again)
    #expect(messages(again) == ["publish t \"x\" 1"])
  }

  @Test func retainedMessagesAreThoseOfAllNodes() throws {
    let nodes = try DoorNodes()
    let publisher = session(nodes, "p", at: 0)
    for (number, topic) in ["a", "b", "c"].enumerated() {
      publisher.publish("r/\(topic)", topic, .atLeastOnce, UInt16(number + 1), retained: true)
    }
    publisher.publish("r/b", "", .atLeastOnce, 4, retained: true)
    publisher.publish("r/a", "new", .atLeastOnce, 5, retained: true)
    run(publisher)
    #expect(publisher.take().filter { $0.hasPrefix("puback") }.count == 5)
    nodes.node(0)?.kill()
    for index in 1...2 {
      let reader = session(nodes, "r\(index)", at: index)
      reader.subscribe("r/+", .atLeastOnce)
      run(reader, for: .seconds(5))
      #expect(
        messages(reader).sorted() == ["publish r/a \"new\" 1 retained", "publish r/c \"c\" 1 retained"])
      let exact = session(nodes, "e\(index)", at: index)
      exact.subscribe("r/a")
      run(exact)
      #expect(messages(exact) == ["publish r/a \"new\" 0 retained"])
    }
    let other = session(nodes, "o", at: 1)
    other.publish("r/c", "", .atLeastOnce, 1, retained: true)
    run(other)
    let last = session(nodes, "l", at: 2)
    last.subscribe("r/#")
    run(last)
    #expect(messages(last) == ["publish r/a \"new\" 0 retained"])
  }

  @Test func aRetainedMessageThatIsUnderWayComesAgainAtAnotherNode() throws {
    let nodes = try DoorNodes()
    let publisher = session(nodes, "p", at: 0)
    publisher.publish("r", "x", .atLeastOnce, 1, retained: true)
    run(publisher)
    let client = session(nodes, at: 0)
    client.acknowledges = false
    client.subscribe("r", .atLeastOnce)
    run(client)
    #expect(messages(client) == ["publish r \"x\" 1 retained"])
    let again = session(nodes, at: 1)
    run(again)
    #expect(messages(again) == ["publish r \"x\" 1 retained again"])
  }

  @Test func manyRetainedMessagesComeAtTheClientsPace() throws {
    let nodes = try DoorNodes(nodes: 1)
    let publisher = session(nodes, "p", at: 0)
    for number in 1...200 {
      publisher.publish("r/\(number)", "x", .atLeastOnce, UInt16(number), retained: true)
    }
    run(publisher)
    let client = MQTTClient.connected(nodes, "c", at: 0, receiveMaximum: 3)
    client.acknowledges = false
    client.subscribe("r/+", .atLeastOnce)
    run(client)
    #expect(messages(client).count == 3)
    client.acknowledges = true
    for number in 1...3 { client.send(.acknowledgement(MQTTAcknowledgement(.puback, UInt16(number)))) }
    run(client, for: .seconds(20))
    #expect(messages(client).count == 197)
  }

  @Test func whatAnOperatorTrimsIsNotRetainedAnyMore() throws {
    let nodes = try DoorNodes()
    let publisher = session(nodes, "p", at: 0)
    for (number, topic) in ["a", "b", "c"].enumerated() {
      publisher.publish("r/\(topic)", topic, .atLeastOnce, UInt16(number + 1), retained: true)
    }
    run(publisher)
    let admin = try NativeClient(nodes, at: DoorNodes.native + 1)
    admin.send(TopicTrim(topic: "mqtt.retained", .from(2)), stream: 1)
    admin.settle(.seconds(2))
    for index in 0..<3 {
      let reader = session(nodes, "r\(index)", at: index)
      reader.subscribe("r/+")
      run(reader)
      #expect(messages(reader) == ["publish r/c \"c\" 0 retained"])
    }
    admin.send(TopicDelete(topic: "mqtt.retained"), stream: 3)
    admin.settle(.seconds(5))
    publisher.publish("r/d", "d", .atLeastOnce, 9, retained: true)
    run(publisher, for: .seconds(5))
    #expect(publisher.take().contains("puback 9"))
    let reader = session(nodes, "last", at: 2)
    reader.subscribe("r/+")
    run(reader)
    #expect(messages(reader) == ["publish r/d \"d\" 0 retained"])
  }

  @Test func theTopicsOfAClusterStayShort() throws {
    let nodes = try DoorNodes(nodes: 2)
    let client = session(nodes, at: 0)
    client.subscribe("t", .exactlyOnce)
    let publisher = session(nodes, "p", at: 1)
    publisher.publish("r/old", "old", .atLeastOnce, 1, retained: true)
    for number in 2...3000 {
      publisher.publish("t", "\(number)", .exactlyOnce, UInt16(number), retained: true)
      publisher.settle(.milliseconds(10))
      client.settle(.milliseconds(10))
    }
    run(client, publisher, for: .seconds(5))
    let native = try NativeClient(nodes, at: DoorNodes.native)
    for (topic, most) in [("mqtt.sessions", 6000), ("mqtt.retained", 2000)] {
      let summary = native.show(topic).summary
      #expect(summary.firstOffset > 0)
      #expect(summary.nextOffset - summary.firstOffset < UInt64(most), "\(topic)")
    }
    // A node that starts has the same sessions as the others.
    try nodes.start("c")
    nodes.settled()
    nodes.node(0)?.kill()
    nodes.node(1)?.kill()
    #expect(session(nodes, at: 2).take().first == "connack 0 present")
    let reader = session(nodes, "r", at: 2)
    reader.subscribe("r/+")
    run(reader, for: .seconds(5))
    #expect(messages(reader) == ["publish r/old \"old\" 0 retained"])
  }

  @Test func publishersAndGroupsGoOnWhenTheirTopicsNodeDies() throws {
    let nodes = try DoorNodes()
    let owner = try #require(nodes.owner(of: "t"))
    let other = (owner + 1) % 3
    let worker = session(nodes, "w", at: other)
    worker.subscribe("$share/g/t", .atLeastOnce)
    let publisher = session(nodes, "p", at: (owner + 2) % 3)
    publisher.publish("t", "1", .atLeastOnce, 1)
    run(publisher, worker)
    #expect(messages(worker) == ["publish t \"1\" 1"])
    nodes.node(owner)?.kill()
    for number in 2...4 { publisher.publish("t", "\(number)", .atLeastOnce, UInt16(number)) }
    run(publisher, worker, for: .seconds(15))
    #expect(publisher.take().filter { $0.hasPrefix("puback") } == (1...4).map { "puback \($0)" })
    #expect(Set(messages(worker)) == Set((2...4).map { "publish t \"\($0)\" 1" }))
  }

  /// Clients lose their connections and move to other nodes, and nodes die, at any moment. No message is lost, and none is duplicated at QoS 2.
  @Test(arguments: 1...8 as ClosedRange<UInt64>)
  func nothingIsLostAndNothingComesTwice(seed: UInt64) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    let nodes = try DoorNodes(seed: seed)
    let qos = seed % 2 == 0 ? MQTTQoS.exactlyOnce : .atLeastOnce
    var places = [0, 1]
    var subscriber = PersistentClient(nodes, "s", qos, at: 0)
    var publisher = PersistentClient(nodes, "p", qos, at: 1)
    subscriber.client.subscribe("t/#", qos)
    #expect(subscriber.client.await("suback"))
    for _ in 0..<60 {
      for _ in 0..<Int.random(in: 0..<6, using: &random) { publisher.publishNext() }
      nodes.settle(.microseconds(.random(in: 0..<5000, using: &random)))
      let next = Int.random(in: 0..<3, using: &random)
      switch random.next() % 10 {
      case 0:
        places[1] = next
        publisher.reconnect(at: next)
      case 1:
        places[0] = next
        subscriber.reconnect(at: next)
      case 2:
        nodes.node(next)?.kill()
        if places[0] == next {
          places[0] = (next + 1) % 3
          subscriber.reconnect(at: places[0])
        }
        if places[1] == next {
          places[1] = (next + 2) % 3
          publisher.reconnect(at: places[1])
        }
        try nodes.start(DoorNodes.names[next])
        nodes.settled()
      default: break
      }
      publisher.run()
      subscriber.run()
    }
    for _ in 0..<100 {
      publisher.run(.milliseconds(100))
      subscriber.run(.milliseconds(100))
    }
    #expect(publisher.isIdle)
    let texts = subscriber.received
    #expect(Set(texts) == Set((0..<publisher.published).map { "m\($0)" }))
    if qos == .exactlyOnce { #expect(texts.count == publisher.published) }
  }
}
