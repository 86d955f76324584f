import SluiceClient
import SluiceCluster
import SluiceIO
import SluiceSimulation
import SluiceTopics
import Testing

/// What a node does, and doesn't do, while it can't know whether its shards are still its own.
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
    // Up to the moment at which it hears that it has no shards any more.
    _ = cluster.world.run(limit: .seconds(10)) { owner.member.routes.route(of: "prices") != .local }
    #expect(producer.acknowledged == 20)
    #expect(subscriber.next == 20)
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
}
