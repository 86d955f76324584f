import ReactiveCore
import SluiceClient
import SluiceCluster
import SluiceIO
import SluiceSimulation
import SluiceTopics
import Synchronization
import Testing

/// A node's behaviour while it can't know whether it still owns its shards.
@Suite("A node without a valid lease")
struct LeaseLossTests {
  @Test(
    "an owner that was stopped for longer than its lease acknowledges and delivers nothing that isn't stored",
    arguments: 1...20)
  func stoppedOwner(seed: UInt64) throws {
    let cluster = WholeCluster(seed: seed, conditions: SimulatedConditions())
    for name in ["a", "b"] { try cluster.start(name) }
    #expect(cluster.settle())
    let owner = try #require(cluster.owner(of: "prices"))
    let client = try cluster.client(of: owner.name)
    let producer = NumberedProducer("prices", client, TopicSettings())
    let subscriber = NumberedSubscriber("prices", try cluster.client(of: owner.name))
    producer.publish(20)
    #expect(cluster.world.run(limit: .seconds(10)) { producer.isDone && subscriber.next == 20 })

    owner.pause()
    producer.publish(20)
    let hasSuccessor = cluster.world.run(limit: .seconds(60)) {
      cluster.running.contains { $0 !== owner && $0.member.routes.route(of: "prices") == .local }
    }
    #expect(hasSuccessor)
    owner.goOn()
    // Until it learns that it no longer has shards.
    _ = cluster.world.run(limit: .seconds(10)) { owner.member.routes.route(of: "prices") != .local }
    #expect(producer.acknowledged == 20)
    #expect(subscriber.next == 20)
  }

  @Test(
    "an owner that was stopped for longer than its lease doesn't acknowledge what the engine has stored for it meanwhile",
    arguments: 1...20)
  func storedMeanwhile(seed: UInt64) throws {
    let cluster = WholeCluster(seed: seed, conditions: SimulatedConditions())
    for name in ["a", "b"] { try cluster.start(name) }
    #expect(cluster.settle())
    let owner = try #require(cluster.owner(of: "orders"))
    let client = try cluster.client(of: owner.name)
    var settings = TopicSettings()
    settings.storage = .durable
    let producer = NumberedProducer("orders", client, settings)
    producer.publish(20)
    #expect(cluster.world.run(limit: .seconds(10)) { producer.isDone })

    producer.publish(20)
    cluster.world.run(for: .microseconds(Int(seed) * 100))
    owner.pause()
    // Wait for frames that the owner has sent before.
    cluster.world.run(for: .seconds(1))
    let acknowledged = producer.acknowledged
    let hasSuccessor = cluster.world.run(limit: .seconds(60)) {
      cluster.running.contains { $0 !== owner && $0.member.routes.route(of: "orders") == .local }
    }
    #expect(hasSuccessor)
    owner.goOn()
    _ = cluster.world.run(limit: .seconds(10)) { owner.member.routes.route(of: "orders") != .local }
    #expect(producer.acknowledged == acknowledged)
    let subscriber = NumberedSubscriber("orders", try cluster.client(of: "a"))
    #expect(cluster.world.run(limit: .seconds(60)) { producer.isDone && subscriber.next == 40 })
    #expect(producer.problems + subscriber.problems == [])
  }

  @Test("a producer that ends its topic while the lease isn't valid is told when it is valid again")
  func completed() throws {
    let cluster = WholeCluster(seed: 5)
    try cluster.start("a")
    #expect(cluster.settle())
    let subject = try cluster.client(of: "a").subject("prices")
    let outcomes = Mutex<[String]>([])
    subject.publish(Message("0")) { _ in outcomes.withLock { $0.append("0") } }
    #expect(cluster.world.run(limit: .seconds(10)) { outcomes.withLock { $0 == ["0"] } })
    cluster.cutEngine(from: "a")
    cluster.world.run(for: .seconds(3))
    subject.publish(Message("1")) { result in
      outcomes.withLock { $0.append(Self.outcome("1", result)) }
    }
    subject.complete(.finished) { result in
      outcomes.withLock { $0.append(Self.outcome("the end", result)) }
    }
    cluster.world.run(for: .seconds(3))
    #expect(outcomes.withLock { $0 } == ["0"])
    cluster.healEngine(for: "a")
    #expect(cluster.world.run(limit: .seconds(30)) { outcomes.withLock { $0 == ["0", "1", "the end"] } })
  }

  private static func outcome<Value>(_ what: String, _ result: Result<Value, ClientError>) -> String {
    switch result {
    case .success: what
    case .failure(let error): "\(what): \(error)"
    }
  }

  @Test("while the engine doesn't answer, records in memory wait; they go on when the lease is valid again")
  func suspended() throws {
    let cluster = WholeCluster(seed: 3)
    try cluster.start("a")
    #expect(cluster.settle())
    let producer = NumberedProducer("prices", try cluster.client(of: "a"), TopicSettings())
    let subscriber = NumberedSubscriber("prices", try cluster.client(of: "a"))
    producer.publish(20)
    #expect(cluster.world.run(limit: .seconds(10)) { producer.isDone && subscriber.next == 20 })
    cluster.cutEngine(from: "a")
    cluster.world.run(for: .seconds(3))
    producer.publish(20)
    cluster.world.run(for: .seconds(3))
    #expect(producer.acknowledged == 20 && subscriber.next == 20)
    cluster.healEngine(for: "a")
    #expect(cluster.world.run(limit: .seconds(30)) { producer.isDone && subscriber.next == 40 })
    #expect(producer.problems + subscriber.problems == [])
  }

  @Test("a node that has lost the engine goes on with topics of other nodes", arguments: [nil, 5])
  func relaysOn(demand: Int?) throws {
    let cluster = WholeCluster(seed: 4)
    for name in ["a", "b"] { try cluster.start(name) }
    #expect(cluster.settle())
    let topic = try #require(
      (0..<50).map { "prices.\($0)" }.first { cluster.owner(of: $0)?.name == "b" })
    let producer = NumberedProducer(topic, try cluster.client(of: "b"), TopicSettings())
    producer.publish(20)
    #expect(cluster.world.run(limit: .seconds(10)) { producer.isDone })
    let first = NumberedSubscriber(topic, try cluster.client(of: "a"))
    let second = NumberedSubscriber(topic, try cluster.client(of: "a"))
    let pattern = NumberedPatternSubscriber("prices.*", try cluster.client(of: "a"), demand: demand)
    let haveAll = {
      first.next == producer.sent && second.next == producer.sent && pattern.next[topic] == producer.sent
    }
    #expect(cluster.world.run(limit: .seconds(10), until: haveAll))
    cluster.cutEngine(from: "a")
    for _ in 0..<5 {
      cluster.world.run(for: .seconds(2))
      producer.publish(20)
      #expect(cluster.world.run(limit: .seconds(1), until: haveAll))
    }
    #expect(producer.problems + first.problems + second.problems + pattern.problems == [])
  }
}
