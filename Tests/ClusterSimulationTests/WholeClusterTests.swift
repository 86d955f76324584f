import SluiceClient
import SluiceCluster
import SluiceSimulation
import Testing

/// A cluster as seen by its clients, in the simulation.
@Suite("A cluster with clients")
struct WholeClusterTests {
  static let durable: TopicSettings = {
    var settings = TopicSettings()
    settings.storage = .durable
    return settings
  }()

  @Test("durable records outlive the only node")
  func oneNode() throws {
    let cluster = WholeCluster(seed: 1)
    try cluster.start("a")
    #expect(cluster.settle())
    let client = try cluster.client(of: "a")
    let producer = NumberedProducer("orders", client, Self.durable)
    producer.publish(100)
    #expect(cluster.world.run(limit: .seconds(30)) { producer.isDone })
    cluster.node("a")?.kill()
    cluster.world.run(for: .seconds(1))
    try cluster.start("a")
    let subscriber = NumberedSubscriber("orders", try cluster.client(of: "a"))
    producer.publish(100)
    #expect(cluster.world.run(limit: .seconds(60)) { producer.isDone && subscriber.next == 200 })
    #expect(producer.problems + subscriber.problems == [])
  }

  @Test("a shard goes to another node in order, and its topics with it")
  func handOver() throws {
    let cluster = WholeCluster(seed: 2)
    for name in ["a", "b"] { try cluster.start(name) }
    #expect(cluster.settle())
    let owner = try #require(cluster.owner(of: "orders"))
    let other = try #require(cluster.running.first { $0 !== owner })
    let producer = NumberedProducer("orders", try cluster.client(of: owner.name), Self.durable)
    producer.publish(50)
    #expect(cluster.world.run(limit: .seconds(30)) { producer.isDone })
    owner.member.drain(owner.name) { _ in }
    #expect(cluster.world.run(limit: .seconds(30)) { cluster.owner(of: "orders") === other })
    let subscriber = NumberedSubscriber("orders", try cluster.client(of: other.name))
    #expect(cluster.world.run(limit: .seconds(30)) { subscriber.next == 50 })
    #expect(producer.problems + subscriber.problems == [])
  }
}
