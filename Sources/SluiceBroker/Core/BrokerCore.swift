import SluiceIO
import SluiceLog
import SluiceSession
import SluiceStore
import SluiceTopics
import SluiceWire
import Synchronization

/// The state that all loops of one broker share: settings, topics, counts. It refers to neither loops nor connections.
final class BrokerCore: Sendable {
  let configuration: BrokerConfiguration
  /// The broker's identity in WELCOME.
  let identity: UInt64
  let registry: TopicRegistry
  let rules: ServerSessionRules
  /// Nil for a broker whose clients don't authenticate.
  let authenticator: Authenticator?
  let memory: MemoryWatch
  let accounts: IdentityAccounts
  /// The stage of an orderly stop.
  let stage = BrokerStage()
  let metrics: BrokerMetrics
  /// Counters of the links to other nodes.
  let links = LinkMeters()
  let startedAt: MonotonicTime
  /// Whether a round of trimming is running.
  private let isTrimming = Atomic(false)
  private let connections = Mutex(ConnectionCounts())

  private let lastConnection = Atomic<UInt64>(0)
  /// The shortest keepalive that a client has requested, in milliseconds: sweeps are frequent enough for it.
  private let shortestKeepalive: Atomic<UInt32>
  /// Serves requests about connections, on all loops; nil before the broker has loops.
  let connectionRequests = Mutex<(@Sendable (ConnectionRequest) -> Void)?>(nil)
  /// The cluster that clients may administer; nil for a broker of one node, and for one that has stopped.
  let cluster = Mutex<(any ClusterAdministration)?>(nil)
  /// Called, on any loop, with the name of a node to which a link has failed; nil without a cluster.
  let linkObserver = Mutex<(@Sendable (String) -> Void)?>(nil)
  /// Called, on any loop, whenever the last connection has closed.
  let becameEmpty = Mutex<(@Sendable () -> Void)?>(nil)

  /// - Parameters:
  ///   - storage: nil for a broker without durable topics.
  ///   - routes: which topics other nodes serve; nil for a broker of one node.
  ///   - loops: the loops that work with the store: the first writes, the others read.
  ///   - background: runs the job that prepares memory for segments; nil to prepare memory when it is needed.
  ///   - authenticator: nil to serve clients without authentication.
  ///   - now: the loops' time.
  ///   - wallClock: the same moment in milliseconds since 1970.
  /// - Throws: when the store can't be read.
  init(
    configuration: BrokerConfiguration, storage: StoreConfiguration? = nil, routes: ShardRoutes? = nil,
    on loops: LoopGroup? = nil, background: SegmentPool.Background? = nil,
    authenticator: Authenticator? = nil, metrics: BrokerMetrics = BrokerMetrics(),
    now: MonotonicTime = MonotonicTime(nanoseconds: 0), wallClock: Int64 = 0
  ) throws(StoreError) {
    self.configuration = configuration
    self.authenticator = authenticator
    self.metrics = metrics
    startedAt = now
    let limits = configuration.limits
    identity = configuration.identity ?? UInt64.random(in: 1...UInt64.max)
    let pool = SegmentPool(
      maximumPooledBytes: limits.memory == 0
        ? limits.pooledMemory : min(limits.pooledMemory, limits.memory / 8),
      background: background)
    accounts = IdentityAccounts(limits, metrics: metrics)
    memory = MemoryWatch(
      ceiling: limits.memory, shares: limits.memoryShares, windowBytes: limits.producerWindowBytes,
      pool: pool, metrics: metrics)
    var service: StoreService?
    var shard: OpenedShard?
    if let storage, let loops, let writer = loops.loops.first {
      let readers = loops.loops.count > 1 ? Array(loops.loops.dropFirst()) : [writer]
      let opened = try LocalStore.open(storage.store)
      shard = opened
      service = StoreService(
        opened.store, pool: pool, limits: TopicLimits(limits), writer: writer, readers: readers,
        metrics: metrics,
        report: storage.report)
    }
    var host = TopicHost()
    let (report, stage) = (configuration.report, stage)
    host.isServing = { stage.present == .serving }
    host.report = { report(BrokerEvent($0)) }
    registry = TopicRegistry(
      configuration, identity: identity, pool: pool, storage: service, routes: routes, metrics: metrics,
      memory: memory, host: host)
    rules = ServerSessionRules(
      handshake: ServerHandshake(
        offer: Welcome(
          features: routes == nil ? 0 : Feature.redirects,
          maximumFrame: UInt32(limits.frame), maximumRecord: UInt32(limits.record),
          maximumStreams: limits.streams, keepalive: limits.keepalive, broker: identity,
          software: configuration.software)),
      maximumRecord: limits.record, maximumStreams: limits.streams, maximumPositions: limits.matches,
      maximumPositionBytes: limits.bufferedPerConnection, asksIdentity: authenticator != nil)
    shortestKeepalive = Atomic(limits.keepalive == 0 ? .max : limits.keepalive)
    guard let service, let shard, let storage else { return }
    // A store on this machine blocks until everything is restored.
    let restored = Mutex<Result<StoreEvent, StoreError>?>(nil)
    registry.restore(
      shard, service, now: now, wallClock: wallClock,
      announce: { [weak registry, weak service] in
        if let registry, let service { registry.storeChanged(service) }
      }
    ) { result in restored.withLock { $0 = result } }
    if let event = try restored.withLock({ $0 })?.get() { storage.report(event) }
  }

