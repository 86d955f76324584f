import ReactiveCore
import SluiceClient
import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceTopics
import Testing

@testable import SluiceBroker
@testable import SluiceCluster

/// Nodes that others can't reach at their advertised address.
@Suite("Nodes that can't be reached")
struct UnreachableNodeTests {
  private func status(of name: String, in cluster: WholeCluster) throws -> ClusterStatus {
    let node = try #require(cluster.node(name))
    let box = StatusBox()
    node.member.status { box.status = $0 }
    #expect(cluster.run(limit: .seconds(1)) { box.status != nil })
    return try #require(box.status)
  }

  private func problem(of name: String, at node: String, in cluster: WholeCluster) throws -> String {
    try status(of: node, in: cluster).nodes.first { $0.name == name }?.problem ?? ""
  }

  /// The nodes that serve shards, as seen by `name`.
  private func owners(_ cluster: WholeCluster, at name: String) -> [String] {
    let routes = cluster.node(name)!.member.routes
    let hasOwn = (0..<cluster.shards).contains { routes.route(of: ShardID(rawValue: UInt32($0))) == .local }
    return (routes.owners.map(\.name) + (hasOwn ? [name] : [])).sorted()
  }

  @Test(
    "a node whose address nobody can reach owns nothing, is named by all, and gets shards once it is reached")
  func wrongAddress() throws {
    let cluster = WholeCluster(seed: 41)
    cluster.shards = 32
    for name in ["a", "b"] { try cluster.start(name) }
    #expect(cluster.settle())
    try cluster.start("c", advertising: "elsewhere:7420")
    cluster.world.run(for: .seconds(10))
    for name in ["a", "b", "c"] { #expect(owners(cluster, at: name) == ["a", "b"]) }
    for name in ["a", "b"] {
      let problem = try problem(of: "c", at: name, in: cluster)
      #expect(problem.hasPrefix("node c can't be reached at elsewhere:7420: "), "\(problem)")
      #expect(problem.hasSuffix("so it gets no shards; check its --advertise, and the network"), "\(problem)")
    }
    let own = try problem(of: "c", at: "c", in: cluster)
    #expect(
      own.hasPrefix("no other node reaches this node at elsewhere:7420, so it gets no shards"), "\(own)")
    #expect(try status(of: "a", in: cluster).nodes.map(\.state) == [.live, .live, .unreached])
    // Its own clients are served, through the other nodes, and lists don't wait for it.
    let producer = NumberedProducer("orders", try cluster.client(of: "c"), TopicSettings())
    producer.publish(10)
    #expect(cluster.run(limit: .seconds(5)) { producer.isDone })
    let client = try cluster.client(of: "a")
    let began = cluster.world.now
    #expect(try cluster.wait { client.topics(completion: $0) }.map(\.topic) == ["orders"])
    #expect(cluster.world.now - began < .seconds(1))

    cluster.node("c")?.kill()
    try cluster.start("c")
    #expect(
      cluster.run(limit: .seconds(30)) { cluster.isSettled && owners(cluster, at: "c") == ["a", "b", "c"] })
    for name in ["a", "b", "c"] { #expect(try problem(of: "c", at: name, in: cluster) == "") }
  }

  @Test("a node that advertises the address of another one owns nothing")
  func anothersAddress() throws {
    let cluster = WholeCluster(seed: 42)
    for name in ["a", "b"] { try cluster.start(name) }
    #expect(cluster.settle())
    try cluster.start("c", advertising: "a:7420")
    cluster.world.run(for: .seconds(10))
    for name in ["a", "b", "c"] { #expect(owners(cluster, at: name) == ["a", "b"]) }
    #expect(try problem(of: "c", at: "a", in: cluster).contains("this node itself answers there"))
    #expect(try problem(of: "c", at: "b", in: cluster).contains("another broker answers there"))
  }

  @Test(
    "a node that nobody reaches takes over when all others are dead, and gives way to one that can be reached"
  )
  func lastOne() throws {
    let cluster = WholeCluster(seed: 43)
    for name in ["a", "b"] { try cluster.start(name) }
    try cluster.start("c", advertising: "elsewhere:7420")
    #expect(cluster.run(limit: .seconds(30)) { owners(cluster, at: "c") == ["a", "b"] })
    for name in ["a", "b"] { cluster.node(name)?.kill() }
    #expect(cluster.run(limit: .seconds(10)) { owners(cluster, at: "c") == ["c"] })
    #expect(try problem(of: "c", at: "c", in: cluster) == "")
    try cluster.start("b")
    #expect(cluster.run(limit: .seconds(30)) { owners(cluster, at: "c") == ["b"] && cluster.isSettled })
  }

  @Test("nodes that are killed and started together all have shards again")
  func together() throws {
    for seed: UInt64 in 44...48 {
      let cluster = WholeCluster(seed: seed)
      cluster.shards = 32
      for name in ["a", "b", "c"] { try cluster.start(name) }
      #expect(cluster.settle())
      for name in ["a", "b", "c"] { cluster.node(name)?.kill() }
      cluster.world.run(for: .seconds(5))
      for name in ["a", "b", "c"] { try cluster.start(name) }
      #expect(cluster.settle())
      #expect(cluster.run(limit: .seconds(60)) { owners(cluster, at: "a") == ["a", "b", "c"] })
    }
  }

  @Test("a client of a node that can't reach a topic's owner hears why at once")
  func cutBetweenNodes() throws {
    let cluster = WholeCluster(seed: 49)
    for name in ["a", "b", "c"] { try cluster.start(name) }
    #expect(cluster.settle())
    let owner = try #require(cluster.owner(of: "orders"))
    let other = try #require(cluster.running.first { $0 !== owner })
    let first = NumberedProducer(
      "orders", try cluster.client(of: other.name) { $0.routing = .relay }, TopicSettings())
    first.publish(1)
    #expect(cluster.run(limit: .seconds(5)) { first.isDone })
    cluster.cut(owner.name, other.name)
    cluster.world.run(for: .seconds(15))
    #expect(cluster.owner(of: "orders") === owner)
    #expect(
      try problem(of: owner.name, at: other.name, in: cluster).hasPrefix(
        "node \(owner.name) can't be reached"))
    let client = try cluster.client(of: other.name) { $0.routing = .relay }
    let reasons = Reasons(of: client)
    let began = cluster.world.now
    let late = NumberedProducer("orders", client, TopicSettings())
    late.publish(1)
    #expect(cluster.run(limit: .seconds(10)) { !reasons.texts.isEmpty })
    #expect(cluster.world.now - began < .seconds(2))
    let text = try #require(reasons.texts.first)
    #expect(
      text.hasPrefix(
        "topic orders can't be reached: node \(owner.name) at \(owner.name):7420, which serves it: "),
      "\(text)")
    cluster.heal(owner.name, other.name)
    #expect(cluster.run(limit: .seconds(20)) { late.isDone && first.isDone })
    #expect(try problem(of: owner.name, at: other.name, in: cluster) == "")
  }
}

// @unchecked: used by one thread.
private final class StatusBox: @unchecked Sendable {
  var status: ClusterStatus?
}

/// The reasons why a client's streams wait. Unchecked: a world is used by one thread.
private final class Reasons: @unchecked Sendable {
  private(set) var texts: [String] = []
  private var subscription: AnyCancellable?

  init(of client: Client) {
    subscription = client.unserved.sink { [unowned self] in texts.append($0.message) }
  }
}
