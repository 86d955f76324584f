import Glibc
import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceStore
import SluiceTopics
import SluiceWire
import Synchronization

/// A message broker: topics as shared, replaying publishers over a network.
///
/// ```swift
/// let broker = try Broker(BrokerConfiguration())
/// try await broker.run()
/// ```
///
/// May be used from any thread.
public final class Broker: Sendable {
  private enum Phase {
    case idle
    case running
    case stopping
    case stopped
  }

  private struct State {
    var phase = Phase.idle
    var listeners: [any Listener] = []
    var observers: [@Sendable () -> Void] = []
    /// Loops that have stopped publishing.
    var quiet = 0
    var isClosing = false
    /// Loops that have closed their connections.
    var closed = 0
    /// The latest end of an orderly stop; nil when it has nothing to wait for.
    var deadline: MonotonicTime?
    /// An immediate stop was requested.
    var isUrgent = false
  }

  let core: BrokerCore
  let contexts: [LoopContext]
  private let network: any Network
  private let loops: BrokerLoops
  let problemWatch: ProblemWatch
  private let state = Mutex(State())

  /// A broker on this machine's sockets, with event loops of its own.
  ///
  /// - Parameters:
  ///   - configuration: the addresses, limits and defaults.
  ///   - storage: the store of durable topics; nil for a broker without them. The broker closes the store when it has stopped.
  ///   - access: which clients may connect, and what they may do; nil to allow all clients everything.
  ///   - layer: wraps the network of sockets for addresses that need another one, such as TLS; nil for none.
  /// - Throws: ``ConfigurationError``; `IOError` when the loops can't be made; `StoreError` when the store can't be read.
  public convenience init(
    _ configuration: BrokerConfiguration, storage: StoreConfiguration? = nil, access: AccessPolicy? = nil,
    layer: ((any Network) -> any Network)? = nil
  ) throws {
    try configuration.validate()
    let sockets = Self.sockets(configuration)
    try self.init(
      configuration, network: layer?(sockets) ?? sockets,
      loops: BrokerLoops.threads(
        count: configuration.loops ?? LoopGroup.availableCores, storage: storage != nil, access: access != nil
      ),
      storage: storage, access: access)
  }

  private static func sockets(_ configuration: BrokerConfiguration) -> SocketNetwork {
    SocketNetwork(
      placement: .filling(upTo: BrokerLoops.connectionsTogether),
      keepalive: configuration.limits.tcpKeepalive)
  }

  /// A broker on the caller's loops and network, which may be shared or simulated.
  ///
  /// - Parameters:
  ///   - configuration: the addresses, limits and defaults.
  ///   - network: listens on the addresses.
  ///   - group: the loops that serve connections.
  ///   - storage: the store of durable topics; nil for a broker without them.
  ///   - storageGroup: the loops that work with the store, of which the first writes, and the others read; `group` if nil.
  ///   - access: which clients may connect, and what they may do; nil to allow all clients everything.
  ///   - accessGroup: its first loop verifies credentials, which may take tens of milliseconds; `group` if nil.
  /// - Throws: ``ConfigurationError``; `StoreError` when the store can't be read.
  public convenience init(
    _ configuration: BrokerConfiguration, network: any Network, group: LoopGroup,
    storage: StoreConfiguration? = nil, storageGroup: LoopGroup? = nil, access: AccessPolicy? = nil,
    accessGroup: LoopGroup? = nil
  ) throws {
    try self.init(
      configuration, network: network,
      loops: BrokerLoops(serving: group, storage: storageGroup, access: accessGroup), storage: storage,
      access: access)
  }

  /// A node of a cluster, on loops of its own.
  ///
  /// - Parameter routes: which node serves which topics.
  /// - Throws: as ``init(_:storage:access:layer:)``.
  package convenience init(
    _ configuration: BrokerConfiguration, routes: ShardRoutes, access: AccessPolicy? = nil,
    layer: ((any Network) -> any Network)? = nil
  ) throws {
    try configuration.validate()
    let sockets = Self.sockets(configuration)
    try self.init(
      configuration, network: layer?(sockets) ?? sockets,
      loops: BrokerLoops.threads(
        count: configuration.loops ?? LoopGroup.availableCores, storage: false, access: access != nil),
      routes: routes, access: access)
  }

  /// A node of a cluster, on the caller's loops and network.
  package convenience init(
    _ configuration: BrokerConfiguration, network: any Network, group: LoopGroup, routes: ShardRoutes,
    access: AccessPolicy? = nil, accessGroup: LoopGroup? = nil
  ) throws {
    try self.init(
      configuration, network: network, loops: BrokerLoops(serving: group, access: accessGroup),
      routes: routes, access: access)
  }

