import SluiceDoors
import SluiceMQTT
import SluiceWire
import TestSupport
import Testing

/// Sessions at the nodes of a cluster whose parts can't reach each other.
@Suite struct MQTTClusterFaultTests {
  private func messages(_ client: MQTTClient) -> [String] { client.take().filter { $0.hasPrefix("publish") } }

  private func session(_ nodes: DoorNodes, _ id: String = "c", at index: Int) -> MQTTClient {
    let client = MQTTClient.connected(nodes, id, at: index, clean: false, expiry: 3600)
    #expect(client.await("connack"))
    return client
  }

  private func run(_ clients: MQTTClient..., for time: Duration = .seconds(1)) {
    for _ in 0..<Int(time / .milliseconds(100)) { for client in clients { client.settle() } }
  }

  // MARK: A CONNECT that is given up

  private func giveUp(_ nodes: DoorNodes, at index: Int, clean: Bool, after time: Duration) {
    let client = MQTTClient(nodes, at: index)
    var properties = MQTTProperties()
    properties.append(.sessionExpiry, 3600)
    client.send(.connect(MQTTConnect(.v5, clientID: "c", cleanStart: clean, properties: properties)))
    nodes.settle(time)
    client.bytes.abort()
  }

  /// One that would have begun a new session changes nothing either.
  @Test(arguments: [false, true]) func aCleanCONNECTThatIsGivenUpChangesNothing(isHeld: Bool) throws {
    let nodes = try DoorNodes()
    var client = session(nodes, at: 0)
    client.subscribe("t", .atLeastOnce)
    for round in 0..<6 {
      if !isHeld { client.lose() }
      run(client, for: .milliseconds(300))
      giveUp(nodes, at: round % 3, clean: true, after: .microseconds(100 * round))
      run(client, for: .seconds(2))
      client = session(nodes, at: (round + 1) % 3)
      #expect(client.take().first == "connack 0 present", "round \(round)")
    }
  }

  @Test func theWillThatWaitsIsPublishedAfterACONNECTThatIsGivenUp() throws {
    let nodes = try DoorNodes()
    let watcher = session(nodes, "w", at: 1)
    watcher.subscribe("gone/+", .atLeastOnce)
    var will = MQTTConnect.Will(topic: "gone/c", payload: Array("dead".utf8), qos: .atLeastOnce)
    will.properties.append(.willDelay, 10)
    let client = MQTTClient.connected(nodes, "c", at: 0, clean: false, expiry: 3600, will: will)
    #expect(client.await("connack"))
    client.lose()
    run(watcher)
    giveUp(nodes, at: 2, clean: false, after: .milliseconds(1))
    run(watcher, for: .seconds(25))
    #expect(messages(watcher) == ["publish gone/c \"dead\" 1"])
  }

  // MARK: Patterns that can't be opened

  /// The topics of two nodes that can't reach each other, and the node whose sessions all can reach.
  private struct Parted {
    let nodes: DoorNodes
    /// The client's node, and the node that it can't reach.
    let (near, far): (Int, Int)
    /// A node that both can reach.
    var between: Int { 3 - near - far }
    /// A topic of the far node.
    let topic: String

    init() throws {
      let nodes = try DoorNodes()
      let near = try #require(nodes.owner(of: "mqtt.sessions"))
      let found = (0..<100).first { number in nodes.owner(of: "\(number).t").map { $0 != near } ?? false }
      let number = try #require(found)
      let far = try #require(nodes.owner(of: "\(number).t"))
      (self.nodes, self.near, self.far, topic) = (nodes, near, far, "\(number)/t")
    }
  }

