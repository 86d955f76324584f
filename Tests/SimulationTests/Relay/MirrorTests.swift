import SluiceIO
import SluiceSession
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Several subscribers of one node to one topic of another: the owner sends each record once.
@Suite struct MirrorTests {
  private func subscribe(_ granted: UInt64 = Credit.unlimited, start: Subscribe.Start = .earliest)
    -> Subscribe
  {
    Subscribe(topic: "t", start: start, grantedThrough: granted)
  }

  private func producer(of relay: RelayWorld) -> ScriptedClient {
    let producer = relay.connect(to: 0)
    producer.send(PublishOpen(topic: "t", acknowledgement: .none), stream: 1)
    relay.settle()
    return producer
  }

  /// The number of subscriptions at the owner.
  private func upstream(_ relay: RelayWorld) -> Int {
    relay.nodes[0].broker.core.registry.find("t")?.attached.subscriptions ?? 0
  }

  private func shared(_ relay: RelayWorld, at node: Int = 1) -> Int {
    relay.nodes[node].broker.contexts.flatMap(\.connections).flatMap { connection in
      connection.streams.session.numbers.compactMap {
        connection.streams.session.object($0) as? RelayedSubscription
      }
    }.filter(\.isShared).count
  }

  @Test(arguments: [1, 2])
  func theOwnerSendsEachRecordOnce(loops: Int) throws {
    let relay = try RelayWorld(loops: loops)
    let producer = producer(of: relay)
    producer.publish(50, from: 0, stream: 1)
    let clients = (0..<10).map { _ in relay.connect(to: 1) }
    for client in clients { client.send(subscribe(), stream: 1) }
    relay.settle()
    #expect(shared(relay) == 10 && upstream(relay) == 1)
    let before = relay.nodes[0].broker.core.metrics[.recordsSent]
    for round in 0..<100 {
      producer.publish(100, from: 50 + round * 100, size: 200, stream: 1)
      relay.settle(.milliseconds(5))
    }
    relay.settle()
    #expect(relay.nodes[0].broker.core.metrics[.recordsSent] - before == 10_000)
    for client in clients {
      #expect(client.records(on: 1).map(\.offset) == (0..<10_050).map(UInt64.init))
      #expect(client.types(on: 1).filter { $0 != .deliver } == [.subscribed, .live])
    }
    for client in clients.dropLast() { client.send(Cancel(), stream: 1) }
    relay.settle()
    #expect(upstream(relay) == 1)
    clients.last?.close()
    relay.settle()
    #expect(upstream(relay) == 0 && relay.nodes[1].broker.core.metrics[.subscriptions] == 0)
  }

  @Test func eachSubscriberGetsWhatItAsksForAndNoMore() throws {
    let relay = try RelayWorld()
    let producer = producer(of: relay)
    let clients = (0..<4).map { _ in relay.connect(to: 1) }
    for client in clients { client.send(subscribe(1), stream: 1) }
    relay.settle()
    #expect(shared(relay) == 4)
    for round in 0..<20 {
      producer.publish(10, from: round * 10, stream: 1)
      for (index, client) in clients.enumerated() {
        client.send(Demand(grantedThrough: UInt64(1 + (round + 1) * index * 3)), stream: 1)
      }
      relay.settle(.milliseconds(20))
      for (index, client) in clients.enumerated() {
        #expect(client.records(on: 1).count == min((round + 1) * 10, max(1, 1 + (round + 1) * index * 3)))
      }
    }
  }

  @Test func aReaderThatFallsBehindReadsAtTheOwnerAndComesBack() throws {
    let relay = try RelayWorld()
    let producer = producer(of: relay)
    let (slow, quick) = (relay.connect(to: 1), relay.connect(to: 1))
    for client in [slow, quick] { client.send(subscribe(), stream: 1) }
    relay.settle()
    #expect(shared(relay) == 2)
    slow.isPaused = true
    for round in 0..<200 {
      producer.publish(100, from: round * 100, size: 1_000, stream: 1)
      relay.settle(.milliseconds(10))
    }
    #expect(quick.records(on: 1).count == 20_000)
    #expect(slow.records(on: 1).count < 5_000)
    slow.isPaused = false
    relay.settle(.milliseconds(20))
    #expect(upstream(relay) == 2)
    relay.settle(.seconds(2))
    #expect(slow.records(on: 1).map(\.offset) == (0..<20_000).map(UInt64.init))
    #expect(slow.types(on: 1).filter { $0 != .deliver } == [.subscribed, .live])
    #expect(shared(relay) == 2 && upstream(relay) == 1)
  }

  @Test func everyReaderLearnsOfTheEnd() throws {
    let relay = try RelayWorld()
    let producer = producer(of: relay)
    let clients = (0..<3).map { _ in relay.connect(to: 1) }
    for client in clients { client.send(subscribe(3), stream: 1) }
    relay.settle()
    producer.publish(5, from: 0, stream: 1)
    producer.send(Complete(.failure(code: .producerFailure, message: "x")), stream: 1)
    relay.settle()
    #expect(clients.allSatisfy { $0.records(on: 1).count == 3 && $0.types(on: 1).last == .deliver })
    for client in clients { client.send(Demand(grantedThrough: 5), stream: 1) }
    relay.settle()
    #expect(clients.allSatisfy { $0.records(on: 1).count == 5 && $0.types(on: 1).last == .complete })
    #expect(upstream(relay) == 0)
  }