  /// - Parameter verify: verifies credentials.
  init(
    _ configuration: BrokerConfiguration, network: any Network, loops: BrokerLoops,
    storage: StoreConfiguration? = nil, routes: ShardRoutes? = nil, access: AccessPolicy? = nil,
    verify: @escaping Authenticator.Verification = Authenticator.verify
  ) throws {
    try configuration.validate()
    if routes != nil, access != nil, configuration.peers == nil {
      throw ConfigurationError(
        description:
          "peers: clients have to authenticate, so the nodes of the cluster need certificates to ask each other on behalf of their clients"
      )
    }
    let clock = loops.serving.loops[0]
    let now = clock.readClock()
    let metrics = BrokerMetrics()
    core = try BrokerCore(
      configuration: configuration, storage: storage, routes: routes, on: loops.storage,
      background: loops.background,
      authenticator: access.map {
        Authenticator(
          $0, on: loops.access.loops[0], limits: configuration.limits, metrics: metrics,
          verify: verify)
      }, metrics: metrics, now: now, wallClock: clock.readWallClock())
    self.network = network
    self.loops = loops
    problemWatch = ProblemWatch(configuration.problems)
    let bufferBound = BufferBound(limit: configuration.limits.buffered, metrics: metrics)
    let mirrors = MirrorTable()
    contexts = loops.serving.loops.enumerated().map { [core] in
      LoopContext(
        loop: $1, core: core, network: network, mirrors: mirrors, bufferBound: bufferBound, isFirst: $0 == 0)
    }
    core.connectionRequests.withLock { $0 = { [weak self] in self?.serve($0) } }
  }

  /// Binds every address of the configuration and accepts connections. Returns at once; the loops do the work.
  ///
  /// - Returns: the addresses that were bound, in the order of the configuration.
  /// - Throws: `IOError` for the first address that can't be bound; the broker has stopped then.
  ///
  /// If another thread stops the broker during this call, the listeners are closed before it returns, and the broker accepts nothing.
  ///
  /// - Precondition: the broker hasn't been started before.
  @discardableResult
  public func start() throws -> [SocketAddress] {
    state.withLock { state in
      precondition(state.phase == .idle, "a broker is started once")
      state.phase = .running
    }
    for context in contexts { context.start() }
    let byLoop = Dictionary(
      uniqueKeysWithValues: contexts.map { (ObjectIdentifier($0.loop), $0) })
    var listeners: [any Listener] = []
    do {
      for address in core.configuration.listen {
        listeners.append(
          try network.listen(at: address, group: loops.serving) { [loops] stream, loop in
            guard let context = byLoop[ObjectIdentifier(loop)] else { return stream.abort() }
            context.accept(stream, openStreams: loops.streamCount)
          })
      }
    } catch {
      for listener in listeners { listener.close() }
      stopped()
      throw error
    }
    let isStopping = state.withLock { state in
      state.listeners = listeners
      return state.phase != .running
    }
    // The broker was stopped while the addresses were bound, when the stop had no listeners to close.
    if isStopping { for listener in listeners { listener.close() } }
    return listeners.map(\.address)
  }

  /// Starts the broker unless it is started, and returns when it has stopped.
  ///
  /// Cancelling the task that waits here stops the broker in an orderly way, like ``shutdown()``.
  ///
  /// - Throws: as ``start()``.
  public func run() async throws {
    if state.withLock({ $0.phase == .idle }) { try start() }
    await withTaskCancellationHandler {
      await withCheckedContinuation { continuation in
        whenStopped { continuation.resume() }
      }
    } onCancel: {
      shutdown()
    }
    loops.joinThreads()
  }

  /// Calls `body` once when the broker has stopped, or at once if it has stopped before. `body` may run on any of the broker's loops, and must not
  /// wait there.
  public func whenStopped(_ body: @escaping @Sendable () -> Void) {
    let isStopped = state.withLock { state in
      if state.phase != .stopped { state.observers.append(body) }
      return state.phase == .stopped
    }
    if isStopped { body() }
  }

  /// Stops in an orderly way: accepts no more connections and no more records, delivers to subscribers what they have requested, then notifies and
  /// disconnects all clients. Returns at once; ``run()`` returns when it is done, after the configuration's drain time at the latest. A second call
  /// stops at once.
  public func shutdown() {
    let (listeners, phase) = state.withLock { state in
      let phase = state.phase
      if phase == .running { state.phase = .stopping }
      return (state.listeners, phase)
    }
    guard phase == .running else { return phase == .stopping ? stop() : () }
    for listener in listeners { listener.close() }
    core.stage.advance(to: .quiescing)
    for context in contexts {
      context.loop.execute { [self] in
        context.quiesce()
        loopBecameQuiet()
      }
    }
  }

