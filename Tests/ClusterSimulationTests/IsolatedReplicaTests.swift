import SluiceClient
import SluiceEngineModel
import SluiceIO
import SluiceNATS
import SluiceSimulation
import Testing

@testable import SluiceCluster

/// A server of the engine is isolated from the others, which count on its replicas for minutes: reads sent to it get no reply.
@Suite("A cluster with an isolated replica")
struct IsolatedReplicaTests {
  /// Starts two nodes, isolates one server, and kills the owner of the topic.
  ///
  /// - Parameter limit: how long the other node may take.
  /// - Returns: whether that node serves all published records within the limit.
  private func takeOver(seed: UInt64, replicaTimeout: Duration?, within limit: Duration) throws -> Bool {
    let cluster = WholeCluster(seed: seed)
    cluster.engineOptions.replicaTimeout = replicaTimeout
    cluster.engine.faults.isolatedReadOneIn = 1
    // Shorter than a lease, so that no shard moves before the owner is killed.
    cluster.engine.faults.election = .milliseconds(100) ... .milliseconds(200)
    for name in ["a", "b"] { try cluster.start(name) }
    #expect(cluster.settle())
    let owner = try #require(cluster.owner(of: "orders"))
    let other = try #require(cluster.running.first { $0 !== owner })
    let producer = NumberedProducer(
      "orders", try cluster.client(of: owner.name), WholeClusterTests.durable)
    for _ in 0..<20 {
      producer.publish(5)
      #expect(cluster.world.run(limit: .seconds(10)) { producer.isDone })
    }
    // Connections to that server move to another one.
    let isolated = Int(seed % 3)
    for node in [owner, other] {
      let way = cluster.addresses(for: node.name)[isolated]
      cluster.world.network.cut(.host(way.host, port: way.port))
    }
    cluster.engine.isolate(isolated)
    #expect(
      cluster.world.run(limit: .seconds(60)) {
        cluster.isSettled
          && cluster.engine.streamNames.allSatisfy { hasLeader($0, besides: isolated, cluster) }
      })
    cluster.world.run(for: .seconds(5))

    owner.kill()
    let subscriber = NumberedSubscriber("orders", try cluster.client(of: other.name))
    let isServed = cluster.world.run(limit: limit) { subscriber.next == producer.sent }
    #expect(cluster.engine.lostReads > 0)
    #expect(subscriber.problems == [])
    return isServed
  }

  private func hasLeader(_ stream: String, besides isolated: Int, _ cluster: WholeCluster) -> Bool {
    cluster.engine.leader(of: stream).map { $0 != isolated } ?? false
  }

  @Test("another node takes over within seconds", arguments: 1...6 as ClosedRange<UInt64>)
  func leadersAreAsked(seed: UInt64) throws {
    #expect(try takeOver(seed: seed, replicaTimeout: .seconds(1), within: .seconds(6)))
  }

  @Test(
    "without the leaders' answers no node takes over, which the model has to show",
    arguments: 1...3 as ClosedRange<UInt64>)
  func onlyReplicasAreAsked(seed: UInt64) throws {
    #expect(try !takeOver(seed: seed, replicaTimeout: nil, within: .seconds(60)))
  }
}
