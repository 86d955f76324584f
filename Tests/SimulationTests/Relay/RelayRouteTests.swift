import SluiceIO
import SluiceSession
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Streams whose topic moves, and links that break: the relay repeats nothing, and an error makes the client open the stream again.
@Suite struct RelayRouteTests {
  private func subscribe(_ granted: UInt64, cursor: String = "") -> Subscribe {
    Subscribe(topic: "t", start: .earliest, grantedThrough: granted, cursor: cursor)
  }

  private let open = PublishOpen(topic: "t", acknowledgement: .received, producer: 7)

  // MARK: Topics that move

  @Test(arguments: [0, 1])
  func aStreamWaitsWhileItsTopicMovesAndKeepsItsDemand(owner: Int) throws {
    let relay = try RelayWorld()
    let producer = relay.connect(to: 0)
    relay.move("t", to: nil)
    let client = relay.connect(to: 1)
    client.send(subscribe(0), stream: 1)
    client.send(TopicShow(topic: "t"), stream: 2)
    client.send(open, stream: 3)
    client.send(Demand(grantedThrough: 2), stream: 1)
    producer.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 1)
    relay.settle(.seconds(1))
    #expect(client.frames.isEmpty && producer.frames.isEmpty)
    #expect(relay.nodes[1].broker.core.metrics[.subscriptions] == 1)