  @Test(arguments: [MQTTQoS.atMostOnce, .atLeastOnce])
  func aResumedSessionOpensItsPatternWhenItCan(qos: MQTTQoS) throws {
    let parted = try Parted()
    let nodes = parted.nodes
    let client = session(nodes, at: parted.near)
    client.subscribe("+/t", qos)
    run(client)
    client.lose()
    nodes.cut(parted.near, parted.far)
    let again = session(nodes, at: parted.near)
    #expect(again.take().first == "connack 0 present")
    let publisher = session(nodes, "p", at: parted.between)
    publisher.publish(parted.topic, "meanwhile", .atLeastOnce, 1)
    _ = nodes.takeEvents()
    run(again, publisher, for: .seconds(20))
    #expect(again.take() == [])
    // One event, even after many attempts.
    let waiting = nodes.takeEvents().compactMap {
      if case .mqttSubscriptionWaits("c", _, let filter, let reason) = $0 {
        "\(filter): \(reason)"
      } else {
        nil
      }
    }
    #expect(waiting.count == 1 && waiting[0].hasPrefix("+/t: all topics can't be reached"), "\(waiting)")
    nodes.heal(parted.near, parted.far)
    run(again, publisher, for: .seconds(15))
    publisher.publish(parted.topic, "later", .atLeastOnce, 2)
    run(publisher, again, for: .seconds(2))
    // Without cursors no messages are kept while the client is away.
    let expected = qos == .atMostOnce ? ["later"] : ["meanwhile", "later"]
    #expect(messages(again) == expected.map { "publish \(parted.topic) \"\($0)\" \(qos.rawValue)" })
    #expect(!again.bytes.hasEnded)
  }

  @Test func newSUBSCRIBEsAreToldThatAPatternCannotBeOpened() throws {
    let parted = try Parted()
    let nodes = parted.nodes
    let client = session(nodes, at: parted.near)
    client.subscribe("+/t", .atLeastOnce)
    run(client)
    client.lose()
    nodes.cut(parted.near, parted.far)
    let again = session(nodes, at: parted.near)
    run(again)
    _ = (again.take(), nodes.takeEvents())
    // A filter that the session already has, and a new one.
    again.subscribe("+/t", .atLeastOnce, 5)
    again.subscribe("+/u", .atLeastOnce, 6)
    run(again, for: .seconds(15))
    #expect(again.take() == ["suback 5 [131]", "suback 6 [131]"])
    let reasons = again.reasons
    #expect(reasons.count == 2 && reasons.allSatisfy { $0.contains("can't be reached") }, "\(reasons)")
    nodes.heal(parted.near, parted.far)
    run(again, for: .seconds(15))
    let publisher = session(nodes, "p", at: parted.between)
    publisher.publish(parted.topic, "later", .atLeastOnce, 2)
    publisher.publish("1/u", "refused", .atLeastOnce, 3)
    run(publisher, again, for: .seconds(2))
    #expect(messages(again) == ["publish \(parted.topic) \"later\" 1"])
    again.subscribe("+/t", .atLeastOnce, 7)
    #expect(again.take() == ["suback 7 [1]"])
  }

  // MARK: A node without the engine

  /// A message whose outcome isn't known is never answered.
  @Test(arguments: 1...6 as ClosedRange<UInt64>)
  func aNodeWithoutTheEngineAnswersNothingThatItDoesNotKnow(seed: UInt64) throws {
    var random = TestSupport.SeededRandom(seed: seed)
    let nodes = try DoorNodes(seed: seed)
    let qos = seed % 2 == 0 ? MQTTQoS.exactlyOnce : .atLeastOnce
    let far = try #require(nodes.owner(of: "t.0"))
    var subscriber = PersistentClient(nodes, "s", qos, at: (far + 1) % 3)
    var publisher = PersistentClient(nodes, "p", qos, at: far)
    subscriber.client.subscribe("t/#", qos)
    #expect(subscriber.client.await("suback"))
    for round in 0..<3 {
      for _ in 0..<10 { publisher.publishNext() }
      nodes.settle(.microseconds(.random(in: 0..<6000, using: &random)))
      nodes.cutEngine(from: far)
      for _ in 0..<3 { publisher.publishNext() }
      for _ in 0..<Int.random(in: 1...200, using: &random) {
        publisher.run(.milliseconds(50))
        subscriber.run(.milliseconds(50))
      }
      nodes.healEngine(of: far)
      for _ in 0..<200 { publisher.run(.milliseconds(50)) }
      if publisher.client.bytes.hasEnded { publisher.reconnect(at: (far + round) % 3) }
      for _ in 0..<100 {
        publisher.run(.milliseconds(50))
        subscriber.run(.milliseconds(50))
      }
    }
    #expect(publisher.isIdle)
    let texts = subscriber.received
    #expect(Set(texts) == Set((0..<publisher.published).map { "m\($0)" }))
    if qos == .exactlyOnce { #expect(texts.count == publisher.published) }
  }
}
