import ReactiveCore
import SluiceClient
import SluiceSimulation
import Testing

@testable import SluiceCluster

/// The floor of a topic after another node has taken it over.
@Suite("The floor behind a take-over")
struct TakeOverFloorTests {
  @Test(
    "what has expired by then isn't delivered to the first subscriber, whose subscription waited for the new owner",
    arguments: [0, 5])
  func age(fresh: Int) throws {
    let cluster = WholeCluster(seed: 63)
    // An early checkpoint: the next owner reads records before it only on request.
    cluster.engineOptions.checkpointBytes = 500
    for name in ["a", "b", "c"] { try cluster.start(name) }
    #expect(cluster.settle())
    let owner = try #require(cluster.owner(of: "news"))
    let other = try #require(cluster.running.first { $0 !== owner })
    var settings = WholeClusterTests.durable
    settings.replayAge = 20_000
    let producer = NumberedProducer("news", try cluster.client(of: owner.name), settings)
    for _ in 0..<40 {
      producer.publish(1)
      cluster.world.run(for: .milliseconds(20))
    }
    let client = try cluster.client(of: other.name) { $0.routing = .relay }
    cluster.world.run(for: .seconds(18))
    producer.publish(fresh)
    cluster.world.run(for: .seconds(1))
    #expect(producer.isDone)
    owner.kill()
    cluster.world.run(for: .milliseconds(100))
    let reader = RequestingReader(client.topic("news", from: .earliest))
    cluster.world.run(for: .milliseconds(10))
    reader.request(.unlimited)
    #expect(cluster.run(limit: .seconds(60)) { cluster.isSettled })
    let heir = NumberedProducer("news", try cluster.client(of: other.name), settings)
    heir.publish(1)
    #expect(cluster.run(limit: .seconds(30)) { heir.isDone })
    cluster.world.run(for: .seconds(1))
    #expect(reader.offsets == Array(40...UInt64(40 + fresh)))
  }
}
