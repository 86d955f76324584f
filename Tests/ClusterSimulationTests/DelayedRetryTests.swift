import ReactiveCore
import SluiceClient
import SluiceCluster
import SluiceIO
import SluiceSimulation
import Testing

/// Retries each record once, with a delay. Unchecked: a world is used by one thread.
private final class RetryingWorker: @unchecked Sendable {
  private(set) var deliveries: [(number: Int, time: MonotonicTime)] = []
  private(set) var problems: [String] = []
  private let world: SimulatedWorld
  private var subscription: AnyCancellable?

  init(_ topic: String, _ client: Client, _ world: SimulatedWorld, delay: Duration) {
    self.world = world
    let options = GroupOptions(acknowledgement: .explicit)
    subscription = client.group("workers", of: topic, options: options, from: .earliest).sink {
      [unowned self] completion in
      problems.append("the worker has ended: \(completion)")
    } receiveValue: { [unowned self] delivery in
      deliveries.append((delivery.count, self.world.now))
      if delivery.count == 1 { delivery.retry(after: delay) } else { delivery.acknowledge() }
    }
  }
}

/// Retries with a delay while the group goes to another node.
@Suite("Delayed retries between nodes")
struct DelayedRetryTests {
  enum Change: CaseIterable {
    /// The node is lost.
    case lost
    /// The node gives its shards to others in order.
    case drained
  }

  @Test(
    "another node delivers the record at its time", arguments: Change.allCases, 1...3 as ClosedRange<UInt64>)
  func takeOver(change: Change, seed: UInt64) throws {
    let cluster = WholeCluster(seed: seed, conditions: SimulatedConditions())
    cluster.shards = 32
    for name in ["a", "b", "c"] { try cluster.start(name) }
    #expect(cluster.settle())
    let jobs = try #require(
      (0..<200).map { "jobs.\($0)" }.first { cluster.owner(of: $0)?.name == "a" })
    let client = try cluster.client(of: "c")
    _ = try cluster.wait { client.createTopic(jobs, settings: WholeClusterTests.durable, completion: $0) }
    let producer = NumberedProducer(jobs, client, WholeClusterTests.durable)

    let delay = Duration.seconds(40)
    let worker = RetryingWorker(jobs, client, cluster.world, delay: delay)
    producer.publish(1)
    #expect(cluster.world.run(limit: .seconds(30)) { worker.deliveries.count == 1 })
    // It is stored meanwhile.
    cluster.world.run(for: .seconds(5))
    switch change {
    case .lost: cluster.node("a")?.kill()
    case .drained: cluster.node("c")?.member.drain("a") { _ in }
    }
    #expect(cluster.world.run(limit: .seconds(25)) { (cluster.owner(of: jobs)?.name ?? "a") != "a" })
    #expect(worker.deliveries.count == 1)
    #expect(cluster.world.run(limit: .seconds(60)) { worker.deliveries.count == 2 })
    try #require(worker.deliveries.map(\.number) == [1, 2])
    let waited = worker.deliveries[1].time - worker.deliveries[0].time
    #expect(waited >= delay && waited < delay + .seconds(5), "\(waited)")
    #expect(worker.problems == [])
  }
}