    relay.move("t", to: owner)
    relay.settle()
    producer.publish(4, from: 0, stream: 1)
    relay.settle()
    #expect(client.types(on: 1).prefix(2) == [.subscribed, .live])
    #expect(client.records(on: 1).map(\.offset) == [0, 1])
    #expect(client.types(on: 2) == [.topicInfo] || client.refusal(on: 2) == .unknownTopic)
    #expect(client.types(on: 3).first == .publishOpened)
  }

  @Test func aStreamThatHasWaitedForLongEnoughIsToldToTryAgain() throws {
    let relay = try RelayWorld { $0.limits.routeWait = .seconds(3) }
    relay.move("t", to: nil)
    let client = relay.connect(to: 1)
    client.send(subscribe(0), stream: 1)
    client.send(TopicShow(topic: "t"), stream: 2)
    client.send(subscribe(0), stream: 3)
    relay.settle(.seconds(1))
    client.send(Cancel(), stream: 3)
    client.send(open, stream: 4)
    relay.settle(.milliseconds(1_900))
    #expect(client.types == [.cancelled])
    relay.settle(.milliseconds(200))
    #expect(client.refusal(on: 1) == .topicMoved && client.refusal(on: 2) == .topicMoved)
    #expect(client.types(on: 4).isEmpty)
    relay.settle(.seconds(1))
    #expect(client.refusal(on: 4) == .topicMoved)
    #expect(relay.nodes[1].broker.core.metrics[.subscriptions] == 0)
    // The stream numbers are free again.
    relay.move("t", to: 0)
    client.send(subscribe(1), stream: 1)
    relay.settle()
    #expect(client.types(on: 1).suffix(2) == [.subscribed, .live])
  }

  @Test func streamsEndWhenAnotherNodeServesTheirTopic() throws {
    let relay = try RelayWorld(nodes: 3)
    let client = relay.connect(to: 1)
    client.send(open, stream: 1)
    client.send(subscribe(Credit.unlimited), stream: 2)
    relay.settle()
    client.publish(5, from: 0, stream: 1)
    relay.settle()
    #expect(client.records(on: 2).count == 5)

    // The owner ends the streams of a topic that moves; the relaying node waits for that.
    relay.tell(1, that: relay.shard(of: "t"), isAt: nil)
    relay.settle()
    #expect(client.refusal(on: 1) == nil && client.refusal(on: 2) == nil)

    relay.move("t", to: 2)
    relay.settle()
    #expect(client.refusal(on: 1) == .topicMoved && client.refusal(on: 2) == .topicMoved)
    client.send(open, stream: 1)
    client.send(subscribe(Credit.unlimited), stream: 2)
    relay.settle()
    #expect(client.types(on: 1).last == .publishOpened && client.types(on: 2).suffix(2).contains(.subscribed))
    #expect(relay.nodes[2].broker.core.registry.find("t") != nil)
    // Streams at the former owner were cancelled.
    #expect(try #require(relay.nodes[0].broker.core.registry.find("t")).attached == (0, 0))
  }

  @Test func aStreamIsNotPassedOnTwice() throws {
    let relay = try RelayWorld(nodes: 3)
    let shard = relay.shard(of: "t")
    relay.tell(1, that: shard, isAt: 2)
    relay.tell(2, that: shard, isAt: 0)
    let client = relay.connect(to: 1)
    client.send(subscribe(1), stream: 1)
    relay.settle()
    #expect(client.refusal(on: 1) == .topicMoved)
  }

  // MARK: Links

  @Test func streamsEndWhenTheLinkBreaksAndGoOnOverTheNextOne() throws {
    let relay = try RelayWorld()
    let client = relay.connect(to: 1)
    client.send(open, stream: 1)
    client.send(subscribe(Credit.unlimited), stream: 2)
    client.send(JoinGroup(topic: "t", group: "g", grantedThrough: 9), stream: 3)
    relay.settle()
    client.publish(5, from: 0, stream: 1)
    relay.settle()
    #expect(client.records(on: 2).count == 5 && relay.links.count == 1)
    client.forget()
    relay.links[0].reset()
    relay.settle()
    #expect((1...3).map { client.refusal(on: $0) } == [.topicMoved, .topicMoved, .topicMoved])

    // The producer resends the last records, which the owner already has.
    client.send(PublishOpen(topic: "t", acknowledgement: .received, producer: 7, firstSequence: 3), stream: 1)
    client.send(Subscribe(topic: "t", start: .offset(5), grantedThrough: 10), stream: 2)
    relay.settle()
    let opened = try client.frames(on: 1).last?.decoded(PublishOpened.self)
    #expect(opened?.nextSequence == 5)
    client.publish(1, from: 5, stream: 1)
    relay.settle()
    #expect(client.records(on: 2).map(\.offset) == [5])
  }

  @Test func aNodeThatIsGoneIsTriedAgainUntilTheClientsHaveWaitedLongEnough() throws {
    let relay = try RelayWorld { $0.limits.routeWait = .seconds(4) }
    let client = relay.connect(to: 1)
    client.send(subscribe(Credit.unlimited), stream: 1)
    relay.settle()
    relay.world.network.cut(relay.nodes[0].address)
    // The node no longer responds.
    relay.settle(.seconds(6))
    #expect(client.refusal(on: 1) == .topicMoved)
    client.send(subscribe(0), stream: 1)
    relay.settle(.seconds(3))
    #expect(client.frames(on: 1).last?.header.type == .error)
    client.forget()
    relay.settle(.seconds(3))
    #expect(client.refusal(on: 1) == .topicMoved)
    client.send(subscribe(0), stream: 1)
    relay.settle(.seconds(1))
    relay.world.network.heal(relay.nodes[0].address)
    relay.settle(.seconds(3))
    #expect(client.types(on: 1).suffix(2) == [.subscribed, .live])
  }

  @Test func aLinkThatIsNotUsedIsClosed() throws {
    let relay = try RelayWorld { $0.limits.keepalive = 0 }
    let client = relay.connect(to: 1, keepalive: 0)
    client.send(TopicCreate(topic: "t", settings: TopicSettings()), stream: 1)
    relay.settle()
    #expect(client.types == [.topicInfo] && relay.links.count == 1)
    relay.settle(.seconds(45))
    #expect(relay.links.isEmpty && !client.hasEnded)
    client.send(TopicShow(topic: "t"), stream: 1)
    relay.settle()
    #expect(client.types == [.topicInfo, .topicInfo])
  }

  @Test func moreStreamsThanOneLinkTakesGoOverSeveral() throws {
    let relay = try RelayWorld {
      $0.limits.streams = 10
      // Subscriptions to lossless topics are relayed one by one.
      $0.topicDefaults.flow = .lossless
    }
    let clients = (0..<3).map { _ in relay.connect(to: 1) }
    for client in clients {
      for stream in UInt32(1)...8 { client.send(subscribe(0), stream: stream) }
    }
    relay.settle()
    #expect(clients.allSatisfy { $0.types.filter { $0 == .subscribed }.count == 8 })
    #expect(relay.links.count == 3)
    #expect(relay.nodes[0].broker.core.metrics[.subscriptions] == 24)
    for client in clients { client.close() }
    relay.settle()
    #expect(relay.nodes[0].broker.core.metrics[.subscriptions] == 0)
  }

  @Test func anOwnerThatStopsSendsItsStreamsElsewhere() throws {
    let relay = try RelayWorld { $0.drainTime = .seconds(1) }
    let client = relay.connect(to: 1)
    client.send(open, stream: 1)
    client.send(subscribe(Credit.unlimited), stream: 2)
    relay.settle()
    relay.nodes[0].broker.shutdown()
    relay.settle(.seconds(2))
    #expect(client.refusal(on: 1) == .topicMoved && client.refusal(on: 2) == .topicMoved && !client.hasEnded)
  }
}
