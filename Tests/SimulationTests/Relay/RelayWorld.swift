import SluiceAccess
import SluiceIO
import SluiceSimulation
import SluiceStore
import SluiceWire

@testable import SluiceBroker
@testable import SluiceTopics

/// Several brokers on one simulated network, with routes set by the test, and scripted clients of each broker.
final class RelayWorld {
  struct Node {
    var remote: RemoteNode
    var broker: Broker
    var routes: ShardRoutes
    var address: SocketAddress
  }

  struct Access {
    /// The permissions at each node.
    var rules: [[String: String]]
    var verify = PlainAccess.verify
  }

  static let shards = 8
  let world: SimulatedWorld
  private(set) var nodes: [Node] = []
  let loop: SimulatedLoop
  /// The connection numbers of the clients.
  private var clients: Set<Int> = []

  /// The first node owns all topics at first.
  ///
  /// - Parameter access: nil for nodes whose clients don't authenticate.
  init(
    nodes count: Int = 2, seed: UInt64 = 1, loops: Int = 1, conditions: SimulatedConditions = .calm,
    storage: [StoreConfiguration] = [], access: Access? = nil,
    configure: (inout BrokerConfiguration) -> Void = { _ in }
  ) throws {
    world = SimulatedWorld(seed: seed, loops: 0, conditions: conditions)
    for index in 0..<count {
      let address = SocketAddress.host("node\(index)", port: 7420)
      var configuration = BrokerConfiguration()
      configuration.identity = UInt64(index + 1)
      configuration.listen = [address, .tls("node\(index)", port: 7420)]
      if access != nil { configuration.peers = .certificates(of: ["n0", "n1", "n2"]) }
      configure(&configuration)
      let loops = (0..<loops).map { [world] in world.makeLoop(name: "node \(index), \($0)") }
      let routes = ShardRoutes(of: "n\(index)")
      // Leases of nodes never expire.
      routes.lease.set(end: MonotonicTime(nanoseconds: .max))
      let broker = try Broker(
        configuration, network: CertifiedNetwork(over: world.network, as: "n\(index)"),
        loops: BrokerLoops(serving: LoopGroup(loops)),
        storage: index < storage.count ? storage[index] : nil, routes: routes,
        access: try access.map { try PlainAccess.policy($0.rules[index]) },
        verify: access?.verify ?? PlainAccess.verify)
      try broker.start()
      nodes.append(
        Node(
          remote: RemoteNode(name: "n\(index)", address: "node\(index):7420"), broker: broker, routes: routes,
          address: address))
    }
    loop = world.makeLoop(name: "clients")
    for shard in 0..<Self.shards { move(ShardID(rawValue: UInt32(shard)), to: 0) }
    settle()
  }

  // MARK: Routes

  /// Reports a shard's owner to all nodes; nil if it has none.
  func move(_ shard: ShardID, to owner: Int?) {
    for index in nodes.indices { tell(index, that: shard, isAt: owner) }
  }

  func move(_ topic: String, to owner: Int?) { move(shard(of: topic), to: owner) }

  /// Reports a shard's owner to one node.
  func tell(_ index: Int, that shard: ShardID, isAt owner: Int?) {
    let route: TopicRoute =
      if let owner { owner == index ? .local : .remote(nodes[owner].remote) } else { .moving }
    if route == .local { _ = nodes[index].broker.core.registry.open(shard) }
    nodes[index].routes.update(
      shardCount: Self.shards, nodes: nodes.indices.filter { $0 != index }.map { nodes[$0].remote },
      [shard: route])
  }

  func shard(of topic: String) -> ShardID {
    ShardID(rawValue: UInt32(ShardHash.shard(of: topic, of: Self.shards)))
  }

  // MARK: Clients

  /// Connects a client to that node.
  ///
  /// - Parameters:
  ///   - certificate: the name in its certificate; nil for a connection without TLS.
  ///   - forgets: whether the frames that answer HELLO are discarded.
  func connect(
    to index: Int, features: UInt64 = 0, keepalive: UInt32 = 30_000, maximumFrame: UInt32 = 1 << 20,
    certificate: String? = nil,
    credentials: Credentials = .none, forgets: Bool = true
  ) -> ScriptedClient {
    let client = ScriptedClient(loop: loop)
    let address = certificate == nil ? nodes[index].address : .tls("node\(index)", port: 7420)
    let network = CertifiedNetwork(over: world.network, as: certificate ?? "")
    loop.perform {
      _ = network.connect(to: address, on: loop) { result in
        if case .success(let stream) = result { client.begin(stream) }
      }
    }
    _ = world.run(limit: .seconds(1)) { client.isConnected }
    if let number = world.network.connections.last?.number { clients.insert(number) }
    client.send(
      Hello(
        features: features, maximumFrame: maximumFrame, keepalive: keepalive, name: "test",
        credentials: credentials),
      stream: 0)
    settle()
    if forgets { client.forget() }
    return client
  }

  func settle(_ time: Duration = .milliseconds(200)) { world.run(for: time) }

  // MARK: Links

  /// The connections between nodes.
  var links: [SimulatedConnection] {
    world.network.connections.filter { !$0.isOver && !clients.contains($0.number) }
  }
}

extension ScriptedClient {
  /// A delivered record.
  struct Delivered: Hashable {
    var offset: UInt64
    var payload: [UInt8]
  }

  /// The records received on a stream, in order.
  func records(on stream: UInt32) -> [Delivered] { frames(on: stream).flatMap(\.delivered) }

  func refusal(on stream: UInt32) -> ErrorCode? {
    frames(on: stream).last { $0.header.type == .error }.flatMap { try? $0.decoded(Fault.self).code }
  }

  func types(on stream: UInt32) -> [FrameType] { frames(on: stream).map(\.header.type) }

  func publish(_ count: Int, from sequence: Int, size: Int = 4, stream: UInt32) {
    publish(
      (sequence..<sequence + count).map { number in
        var payload = [UInt8](repeating: 0, count: size)
        withUnsafeBytes(of: UInt32(number).littleEndian) { payload.replaceSubrange(0..<4, with: $0) }
        return payload
      }, from: UInt64(sequence), stream: stream)
  }
}

extension ScriptedClient.Received {
  /// The records of a DELIVER.
  var delivered: [ScriptedClient.Delivered] {
    guard header.type == .deliver else { return [] }
    return body.withUnsafeBytes { body in
      guard let (front, batch) = try? DeliverHeader.decode(body) else { return [] }
      var records: [ScriptedClient.Delivered] = []
      var iterator = BatchIterator(batch, count: front.count, time: 0)
      while let record = try? iterator.next() {
        records.append(.init(offset: front.firstOffset + UInt64(records.count), payload: Array(record.body)))
      }
      return records
    }
  }
}