  var stores: TopicStores { registry.stores }

  func observeLinks(_ body: @escaping @Sendable (String) -> Void) { linkObserver.withLock { $0 = body } }

  /// Reports that a link to a node couldn't be opened, or was lost. On any loop.
  func linkFailed(to node: String) { linkObserver.withLock { $0 }?(node) }

  /// Which topics other nodes serve; nil for a broker of one node.
  var routes: ShardRoutes? { registry.routes }

  /// Counts a new connection, and returns its number.
  ///
  /// - Parameter origin: the address that it counts for; nil for none.
  /// - Throws: ``ErrorCode/tooManyConnections`` when a limit is reached.
  func admit(from origin: PeerOrigin?) throws(WireError) -> UInt64 {
    let limits = configuration.limits
    let refusal = connections.withLock {
      $0.add(from: origin, atMost: limits.connections, perOrigin: limits.connectionsPerAddress)
    }
    switch refusal {
    case nil: break
    case .inAll:
      metrics.add(.refusedConnections)
      throw WireError(
        .tooManyConnections,
        "the broker has \(limits.connections) connections, which is its limit; try again later")
    case .perOrigin:
      metrics.add(.refusedConnectionsPerAddress)
      throw WireError(
        .tooManyConnections,
        "there are \(limits.connectionsPerAddress) connections from \(origin?.description ?? "there"), which is the limit for an address; close some, or use fewer"
      )
    }
    metrics.add(.connections)
    metrics.add(.connectionsAccepted)
    return nextConnection()
  }

  /// A number for a connection: greater than those before.
  func nextConnection() -> UInt64 { lastConnection.add(1, ordering: .relaxed).newValue }

  /// Subtracts an admitted connection from the counts.
  func release(from origin: PeerOrigin?) {
    metrics.add(.connections, -1)
    removed { $0.remove(from: origin) }
  }

  /// Counts a connection of one of the broker's own parts, which no limit bounds, and returns its number.
  func admitOwn() -> UInt64 {
    connections.withLock { $0.addOwn() }
    return nextConnection()
  }

  /// Subtracts a connection that ``admitOwn()`` counted.
  func releaseOwn() { removed { $0.removeOwn() } }

  private func removed(_ remove: (inout ConnectionCounts) -> Void) {
    let isEmpty = connections.withLock {
      remove(&$0)
      return $0.isEmpty
    }
    if isEmpty { becameEmpty.withLock { $0 }?() }
  }

  var isEmpty: Bool { connections.withLock(\.isEmpty) }

  /// Reports when used memory reaches its ceiling or falls below it, and wakes producers when it falls below. At the end of a turn of `loop`.
  func watchMemory(on loop: any EventLoop) {
    guard let change = memory.look() else { return }
    switch change {
    case .reached: configuration.report(.memoryReached(used: memory.used, ceiling: memory.ceiling))
    case .left:
      TopicRound.run(over: registry, on: loop) { $0.wakeProducers() }
      configuration.report(.memoryLeft(used: memory.used, ceiling: memory.ceiling))
    }
  }

  func agreed(keepalive: UInt32) {
    if keepalive > 0 { shortestKeepalive.min(keepalive, ordering: .relaxed) }
  }

  /// The time between two sweeps of a loop over its connections.
  var sweepInterval: Duration {
    if stage.present != .serving { return .milliseconds(25) }
    return .milliseconds(min(max(Int64(shortestKeepalive.load(ordering: .relaxed)) / 4, 25), 1000))
  }

  /// Drops expired records and deletes unused topics, a share of the topics in each turn. On the first loop; returns at once while the previous round
  /// is running.
  ///
  /// The jobs retain the core. With a weak reference, the runtime would count all references to the core on a slow path.
  func trim(on loop: any EventLoop) {
    accounts.forget(at: loop.now)
    memory.accounts.forget()
    guard !isTrimming.exchange(true, ordering: .acquiringAndReleasing) else { return }
    deleteAbandoned(after: "", on: loop)
  }

  private func deleteAbandoned(after name: String, on loop: any EventLoop) {
    let (deleted, last) = registry.deleteAbandoned(after: name, atMost: TopicRound.share, now: loop.now)
    for topic in deleted { configuration.report(.topicAbandoned(topic: topic.name)) }
    guard let last else { return trimAll(on: loop) }
    loop.execute { [self] in deleteAbandoned(after: last, on: loop) }
  }

  private func trimAll(on loop: any EventLoop) {
    TopicRound.run(over: registry, on: loop) { topic in
      if topic.needsTrimming { topic.trim(now: loop.wallClock) }
    } completion: { [self] in
      isTrimming.store(false, ordering: .releasing)
    }
  }
}
