import SluiceClient
import SluiceIO
import SluiceSimulation
import Testing

@testable import SluiceBroker
@testable import SluiceCluster

/// Subscribers of nodes other than the owner share a subscription at the owner.
@Suite("The records that an owner sends to other nodes")
struct RelayedFanOutTests {
  /// The records that a node has received from another one, over the links between them.
  private func received(_ node: WholeNode, from owner: WholeNode) -> Int {
    node.broker.links.first { $0.node == owner.name }?.recordsReceived ?? 0
  }

  @Test(
    "with 100 subscribers spread over three nodes, each record goes to two nodes, once",
    arguments: [false, true])
  func oncePerNode(isDurable: Bool) throws {
    let cluster = WholeCluster(seed: 7)
    for name in ["a", "b", "c"] { try cluster.start(name) }
    #expect(cluster.settle())
    let owner = try #require(cluster.owner(of: "prices"))
    let others = cluster.running.filter { $0 !== owner }
    let producer = NumberedProducer(
      "prices", try cluster.client(of: owner.name), isDurable ? WholeClusterTests.durable : TopicSettings())
    var subscribers: [NumberedSubscriber] = []
    for index in 0..<100 {
      let client = try cluster.client(of: cluster.running[index % 3].name) { $0.routing = .relay }
      subscribers.append(NumberedSubscriber("prices", client))
    }
    producer.publish(1)
    #expect(cluster.run(limit: .seconds(30)) { subscribers.allSatisfy { $0.next == 1 } })

    let before = others.map { received($0, from: owner) }
    let count = 500
    for _ in 0..<10 {
      producer.publish(count / 10)
      cluster.world.run(for: .milliseconds(20))
    }
    #expect(cluster.run(limit: .seconds(30)) { subscribers.allSatisfy { $0.next == 1 + count } })
    let after = others.map { received($0, from: owner) }
    #expect(zip(before, after).map { $1 - $0 } == [count, count])
    #expect(subscribers.flatMap(\.problems) + producer.problems == [])
  }
}