  @Test func everyReaderLearnsOfTheTopicsDeletion() throws {
    let relay = try RelayWorld()
    let producer = producer(of: relay)
    let clients = (0..<3).map { _ in relay.connect(to: 1) }
    for client in clients { client.send(subscribe(), stream: 1) }
    relay.settle()
    producer.send(TopicDelete(topic: "t"), stream: 2)
    relay.settle()
    #expect(clients.map { $0.refusal(on: 1) } == [.topicDeleted, .topicDeleted, .topicDeleted])
  }

  @Test func everyReaderLearnsThatTheTopicHasMovedOrTheLinkIsGone() throws {
    let relay = try RelayWorld(nodes: 3)
    let clients = (0..<3).map { _ in relay.connect(to: 1) }
    for client in clients { client.send(subscribe(), stream: 1) }
    relay.settle()
    #expect(shared(relay) == 3)
    relay.links[0].reset()
    relay.settle()
    #expect(clients.map { $0.refusal(on: 1) } == [.topicMoved, .topicMoved, .topicMoved])
    for client in clients { client.send(subscribe(), stream: 1) }
    relay.settle()
    #expect(shared(relay) == 3)
    for client in clients { client.forget() }
    relay.move("t", to: 2)
    relay.settle()
    #expect(clients.map { $0.refusal(on: 1) } == [.topicMoved, .topicMoved, .topicMoved])
    #expect(upstream(relay) == 0)
  }

  @Test func aTopicWhoseProducersArePacedIsNotShared() throws {
    let relay = try RelayWorld()
    let producer = producer(of: relay)
    let clients = (0..<2).map { _ in relay.connect(to: 1) }
    for client in clients { client.send(subscribe(), stream: 1) }
    relay.settle()
    #expect(shared(relay) == 2)
    var change = TopicSettings()
    change.flow = .lossless
    producer.send(TopicSet(topic: "t", settings: change), stream: 2)
    relay.settle()
    #expect(clients.map { $0.refusal(on: 1) } == [.topicMoved, .topicMoved])
    for client in clients { client.send(subscribe(2), stream: 1) }
    relay.settle()
    #expect(shared(relay) == 0 && upstream(relay) == 2)
  }

  @Test func recordsThatTheOwnerHasDroppedAreMissedByEachReader() throws {
    let relay = try RelayWorld { $0.topicDefaults.replayRecords = 10 }
    let producer = producer(of: relay)
    let clients = (0..<3).map { _ in relay.connect(to: 1) }
    for client in clients.dropLast() { client.send(subscribe(), stream: 1) }
    clients.last?.send(
      Subscribe(topic: "t", start: .earliest, lag: .fail, grantedThrough: Credit.unlimited), stream: 1)
    relay.settle()
    #expect(shared(relay) == 3)
    // The link is cut for a while.
    relay.links[0].cut()
    for round in 0..<300 {
      producer.publish(100, from: round * 100, size: 1_000, stream: 1)
      relay.settle(.milliseconds(5))
    }
    relay.links[0].heal()
    relay.settle(.seconds(1))
    for client in clients.dropLast() {
      #expect(client.types(on: 1).contains(.lag))
      #expect(client.records(on: 1).last?.offset == 29_999)
    }
    #expect(clients.last?.refusal(on: 1) == .lagged)
  }

  @Test(arguments: UInt64(1)...20)
  func underAllConditionsEachReaderGetsEachRecordOnce(seed: UInt64) throws {
    let relay = try RelayWorld(seed: seed, loops: 2, conditions: SimulatedConditions())
    let producer = producer(of: relay)
    var clients: [(client: ScriptedClient, granted: UInt64)] = []
    var published = 0
    for _ in 0..<60 {
      let count = Int(relay.world.random.next(in: 0...40))
      if count > 0 { producer.publish(count, from: published, size: 2_000, stream: 1) }
      published += count
      if clients.count < 8, relay.world.random.oneIn(3) {
        let client = relay.connect(to: 1)
        client.send(subscribe(3), stream: 1)
        clients.append((client, 3))
      }
      for index in clients.indices {
        if relay.world.random.oneIn(8) { clients[index].client.isPaused.toggle() }
        clients[index].granted += relay.world.random.next(below: 60)
        clients[index].client.send(Demand(grantedThrough: clients[index].granted), stream: 1)
      }
      relay.settle(.milliseconds(Int64(relay.world.random.next(in: 0...40))))
      for (client, granted) in clients { #expect(UInt64(client.records(on: 1).count) <= granted) }
    }
    for (client, _) in clients { client.isPaused = false }
    relay.settle(.seconds(3))
    for (client, granted) in clients {
      let records = client.records(on: 1)
      #expect(records.map(\.offset) == (0..<records.count).map(UInt64.init))
      #expect(records.count == min(Int(granted), published))
      let others = client.types(on: 1).filter { $0 != .deliver }
      // A subscription is live only once its demand reaches the head.
      #expect(others == [.subscribed, .live] || others == [.subscribed] && records.count < published)
    }
  }
}
