import ReactiveCore
import SluiceClient
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceCluster

/// The names under which operators see clients of topics that another node serves.
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
      let info = try cluster.wait { asking.topicInfo("orders", completion: $0) }
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

  @Test(
    "subscribers who share what comes to their node have the name of one of them, and the number of the others"
  )
  func mirrors() throws {
    let (cluster, owner, other, _) = try cluster()
    let producer = NumberedProducer("orders", try cluster.client(of: owner), TopicSettings())
    producer.publish(1)
    cluster.world.run(for: .seconds(1))
    var readers: [RequestingReader] = []
    for name in ["one", "two", "three"] {
      let client = try cluster.client(of: other) {
        $0.name = name
        $0.routing = .relay
      }
      readers.append(RequestingReader(client.topic("orders", from: .earliest)))
      cluster.world.run(for: .milliseconds(100))
      readers.last?.request(.unlimited)
      cluster.world.run(for: .seconds(1))
    }
    let asking = try cluster.client(of: owner)
    func named() throws -> [String] {
      cluster.world.run(for: .seconds(1))
      let info = try cluster.wait { asking.topicInfo("orders", completion: $0) }
      #expect(info.subscriptions.map(\.node) == [other])
      return info.subscriptions.map(\.client)
    }
    #expect(try named() == ["one and 2 others"])
    readers[1].cancel()
    #expect(try named() == ["one and 1 other"])
    readers[0].cancel()
    #expect(try named() == ["three"])
    producer.publish(1)
    cluster.world.run(for: .seconds(1))
    #expect(readers[2].offsets == [0, 1])
  }

  @Test(
    "producers of other nodes that wait for a full store have their own names, and are forgotten when they are gone"
  )
  func waiters() throws {
    let cluster = WholeCluster(seed: 64)
    cluster.engineOptions.limit = 5_000
    for name in ["a", "b", "c"] { try cluster.start(name) }
    #expect(cluster.settle())
    let owner = try #require(cluster.owner(of: "orders")).name
    let other = ["a", "b", "c"].filter { $0 != owner }[0]
    let clients = try ["shop", "mill"].map { name in
      try cluster.client(of: other) {
        $0.name = name
        $0.routing = .relay
      }
    }
    let producers = clients.map { NumberedProducer("orders", $0, WholeClusterTests.durable) }
    for _ in 0..<20 {
      for producer in producers { producer.publish(50) }
      cluster.world.run(for: .milliseconds(500))
    }
    cluster.world.run(for: .seconds(5))
    #expect(producers.allSatisfy { !$0.isDone })
    for node in ["a", "b", "c"] {
      let asking = try cluster.client(of: node)
      let info = try cluster.wait { asking.topicInfo("orders", completion: $0) }
      #expect(info.publications.map(\.client).sorted() == ["mill", "shop"], "\(node)")
      #expect(info.publications.allSatisfy { $0.node == other && $0.reason == .storageFull }, "\(node)")
      #expect(info.summary.publications == 2, "\(node)")
    }
    clients[1].close()
    cluster.world.run(for: .seconds(90))
    let asking = try cluster.client(of: owner)
    let info = try cluster.wait { asking.topicInfo("orders", completion: $0) }
    #expect(info.publications.map(\.client) == ["shop"])
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

// @unchecked: used by one thread.
private final class SnapshotBox: @unchecked Sendable {
  var snapshot: BrokerSnapshot?
}
