import SluiceClient
import SluiceIO
import SluiceSimulation
import Testing

@testable import SluiceCluster

/// Clients redirected to the owner of a topic while that is paused and its lease hasn't expired yet.
@Suite("Clients of an owner that is paused")
struct PausedOwnerTests {
  @Test(
    "a stream that is opened while its owner is paused stands at the next one soon after the lease is over",
    arguments: [500, 1_000, 1_500, 1_900])
  func subscription(milliseconds: Int) throws {
    let cluster = WholeCluster(seed: UInt64(milliseconds))
    for name in ["a", "b", "c"] { try cluster.start(name) }
    #expect(cluster.settle())
    let owner = try #require(cluster.owner(of: "orders.new"))
    let other = try #require(cluster.running.first { $0 !== owner })
    let client = try cluster.client(of: other.name)
    var settings = TopicSettings()
    settings.storage = .durable
    let producer = NumberedProducer("orders.new", client, settings)
    producer.publish(10)
    #expect(cluster.run(limit: .seconds(10)) { producer.isDone })
    let late = try cluster.client(of: other.name)

    let begin = cluster.world.now
    owner.pause()
    cluster.world.run(for: .milliseconds(milliseconds))
    let reader = ArrivingTexts(of: late.topic("orders.new", from: .earliest), in: cluster.world)
    #expect(cluster.run(limit: .seconds(10)) { reader.texts.count == 10 })
    // A lease lasts 2 s, and the engine takes some time to end it; connecting alone may take 2 s more.
    let paused = cluster.world.now - begin
    #expect(paused < .milliseconds(2_700), "\(paused)")
    owner.goOn()
    cluster.world.run(for: .seconds(1))
    #expect(reader.texts == (0..<10).map { "\($0)" })
  }
}
