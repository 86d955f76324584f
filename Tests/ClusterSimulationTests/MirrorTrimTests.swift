import ReactiveCore
import SluiceClient
import SluiceSimulation
import Testing

@testable import SluiceBroker

/// Records of another node's topic that a node keeps for its subscribers, after the topic was trimmed.
@Suite("A trim of a topic that other nodes relay")
struct MirrorTrimTests {
  /// A topic of 20 records, two subscribers of another node that share its records, and a third node.
  private struct Scene {
    let cluster: WholeCluster
    let owner: String
    let other: String
    let producer: NumberedProducer
    /// Has received all records.
    let quick: RequestingReader
    /// Has received the first record, and requests no more.
    let slow: RequestingReader

    init(isDurable: Bool, lag: SubscriptionPlan.Lag) throws {
      cluster = WholeCluster(seed: 62)
      for name in ["a", "b", "c"] { try cluster.start(name) }
      #expect(cluster.settle())
      let name = try #require(cluster.owner(of: "prices")).name
      let others = ["a", "b", "c"].filter { $0 != name }
      (owner, other) = (name, others[0])
      producer = NumberedProducer(
        "prices", try cluster.client(of: owner), isDurable ? WholeClusterTests.durable : TopicSettings())
      producer.publish(1)
      cluster.world.run(for: .seconds(1))
      let client = try cluster.client(of: other) { $0.routing = .relay }
      quick = RequestingReader(client.topic("prices", from: .earliest, lag: lag))
      slow = RequestingReader(client.topic("prices", from: .earliest, lag: lag))
      cluster.world.run(for: .milliseconds(100))
      quick.request(.unlimited)
      slow.request(.max(1))
      cluster.world.run(for: .seconds(1))
      #expect(slow.offsets == [0])
      producer.publish(19)
      cluster.world.run(for: .seconds(1))
      #expect(quick.offsets == Array(0..<20))
    }

    /// The number of records that the relaying node has received from the owner.
    var received: Int {
      cluster.node(other)?.broker.links.first { $0.node == owner }?.recordsReceived ?? 0
    }

    func trim(keepingLast count: UInt64) throws {
      let client = try cluster.client(of: owner)
      _ = try cluster.wait { client.trimTopic("prices", keepingLast: count, completion: $0) }
      cluster.world.run(for: .seconds(1))
    }
  }

  @Test("a subscriber gets no trimmed record that had come to its node", arguments: [false, true])
  func trim(isDurable: Bool) throws {
    let scene = try Scene(isDurable: isDurable, lag: .skip)
    // Both subscribers read records that were sent once.
    #expect(scene.received == 21)
    try scene.trim(keepingLast: 2)
    scene.slow.request(.unlimited)
    scene.cluster.world.run(for: .seconds(1))
    #expect(scene.slow.offsets == [0, 18, 19])
    scene.producer.publish(1)
    scene.cluster.world.run(for: .seconds(1))
    #expect(scene.slow.offsets == [0, 18, 19, 20])
    #expect(scene.quick.offsets == Array(0..<21))
  }

  @Test("a subscriber that wants to know of a gap fails after a purge", arguments: [false, true])
  func purge(isDurable: Bool) throws {
    let scene = try Scene(isDurable: isDurable, lag: .fail)
    try scene.trim(keepingLast: 0)
    scene.slow.request(.unlimited)
    scene.cluster.world.run(for: .seconds(1))
    #expect(scene.slow.offsets == [0])
    guard case .failure(let error)? = scene.slow.completion else {
      Issue.record("the subscription goes on")
      return
    }
    #expect(error.code == .lagged)
    #expect(scene.quick.completion == nil)
  }

  @Test("neither does one whose node hears of the trim too late, since the two nodes had lost each other")
  func cut() throws {
    let scene = try Scene(isDurable: true, lag: .skip)
    scene.cluster.cut(scene.owner, scene.other)
    // The node closes its links.
    scene.cluster.world.run(for: .seconds(15))
    try scene.trim(keepingLast: 2)
    scene.cluster.heal(scene.owner, scene.other)
    scene.cluster.world.run(for: .seconds(10))
    scene.slow.request(.unlimited)
    scene.cluster.world.run(for: .seconds(5))
    #expect(scene.slow.offsets == [0, 18, 19])
    #expect(scene.quick.offsets == Array(0..<20))
  }

  @Test("neither does one of a topic that has ended before it was trimmed", arguments: [false, true])
  func ended(isDurable: Bool) throws {
    let scene = try Scene(isDurable: isDurable, lag: .skip)
    let client = try scene.cluster.client(of: scene.owner)
    client.subject("prices").send(completion: .finished)
    scene.cluster.world.run(for: .seconds(1))
    #expect(scene.quick.completion == .finished)
    try scene.trim(keepingLast: 2)
    scene.slow.request(.max(5))
    scene.cluster.world.run(for: .seconds(1))
    #expect(scene.slow.offsets == [0, 18, 19] && scene.slow.completion == .finished)
  }

  @Test("a subscriber that comes later begins at the floor", arguments: [false, true])
  func late(isDurable: Bool) throws {
    let scene = try Scene(isDurable: isDurable, lag: .skip)
    try scene.trim(keepingLast: 3)
    let client = try scene.cluster.client(of: scene.other) { $0.routing = .relay }
    let late = RequestingReader(client.topic("prices", from: .earliest))
    scene.cluster.world.run(for: .milliseconds(100))
    late.request(.unlimited)
    scene.cluster.world.run(for: .seconds(1))
    #expect(late.offsets == [17, 18, 19])
  }

  @Test("what smaller limits no longer keep isn't replayed, and what has come to a node isn't lost")
  func limits() throws {
    let scene = try Scene(isDurable: false, lag: .skip)
    let client = try scene.cluster.client(of: scene.owner)
    var settings = TopicSettings()
    settings.replayRecords = 2
    _ = try scene.cluster.wait { client.setTopic("prices", to: settings, completion: $0) }
    scene.cluster.world.run(for: .seconds(1))
    let late = RequestingReader(client.topic("prices", from: .earliest))
    scene.cluster.world.run(for: .milliseconds(100))
    late.request(.unlimited)
    scene.slow.request(.unlimited)
    scene.cluster.world.run(for: .seconds(1))
    #expect(late.offsets == [18, 19])
    // As for a subscriber of the owner: limits apply to new subscriptions.
    #expect(scene.slow.offsets == Array(0..<20))
  }
}
