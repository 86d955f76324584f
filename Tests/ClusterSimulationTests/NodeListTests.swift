import SluiceClient
import SluiceCluster
import SluiceIO
import SluiceSimulation
import SluiceTopics
import SluiceWire
import Testing

/// The nodes that a broker includes in requests about all nodes.
@Suite("The list of nodes that live")
struct NodeListTests {
  /// A cluster of three nodes; `c` is drained.
  private func cluster() throws -> WholeCluster {
    let cluster = WholeCluster(seed: 5)
    for name in ["a", "b", "c"] { try cluster.start(name) }
    #expect(cluster.settle())
    cluster.node("a")?.member.drain("c") { _ in }
    let hasNone = cluster.world.run(limit: .seconds(60)) {
      cluster.isSettled && !["a", "b"].contains { owners(cluster, $0).contains("c") }
    }
    #expect(hasNone)
    return cluster
  }

  private func owners(_ cluster: WholeCluster, _ name: String) -> [String] {
    cluster.node(name)?.member.routes.owners.map(\.name) ?? []
  }

  private func nodes(_ cluster: WholeCluster, _ name: String) -> [String] {
    cluster.node(name)?.member.routes.nodes.map(\.name) ?? []
  }

  @Test("a node without shards that dies isn't asked for its topics any more")
  func nodeDies() throws {
    let cluster = try cluster()
    let client = try cluster.client(of: "a")
    let producer = NumberedProducer("orders", client, TopicSettings())
    producer.publish(1)
    #expect(cluster.world.run(limit: .seconds(10)) { producer.isDone })
    #expect(nodes(cluster, "a") == ["b", "c"])
    cluster.node("c")?.kill()
    let isKnown = cluster.world.run(limit: .seconds(10)) {
      nodes(cluster, "a") == ["b"] && nodes(cluster, "b") == ["a"]
    }
    #expect(isKnown)
    let began = cluster.world.now
    let topics = try cluster.wait { client.topics(completion: $0) }
    #expect(topics.map(\.topic) == ["orders"])
    // The reply doesn't wait for a link.
    #expect(cluster.world.now - began < .seconds(1))
  }

  @Test("a node that comes and owns nothing is among those that are asked")
  func nodeComes() throws {
    let cluster = try cluster()
    cluster.node("c")?.kill()
    let isGone = cluster.world.run(limit: .seconds(10)) {
      nodes(cluster, "a") == ["b"] && nodes(cluster, "b") == ["a"]
    }
    #expect(isGone)
    try cluster.start("c")
    let isKnown = cluster.world.run(limit: .seconds(30)) {
      nodes(cluster, "a") == ["b", "c"] && nodes(cluster, "b") == ["a", "c"]
    }
    #expect(isKnown)
    #expect(owners(cluster, "a") == ["b"])
  }
}
