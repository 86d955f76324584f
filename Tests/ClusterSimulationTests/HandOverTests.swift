import SluiceClient
import SluiceEngineModel
import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceTopics
import Testing

@testable import SluiceCluster

/// How a stopping node hands over its shards to other nodes, step by step.
@Suite("Planned hand-over of shards")
struct HandOverTests {
  private static let durable: TopicSettings = {
    var settings = TopicSettings()
    settings.storage = .durable
    return settings
  }()

  private func cluster(seed: UInt64) throws -> WholeCluster {
    let cluster = WholeCluster(seed: seed)
    for name in ["a", "b", "c"] { try cluster.start(name) }
    #expect(cluster.settle())
    // Until all nodes have finished waiting for others.
    cluster.world.run(for: .seconds(1))
    return cluster
  }

  private func takeOvers(_ cluster: WholeCluster, from giver: WholeNode) -> [TakeOver] {
    cluster.nodes.filter { $0 !== giver }.flatMap(\.events).compactMap { event in
      guard case .takenOver(let takeOver) = event, takeOver.cause == .handedOver(from: giver.name) else {
        return nil
      }
      return takeOver
    }
  }

  private func stop(_ node: WholeNode, in cluster: WholeCluster) {
    node.stop()
    #expect(cluster.run(limit: .seconds(30)) { !node.isRunning && cluster.isSettled })
  }

  @Test("a shard that moves costs two messages of the cluster's stream, and two of its own")
  func messages() throws {
    let cluster = try cluster(seed: 21)
    let node = cluster.running[0]
    let count = (0..<cluster.shards).count {
      node.member.routes.route(of: ShardID(rawValue: UInt32($0))) == .local
    }
    #expect(count > 0)
    let former = cluster.engine.committed
    var (control, own) = (0, 0)
    cluster.engine.committed = { stream, message in
      former(stream, message)
      if message.subject.hasPrefix("ctl.shard.") { control += 1 }
      if stream != ControlRecord.stream { own += 1 }
    }
    stop(node, in: cluster)
    #expect(takeOvers(cluster, from: node).count == count)
    #expect(control == 2 * count)
    #expect(own == 2 * count)
  }

  @Test("servers of the engine that are behind don't hold a hand-over up", arguments: [5, 200])
  func laggingReplicas(milliseconds: Int) throws {
    let cluster = try cluster(seed: 22)
    let producer = NumberedProducer("orders.new", try cluster.client(of: "a"), Self.durable)
    producer.publish(10)
    #expect(cluster.run(limit: .seconds(10)) { producer.isDone })
    for server in cluster.engine.servers { server.lag = .milliseconds(milliseconds) }
    cluster.world.run(for: .seconds(1))
    let owner = try #require(cluster.owner(of: "orders.new"))
    stop(owner, in: cluster)
    let takeOvers = takeOvers(cluster, from: owner)
    #expect(!takeOvers.isEmpty)
    for takeOver in takeOvers { #expect(takeOver.duration < .milliseconds(20), "\(takeOver)") }
  }

  @Test(
    "a topic's records pause for as long as its shard's messages take, and its clients",
    arguments: [
      ClientRouting.direct, .relay,
    ])
  func pause(routing: ClientRouting) throws {
    for seed: UInt64 in 31...40 {
      let cluster = try cluster(seed: seed)
      let owner = try #require(cluster.owner(of: "orders.new"))
      let others = cluster.running.filter { $0 !== owner }.map(\.name)
      let producer = NumberedProducer(
        "orders.new", try cluster.client(of: others[0]) { $0.routing = routing }, Self.durable)
      let reader = try cluster.client(of: others[1]) { $0.routing = routing }
      let arrivals = ArrivingTexts(of: reader.topic("orders.new", from: .earliest), in: cluster.world)
      for round in 0..<200 {
        if round == 50 { owner.stop() }
        producer.publish(1)
        cluster.world.run(for: .milliseconds(5))
      }
      #expect(cluster.run(limit: .seconds(5)) { arrivals.texts.count == 200 && producer.isDone })
      #expect(!owner.isRunning && producer.problems == [])
      #expect(arrivals.texts == (0..<200).map { "\($0)" })
      // The client waits for 5 to 10 ms before it reopens a stream.
      #expect(arrivals.longestPause < .milliseconds(40), "seed \(seed): \(arrivals.longestPause)")
    }
  }
}
