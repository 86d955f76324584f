import SluiceDoors
import SluiceEngineModel
import SluiceIO
import SluiceNATS
import SluiceSimulation
import SluiceStore
import SluiceTopics
import SluiceWire
import Testing

@testable import SluiceBroker
@testable import SluiceCluster

/// A cluster of brokers with MQTT gateways, its NATS server, and clients. All run in one thread, from a seed.
final class DoorNodes: MQTTStage {
  /// A process of the cluster. Unchecked: a world is used by one thread.
  final class Node: @unchecked Sendable {
    let name: String
    let loops: [SimulatedLoop]
    let broker: Broker
    let member: ClusterMember
    private(set) var isRunning = true
    private let network: SimulatedNetwork

    init(
      _ options: ClusterOptions, _ limits: MQTTLimits, in world: SimulatedWorld,
      note: @escaping @Sendable (DoorEvent) -> Void
    ) throws {
      name = options.name
      network = world.network
      loops = [world.makeLoop(name: options.name), world.makeLoop(name: "\(options.name)'s engine")]
      member = try ClusterMember(
        options, network: world.network, on: loops[1], writer: world.random.next(below: 1 << 60) + 1)
      var configuration = BrokerConfiguration()
      configuration.listen = [
        .host(name, port: 7420), DoorNodes.door(of: name), DoorNodes.httpDoor(of: name),
      ]
      configuration.identity = world.random.next()
      configuration.topicDefaults.storage = .durable
      let cluster = DoorCluster(node: name) { [routes = member.routes] in routes.otherNodes(at: $0) }
      var doors = DoorOptions()
      doors.mqtt = limits
      broker = try Broker(
        configuration, network: DoorNetwork(over: world.network, doors, cluster: cluster, note: note),
        group: LoopGroup([loops[0]]), routes: member.routes)
      try broker.start()
      member.start(broker)
    }

    /// Kills the process.
    func kill() {
      guard isRunning else { return }
      isRunning = false
      for loop in loops { network.crash(loop) }
    }

    /// Stops all work of the process until ``goOn()``. Its sockets stay open.
    func pause() { for loop in loops { loop.stall() } }

    func goOn() { for loop in loops { loop.resume() } }

    /// Hands all shards to other nodes, then stops.
    func stop() {
      member.leave { [self] in
        member.close()
        broker.shutdown()
      }
      broker.whenStopped { [self] in isRunning = false }
    }
  }

  static let names = ["a", "b", "c"]

  let world: SimulatedWorld
  let engine: EngineModel
  private(set) var nodes: [Node] = []
  private let loop: SimulatedLoop

  private let limits: MQTTLimits
  /// Each node's addresses of the NATS server.
  private var ways: [String: [NATSAddress]] = [:]
  private let events = DoorEvents()

  init(seed: UInt64 = 1, nodes count: Int = 3, limits: MQTTLimits = MQTTLimits()) throws {
    self.limits = limits
    world = SimulatedWorld(seed: seed, loops: 0, conditions: .calm)
    engine = EngineModel(in: world)
    loop = world.makeLoop(name: "clients")
    for name in Self.names.prefix(count) { try start(name) }
    #expect(settled())
  }

  deinit {
    for node in nodes where node.isRunning { for loop in node.loops { loop.perform { node.member.close() } } }
    world.run(for: .milliseconds(10))
  }

  static func door(of name: String) -> SocketAddress { .door(.mqtt, name, port: 1883, isSecure: false) }

  static func httpDoor(of name: String) -> SocketAddress { .door(.http, name, port: 7480, isSecure: false) }

  /// Starts a node. It may be one that ran earlier.
  func start(_ name: String) throws {
    nodes.removeAll { $0.name == name }
    let ways = engine.makeAliases(
      "10.2.\(Self.names.firstIndex(of: name) ?? 9).\(world.random.next(below: 1 << 30))")
    var options = ClusterOptions(name: name, advertisedAddress: "\(name):7420", engine: ways)
    options.shards = 8
    options.nats.seed = world.random.next()
    options.nats.usesDiscoveredServers = false
    self.ways[name] = ways
    nodes.append(try Node(options, limits, in: world) { [events] in events.add($0) })
  }

  /// Takes the events that the gateways of all nodes reported.
  func takeEvents() -> [DoorEvent] { events.take() }

  // MARK: Faults

  /// Cuts a node off from the NATS server.
  func cutEngine(from index: Int) {
    for way in ways[Self.names[index]] ?? [] { world.network.cut(.host(way.host, port: way.port)) }
  }

  func healEngine(of index: Int) {
    for way in ways[Self.names[index]] ?? [] { world.network.heal(.host(way.host, port: way.port)) }
  }

  /// Cuts two nodes off from each other, but not from the NATS server.
  func cut(_ one: Int, _ other: Int) {
    for (origin, target) in [(one, other), (other, one)] {
      world.network.cut(from: Self.names[origin], to: .host(Self.names[target], port: 7420))
    }
  }

  func heal(_ one: Int, _ other: Int) {
    for (origin, target) in [(one, other), (other, one)] {
      world.network.heal(from: Self.names[origin], to: .host(Self.names[target], port: 7420))
    }
  }

  func node(_ index: Int) -> Node? { nodes.first { $0.name == Self.names[index] } }

  /// The running node that serves a topic, if there is exactly one.
  func owner(of topic: String) -> Int? {
    let owners = nodes.filter { $0.isRunning && $0.member.routes.route(of: topic) == .local }
    return owners.count == 1 ? Self.names.firstIndex(of: owners[0].name) : nil
  }

  /// Lets time pass until each shard has one owner that all nodes know.
  @discardableResult
  func settled() -> Bool {
    world.run(limit: .seconds(60), every: .milliseconds(5)) {
      let running = nodes.filter(\.isRunning)
      return (0..<8).allSatisfy { number in
        let routes = running.map { $0.member.routes.route(of: ShardID(rawValue: UInt32(number))) }
        return routes.count { $0 == .local } == 1 && !routes.contains(.moving)
      }
    }
  }

  // MARK: Clients

  /// Added to a node's number to get its native address.
  static let native = 10
  /// Added to a node's number to get its HTTP gateway.
  static let http = 20

  /// Returns a byte client that is connected to the MQTT gateway of the node with that number.
  func connect(_ index: Int) -> ByteClient {
    let client = ByteClient(loop: loop)
    let name = Self.names[index % Self.native]
    let address: SocketAddress =
      switch index {
      case ..<Self.native: Self.door(of: name)
      case ..<Self.http: .host(name, port: 7420)
      default: Self.httpDoor(of: name)
      }
    loop.perform {
      _ = world.network.connect(to: address.plain ?? address, on: loop) { result in
        if case .success(let stream) = result { client.begin(stream) }
      }
    }
    _ = world.run(limit: .seconds(1)) { client.isConnected }
    return client
  }

  func settle(_ time: Duration) { world.run(for: time) }
}
