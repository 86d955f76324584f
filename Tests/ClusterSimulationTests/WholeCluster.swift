import ReactiveCore
import SluiceClient
import SluiceEngineModel
import SluiceIO
import SluiceNATS
import SluiceSimulation
import SluiceStore
import SluiceTopics

@testable import SluiceBroker
@testable import SluiceCluster

/// Brokers as nodes of a cluster, their engine, and clients, on one thread, from a seed.
final class WholeCluster {
  let world: SimulatedWorld
  let engine: EngineModel
  private(set) var nodes: [WholeNode] = []
  var shards = 8
  var engineOptions = JetStreamEngineOptions()
  var times = LeaseTimes()
  private var ways: [String: [NATSAddress]] = [:]
  private var clients: [Client] = []
  /// Tracks the state of groups and cursors stored in the engine.
  let stored = StoredStatesOracle()

  init(seed: UInt64, conditions: SimulatedConditions = .calm) {
    world = SimulatedWorld(seed: seed, loops: 0, conditions: conditions)
    engine = EngineModel(in: world)
    engine.committed = { [unowned world, stored] stream, message in
      stored.committed(stream, message, at: world.now)
      world.trace?(
        "\(world.now.nanoseconds) \(stream) stores \(message.sequence) \(message.subject), \(message.payload.count) bytes"
      )
    }
  }

  deinit {
    for node in running { for loop in node.loops { loop.perform { node.member.close() } } }
    world.run(for: .milliseconds(10))
  }

  // MARK: Nodes

  /// Starts a node, or restarts one.
  ///
  /// - Parameter address: the advertised address; nil for the address on which it listens.
  @discardableResult
  func start(_ name: String, advertising address: String? = nil) throws -> WholeNode {
    nodes.removeAll { $0.name == name }
    var options = ClusterOptions(
      name: name, advertisedAddress: address ?? "\(name):7420", engine: addresses(for: name))
    options.shards = shards
    options.times = times
    options.nats.seed = world.random.next()
    options.nats.usesDiscoveredServers = false
    let node = try WholeNode(options, engineOptions, in: world)
    nodes.append(node)
    return node
  }

  /// A node's own addresses of the engine's servers, which can be cut.
  func addresses(for name: String) -> [NATSAddress] {
    if let known = ways[name] { return known }
    let made = engine.makeAliases("10.2.\(ways.count + 1)")
    ways[name] = made
    return made
  }

  /// Cuts a node off from the engine; bytes in transit are lost.
  func cutEngine(from name: String) {
    for way in addresses(for: name) { world.network.cut(.host(way.host, port: way.port)) }
  }

  func healEngine(for name: String) {
    for way in addresses(for: name) { world.network.heal(.host(way.host, port: way.port)) }
  }

  /// Cuts two nodes off from each other; bytes in transit are lost.
  func cut(_ one: String, _ other: String) {
    world.network.cut(from: one, to: WholeNode.address(of: other))
    world.network.cut(from: other, to: WholeNode.address(of: one))
  }

  func heal(_ one: String, _ other: String) {
    world.network.heal(from: one, to: WholeNode.address(of: other))
    world.network.heal(from: other, to: WholeNode.address(of: one))
  }

  func pick<Element>(_ choices: [Element]) -> Element {
    choices[world.random.next(in: 0...(choices.count - 1))]
  }

  func node(_ name: String) -> WholeNode? { nodes.first { $0.name == name } }

  var running: [WholeNode] { nodes.filter(\.isRunning) }

  /// The running node that serves a topic, if there is exactly one.
  func owner(of topic: String) -> WholeNode? {
    let owners = running.filter { $0.member.routes.route(of: topic) == .local }
    return owners.count == 1 ? owners[0] : nil
  }

  /// Whether each shard has one owner, and all other nodes know it.
  var isSettled: Bool {
    (0..<shards).allSatisfy { number in
      let routes = running.map { $0.member.routes.route(of: ShardID(rawValue: UInt32(number))) }
      guard
        let owner = running.first(where: {
          $0.member.routes.route(of: ShardID(rawValue: UInt32(number))) == .local
        })
      else { return false }
      let other = TopicRoute.remote(RemoteNode(name: owner.name, address: "\(owner.name):7420"))
      return routes.count { $0 == .local } == 1 && routes.allSatisfy { $0 == .local || $0 == other }
    }
  }

  func settle(limit: Duration = .seconds(60)) -> Bool { run(limit: limit) { isSettled } }

  /// Runs the world until the condition is true. The condition is checked only every 5 ms, because checking costs more than the events.
  func run(limit: Duration, until condition: () -> Bool) -> Bool {
    world.run(limit: limit, every: .milliseconds(5), until: condition)
  }

  // MARK: Clients

  /// A client of a node, on its own loop, which reconnects after it loses its connection.
  func client(of node: String, _ configure: (inout ClientOptions) -> Void = { _ in }) throws -> Client {
    var options = ClientOptions()
    options.name = "client \(clients.count)"
    options.seed = world.random.next()
    var policy = ReconnectPolicy()
    policy.maximumDelay = .milliseconds(200)
    options.reconnect = policy
    configure(&options)
    let loop = world.makeLoop(name: options.name)
    let client = try wait {
      Client.connect(
        to: WholeNode.address(of: node), options: options, network: world.network, loop: loop, completion: $0)
    }
    clients.append(client)
    return client
  }

  /// Starts an operation, and runs the world until its completion is called.
  func wait<Value: Sendable>(
    _ start: (@escaping @Sendable (Result<Value, ClientError>) -> Void) -> Void
  ) throws -> Value {
    let answer = Answer<Value>()
    start { answer.result = $0 }
    guard world.run(limit: .seconds(120), until: { answer.result != nil }), let result = answer.result else {
      throw NoAnswer()
    }
    return try result.get()
  }
}

struct NoAnswer: Error {}

// @unchecked: used by one thread.
private final class Answer<Value: Sendable>: @unchecked Sendable {
  var result: Result<Value, ClientError>?
}
