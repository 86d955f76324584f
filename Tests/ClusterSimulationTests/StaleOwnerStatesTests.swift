import ReactiveCore
import SluiceClient
import SluiceCluster
import SluiceIO
import SluiceSimulation
import SluiceTopics
import Testing

/// An owner that has lost the engine, while another node has taken over its shards, uses none of its former state of groups and durable cursors.
@Suite("Groups and cursors at an owner without a valid lease")
struct StaleOwnerStatesTests {
  /// Requests records of a group as the test says, and acknowledges them. Unchecked: a world is used by one thread.
  private final class Member: Subscriber, @unchecked Sendable {
    private(set) var numbers: [String] = []
    private var subscription: (any Subscription)?

    init(_ topic: String, _ client: Client) {
      client.group("workers", of: topic, options: GroupOptions(acknowledgement: .explicit), from: .earliest)
        .subscribe(self)
    }

    func receive(subscription: any Subscription) { self.subscription = subscription }

    func receive(_ delivery: Delivery) -> Subscribers.Demand {
      numbers.append(delivery.record.string)
      delivery.acknowledge()
      return .none
    }

    func receive(completion: Subscribers.Completion<ClientError>) { numbers.append("\(completion)") }

    func ask(_ count: Int) { subscription?.request(.max(count)) }
  }

  /// Reads and commits the records of a durable cursor. Unchecked: a world is used by one thread.
  private final class Reader: @unchecked Sendable {
    private(set) var numbers: [String] = []
    private var subscription: AnyCancellable?

    init(_ topic: String, _ client: Client) {
      subscription = client.topic(topic, from: .earliest, cursor: "reader").sink { [unowned self] in
        numbers.append("\($0)")
      } receiveValue: { [unowned self] in
        numbers.append($0.string)
      }
    }
  }

  private struct Scene {
    let cluster: WholeCluster
    let owner: WholeNode
    let other: WholeNode
    let producer: NumberedProducer

    init(_ settings: TopicSettings) throws {
      cluster = WholeCluster(seed: 3)
      for name in ["a", "b"] { try cluster.start(name) }
      #expect(cluster.settle())
      let owner = try #require(cluster.owner(of: "orders"))
      self.owner = owner
      other = try #require(cluster.running.first { $0 !== owner })
      producer = NumberedProducer("orders", try cluster.client(of: owner.name), settings)
      producer.publish(20)
      let producer = producer
      let isDone = cluster.run(limit: .seconds(30)) { producer.isDone }
      #expect(isDone)
    }

    func run(until condition: () -> Bool) -> Bool { cluster.run(limit: .seconds(30), until: condition) }

    /// The owner loses the engine, and the other node takes over its shards.
    func loseEngine() {
      cluster.cutEngine(from: owner.name)
      let hasSuccessor = run { other.member.routes.route(of: "orders") == .local }
      #expect(hasSuccessor)
      #expect(owner.member.routes.route(of: "orders") == .local)
    }
  }

  @Test("what another owner's members have acknowledged isn't given out")
  func group() throws {
    let scene = try Scene(WholeClusterTests.durable)
    let first = Member("orders", try scene.cluster.client(of: scene.owner.name))
    first.ask(10)
    #expect(scene.run { first.numbers.count == 10 })
    scene.cluster.world.run(for: .seconds(1))

    scene.loseEngine()
    let second = Member("orders", try scene.cluster.client(of: scene.other.name))
    second.ask(20)
    #expect(scene.run { second.numbers.count == 10 })
    first.ask(10)
    scene.cluster.world.run(for: .seconds(5))
    scene.cluster.healEngine(for: scene.owner.name)
    scene.cluster.world.run(for: .seconds(10))
    #expect(first.numbers == (0..<10).map(String.init))
    #expect(second.numbers == (10..<20).map(String.init))
    // The member continues at the next owner.
    scene.producer.publish(20)
    #expect(scene.run { first.numbers.count + second.numbers.count == 40 })
  }

  @Test("a subscription with a cursor doesn't begin where that stood before")
  func cursor() throws {
    let scene = try Scene(WholeClusterTests.durable)
    var first: Reader? = Reader("orders", try scene.cluster.client(of: scene.owner.name))
    #expect(scene.run { first?.numbers.count == 20 })
    scene.cluster.world.run(for: .seconds(1))
    first = nil
    scene.cluster.world.run(for: .seconds(1))

    scene.loseEngine()
    let producer = NumberedProducer(
      "orders", try scene.cluster.client(of: scene.other.name), WholeClusterTests.durable)
    var second: Reader? = Reader("orders", try scene.cluster.client(of: scene.other.name))
    producer.publish(10)
    #expect(scene.run { second?.numbers.count == 10 })
    scene.cluster.world.run(for: .seconds(1))
    second = nil
    let third = Reader("orders", try scene.cluster.client(of: scene.owner.name))
    scene.cluster.world.run(for: .seconds(5))
    scene.cluster.healEngine(for: scene.owner.name)
    producer.publish(5)
    #expect(scene.run { third.numbers.count >= 5 })
    #expect(third.numbers == ["10", "11", "12", "13", "14"])
  }

  @Test(
    "members go on when the lease is valid again", arguments: [TopicSettings(), WholeClusterTests.durable])
  func resumed(settings: TopicSettings) throws {
    let cluster = WholeCluster(seed: 3)
    try cluster.start("a")
    #expect(cluster.settle())
    let producer = NumberedProducer("orders", try cluster.client(of: "a"), settings)
    let member = Member("orders", try cluster.client(of: "a"))
    member.ask(1_000)
    producer.publish(20)
    #expect(cluster.run(limit: .seconds(10)) { member.numbers.count == 20 })
    cluster.cutEngine(from: "a")
    cluster.world.run(for: .seconds(3))
    producer.publish(20)
    cluster.world.run(for: .seconds(3))
    #expect(member.numbers.count == 20)
    cluster.healEngine(for: "a")
    #expect(cluster.run(limit: .seconds(30)) { member.numbers.count == 40 })
    #expect(member.numbers == (0..<40).map(String.init))
  }
}
