import SluiceClient
import SluiceCluster
import SluiceSimulation
import Testing

/// Subscriptions to patterns in a whole cluster.
@Suite("A cluster with subscriptions to patterns")
struct WholeClusterPatternTests {
  private func cluster(seed: UInt64, _ names: [String] = ["a", "b", "c"]) throws -> WholeCluster {
    let cluster = WholeCluster(seed: seed)
    for name in names { try cluster.start(name) }
    #expect(cluster.settle())
    return cluster
  }

  private func producers(
    _ topics: [String], _ cluster: WholeCluster, of node: String = "a"
  ) throws -> [NumberedProducer] {
    try topics.map { NumberedProducer($0, try cluster.client(of: node), WholeClusterTests.durable) }
  }

  private func isDelivered(_ producers: [NumberedProducer], by pattern: NumberedPatternSubscriber) -> Bool {
    producers.allSatisfy { $0.isDone && pattern.next[$0.topic] == $0.sent }
  }

  @Test("records of all nodes come, and those of topics made later", arguments: [nil, 1, 10])
  func allNodes(demand: Int?) throws {
    let cluster = try cluster(seed: 1)
    let first = try producers((0..<12).map { "orders.\($0)" }, cluster)
    for producer in first { producer.publish(10) }
    #expect(cluster.world.run(limit: .seconds(30)) { first.allSatisfy(\.isDone) })
    #expect(Set(first.compactMap { cluster.owner(of: $0.topic)?.name }).count > 1)
    let patterns = try ["a", "b", "c"].map {
      NumberedPatternSubscriber("orders.>", try cluster.client(of: $0), demand: demand)
    }
    let second = try producers((12..<20).map { "orders.\($0)" }, cluster)
    for producer in first + second { producer.publish(20) }
    let isDone = cluster.world.run(limit: .seconds(60)) {
      patterns.allSatisfy { isDelivered(first + second, by: $0) }
    }
    #expect(isDone, "\(patterns.map(\.next))")
    #expect(patterns.flatMap(\.problems) == [])
  }

  @Test("a topic that moves goes on where the subscriber is", arguments: [nil, 3])
  func moves(demand: Int?) throws {
    let cluster = try cluster(seed: 2)
    let producers = try producers((0..<8).map { "orders.\($0)" }, cluster)
    let patterns = try ["a", "b", "c"].map {
      NumberedPatternSubscriber("orders.*", try cluster.client(of: $0), demand: demand)
    }
    for round in 0..<6 {
      for producer in producers { producer.publish(15) }
      let node = ["a", "b", "c"][round % 3]
      cluster.node("a")?.member.drain(node) { _ in }
      for producer in producers { producer.publish(15) }
      cluster.world.run(for: .seconds(1))
      cluster.node("a")?.member.drain(node, false) { _ in }
      cluster.world.run(for: .seconds(1))
    }
    let isDone = cluster.world.run(limit: .seconds(60)) {
      patterns.allSatisfy { isDelivered(producers, by: $0) }
    }
    #expect(isDone, "\(patterns.map(\.next))")
    #expect(patterns.flatMap(\.problems) == [])
  }

  @Test("while a node is down only its topics pause")
  func nodeDown() throws {
    let cluster = try cluster(seed: 3)
    let producers = try producers((0..<8).map { "orders.\($0)" }, cluster, of: "b")
    let pattern = NumberedPatternSubscriber("orders.*", try cluster.client(of: "a"), demand: 1)
    for producer in producers { producer.publish(5) }
    #expect(cluster.world.run(limit: .seconds(30)) { isDelivered(producers, by: pattern) })
    let lost = Set(producers.map(\.topic).filter { cluster.owner(of: $0)?.name == "c" })
    #expect(!lost.isEmpty && lost.count < producers.count)
    cluster.node("c")?.kill()
    for producer in producers { producer.publish(5) }
    let others = producers.filter { !lost.contains($0.topic) }
    // Long before the lease of the killed node expires.
    #expect(cluster.world.run(limit: .milliseconds(500)) { isDelivered(others, by: pattern) })
    #expect(cluster.world.run(limit: .seconds(60)) { isDelivered(producers, by: pattern) })
    #expect(pattern.problems == [])
  }
}
