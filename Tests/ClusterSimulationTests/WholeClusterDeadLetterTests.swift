import ReactiveCore
import SluiceClient
import SluiceCluster
import SluiceIO
import SluiceSimulation
import Testing

/// Receives the dead letters of a group, in any order; the payload of each is a number. Unchecked: a world is used by one thread.
private final class DeadLetterReader: @unchecked Sendable {
  private(set) var numbers: [String] = []
  private(set) var offsets: [String] = []
  private(set) var problems: [String] = []
  private var subscription: AnyCancellable?

  init(_ topic: String, _ client: Client) {
    subscription = client.topic(topic, from: .earliest).sink { [unowned self] completion in
      problems.append("\(topic) has ended: \(completion)")
    } receiveValue: { [unowned self] record in
      numbers.append(record.string)
      offsets += record.headers.filter { $0.name == "sluice-dead-offset" }.map(\.string)
    }
  }
}

/// Dead letters of a group in a topic of another node.
@Suite("Dead letters between nodes")
struct WholeClusterDeadLetterTests {
  enum Trouble: CaseIterable {
    case none
    /// The node that serves the group's topic is lost.
    case groupOwner
    /// The node that serves the dead-letter topic is lost.
    case topicOwner
    /// One after the other.
    case bothInTurn
    case both
    /// The shards move to another node in order.
    case groupMoves
    case topicMoves
    /// The node stops for longer than its lease, and continues.
    case groupOwnerStops
    case topicOwnerStops
  }

  private let first = 30
  private let more = 10

  @Test("each is there once", arguments: Trouble.allCases, 1...3 as ClosedRange<UInt64>)
  func once(trouble: Trouble, seed: UInt64) throws {
    let cluster = WholeCluster(seed: seed, conditions: SimulatedConditions())
    // So many that each node has some.
    cluster.shards = 32
    for name in ["a", "b", "c"] { try cluster.start(name) }
    #expect(cluster.settle())
    func topic(_ name: String, of owner: String) throws -> String {
      try #require((0..<200).map { "\(name).\($0)" }.first { cluster.owner(of: $0)?.name == owner })
    }
    let (jobs, dead) = (try topic("jobs", of: "a"), try topic("dead", of: "b"))
    let client = try cluster.client(of: "c")
    for topic in [jobs, dead] {
      _ = try cluster.wait {
        client.createTopic(topic, settings: WholeClusterTests.durable, completion: $0)
      }
    }
    let producer = NumberedProducer(jobs, client, WholeClusterTests.durable)
    let reader = DeadLetterReader(dead, try cluster.client(of: "c"))
    let options = GroupOptions(acknowledgement: .explicit, deadLetters: dead)
    let worker = try cluster.client(of: "c").group("workers", of: jobs, options: options, from: .earliest)
      .sink { completion in
        Issue.record("the worker has ended: \(completion)")
      } receiveValue: {
        $0.reject()
      }
    defer { worker.cancel() }

    producer.publish(first)
    let count = Int(cluster.world.random.next(in: 1...20))
    #expect(cluster.world.run(limit: .seconds(60)) { reader.numbers.count >= count })
    cluster.world.run(for: cluster.world.random.next(in: .zero ... .milliseconds(50)))
    try make(trouble, cluster, jobs, dead)
    producer.publish(more)
    let haveAll = cluster.world.run(limit: .seconds(240)) {
      producer.isDone && Set(reader.numbers).count == first + more
    }
    #expect(haveAll, "\(reader.numbers)")
    // Resent records would arrive meanwhile.
    cluster.world.run(for: .seconds(30))
    #expect(reader.numbers.compactMap { Int($0) }.sorted() == Array(0..<first + more))
    #expect(reader.offsets == reader.numbers)
    #expect(producer.problems + reader.problems == [])
  }

  private func make(_ trouble: Trouble, _ cluster: WholeCluster, _ jobs: String, _ dead: String) throws {
    func pass() { cluster.world.run(for: cluster.world.random.next(in: .zero ... .seconds(5))) }
    switch trouble {
    case .none: break
    case .groupOwner: try lose("a", cluster)
    case .topicOwner: try lose("b", cluster)
    case .bothInTurn:
      try lose("a", cluster)
      pass()
      // The node that serves it by then, unless the clients are connected to that node.
      if let owner = cluster.owner(of: dead), owner.name != "c" { try lose(owner.name, cluster) }
    case .both:
      cluster.node("a")?.kill()
      try lose("b", cluster)
      try cluster.start("a")
    case .groupMoves: cluster.node("c")?.member.drain("a") { _ in }
    case .topicMoves:
      cluster.node("c")?.member.drain("b") { _ in }
      pass()
      cluster.node("c")?.member.drain("b", false) { _ in }
    case .groupOwnerStops: stop("a", cluster)
    case .topicOwnerStops: stop("b", cluster)
    }
  }

  /// Kills a node, and restarts it later.
  private func lose(_ name: String, _ cluster: WholeCluster) throws {
    cluster.node(name)?.kill()
    cluster.world.run(for: cluster.world.random.next(in: .milliseconds(100) ... .seconds(8)))
    try cluster.start(name)
  }

  private func stop(_ name: String, _ cluster: WholeCluster) {
    cluster.node(name)?.pause()
    cluster.world.run(for: .seconds(6))
    cluster.node(name)?.goOn()
  }
}