  /// Stops at once: closes all connections without delivering anything more.
  public func stop() {
    let listeners = state.withLock { state in
      guard state.phase != .stopped else { return [] as [any Listener] }
      state.phase = .stopping
      state.isUrgent = true
      return state.listeners
    }
    for listener in listeners { listener.close() }
    closeAll()
  }

  /// The broker's counters and gauges. From any thread.
  public var metrics: BrokerMetrics {
    core.metrics.set(.memoryUsed, to: core.memory.used)
    core.metrics.set(.keptBytes, to: core.memory.kept.used)
    core.metrics.set(.topics, to: core.registry.count)
    core.metrics.set(.storageBacklog, to: core.stores.backlog)
    return core.metrics
  }

  /// The links to other nodes of the cluster, sorted by the nodes' names; empty for a broker of one node. From any thread.
  public var links: [LinkSnapshot] { core.links.snapshots }

  /// The access policy in force; nil for a broker that doesn't authenticate clients. From any thread.
  public var access: AccessPolicy? { core.authenticator?.present }

  /// Replaces the access policy, also for present connections: a client that the policy no longer has is disconnected with
  /// `ErrorCode.accessRevoked`, and streams that their client may no longer have end with `ErrorCode.permissionDenied`. From any thread; returns
  /// at once.
  ///
  /// - Precondition: the broker was made with a policy. A broker without one can't begin to authenticate clients.
  public func updateAccess(_ policy: AccessPolicy) {
    guard let authenticator = core.authenticator else {
      preconditionFailure("the broker was made without an access policy")
    }
    authenticator.update(policy)
    for context in contexts { context.accessChanged() }
  }

  /// Replaces the settings of topics created after this call: see ``BrokerConfiguration/topicDefaults`` and ``BrokerConfiguration/topicRules``.
  /// Existing topics keep their settings. From any thread.
  public func updateTopics(defaults: TopicSettings, rules: [TopicRule]) {
    core.registry.plan.update(defaults: defaults, rules: rules)
  }

  // MARK: Stopping

  /// Begins to drain when the last loop has stopped publishing. Topics are final then, and a connection whose subscriptions have everything may be
  /// closed.
  private func loopBecameQuiet() {
    let allQuiet = state.withLock { state in
      state.quiet += 1
      return state.quiet == contexts.count
    }
    guard allQuiet else { return }
    let first = contexts[0].loop
    // With `sync` always, subscribers get records only after they are on disk.
    core.stores.flush { [self] in first.execute { [self] in drain(first) } }
  }

  /// Starts closing connections once they have received all requested records.
  private func drain(_ first: any EventLoop) {
    let deadline = first.now + core.configuration.drainTime
    state.withLock { $0.deadline = deadline }
    core.becameEmpty.withLock { $0 = { [weak self] in self?.closeAll() } }
    core.stage.advance(to: .draining)
    if core.isEmpty { return closeAll() }
    _ = first.schedule(at: deadline) { [weak self] in self?.closeAll() }
  }

  /// Closes the remaining connections on every loop. The broker has stopped when the last loop is done.
  private func closeAll() {
    let begins = state.withLock { state in
      defer { state.isClosing = true }
      return !state.isClosing
    }
    guard begins else { return }
    for context in contexts {
      context.loop.execute { [self] in
        context.stop()
        let allClosed = state.withLock { state in
          state.closed += 1
          return state.closed == contexts.count
        }
        if allClosed { contexts[0].loop.execute { [self] in waitForPeers() } }
      }
    }
  }

  /// Waits until the peers have closed their connections, too. The system may still have bytes that a peer is about to read. If the process
  /// ended now, the peer's next segment would be answered by a reset, and these bytes would be lost.
  private func waitForPeers() {
    let first = contexts[0].loop
    let deadline = state.withLock { $0.isUrgent ? nil : $0.deadline }
    guard loops.areOwned, loops.streamCount > 0, let deadline, first.now < deadline else { return stopped() }
    _ = first.schedule(after: .milliseconds(5)) { [self] in waitForPeers() }
  }

  private func stopped() {
    core.stores.close { [self] in storageClosed() }
  }

  private func storageClosed() {
    let observers = state.withLock { state in
      guard state.phase != .stopped else { return [] as [@Sendable () -> Void] }
      state.phase = .stopped
      defer { state.observers = [] }
      return state.observers
    }
    core.cluster.withLock { $0 = nil }
    core.linkObserver.withLock { $0 = nil }
    // This runs on one of the loops, so `run()` joins their threads.
    loops.stop()
    for observer in observers { observer() }
  }
}
