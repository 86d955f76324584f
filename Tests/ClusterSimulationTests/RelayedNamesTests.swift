import ReactiveCore
import SluiceClient
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker

/// By which names operators see clients of topics that another node serves.
@Suite("Names of clients of other nodes")
struct RelayedNamesTests {
  private func cluster() throws -> (WholeCluster, owner: String, other: String, third: String) {
    let cluster = WholeCluster(seed: 61)
    for name in ["a", "b", "c"] { try cluster.start(name) }
    #expect(cluster.settle())
    let owner = try #require(cluster.owner(of: "orders")).name
    let others = ["a", "b", "c"].filter { $0 != owner }
    return (cluster, owner, others[0], others[1])
  }

  @Test(
    "the subscriber that limits a topic, a group's member and a producer have their own names at every node")
  func names() throws {
    let (cluster, owner, other, third) = try cluster()
    var lossless = TopicSettings()
    lossless.flow = .lossless
    lossless.bufferRecords = 0
    func named(_ name: String) throws -> Client {
      try cluster.client(of: other) {
        $0.name = name
        $0.routing = .relay
      }
    }
    let producer = NumberedProducer("orders", try named("shop"), lossless)
    producer.publish(1)
    cluster.world.run(for: .seconds(1))
    let worker = try named("worker")
    let reader = IdleSubscriber(worker.topic("orders", from: .earliest))
    producer.publish(1)
    cluster.world.run(for: .seconds(3))
    for node in [owner, other, third] {
      let asking = try cluster.client(of: node)
      let info = try cluster.wait { asking.topic(show: "orders", completion: $0) }
      #expect(info.subscriptions.map(\.client) == ["worker"], "\(node)")
      #expect(info.subscriptions.map(\.node) == [other], "\(node)")
      #expect(info.publications.map(\.client) == ["shop"], "\(node)")
      #expect(info.publications.map(\.node) == [other], "\(node)")
      // The number is that of the connection at the client's node.
      let first = try #require(info.subscriptions.first)
      let there = try cluster.client(of: other)
      let connections = try cluster.wait { there.connections(completion: $0) }
      #expect(connections.first { $0.connection == first.connection }?.client == "worker")
    }
    withExtendedLifetime(reader) {}
  }

  @Test("a connection shows the topics of other nodes that it uses")
  func topics() throws {
    let (cluster, _, other, _) = try cluster()
    let client = try cluster.client(of: other) { $0.routing = .relay }
    let reader = ArrivingTexts(of: client.topic("orders", from: .earliest), in: cluster.world)
    cluster.world.run(for: .seconds(1))
    let node = try #require(cluster.node(other))
    let box = SnapshotBox()
    let request = SnapshotRequest(
      topics: 0, subscriptionsPerTopic: 0, publicationsPerTopic: 0, connections: 100, consumersPerTopic: 0)
    node.broker.snapshot(request) { box.snapshot = $0.assembled() }
    #expect(cluster.run(limit: .seconds(5)) { box.snapshot != nil })
    #expect(box.snapshot?.connections.flatMap(\.topics) == ["orders"])
    withExtendedLifetime(reader) {}
  }
}

/// Requests nothing. Unchecked: a world is used by one thread.
private final class IdleSubscriber: Subscriber, @unchecked Sendable {
  private var subscription: (any Subscription)?

  init(_ topic: RemoteTopic<TopicRecord>) { topic.subscribe(self) }

  func receive(subscription: any Subscription) { self.subscription = subscription }
  func receive(_ input: TopicRecord) -> Subscribers.Demand { .none }
  func receive(completion: Subscribers.Completion<ClientError>) {}
}

// @unchecked: one thread uses it.
private final class SnapshotBox: @unchecked Sendable {
  var snapshot: BrokerSnapshot?
}
