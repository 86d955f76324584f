import Glibc
import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceStore
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
    /// How long an orderly stop may take; nil when there is nothing to wait for.
    var deadline: MonotonicTime?
    /// Somebody has run out of patience.
    var isUrgent = false
  }

  /// So many connections share a loop before the next one is used: as long as there are few, a record that goes from one to another
  /// needs no other thread to wake up, which costs more than all that is done with it.
  private static let connectionsTogether = 16

  let core: BrokerCore
  let contexts: [LoopContext]
  private let network: any Network
  private let group: LoopGroup
  /// True when the loops end with the broker.
  private let ownsLoops: Bool
  /// Threads that wait for the disk.
  private let storageGroup: LoopGroup?
  /// A thread that verifies credentials.
  private let accessGroup: LoopGroup?
  private let state = Mutex(State())

  /// Threads that read what is no longer in memory.
  private static let storageReaders = 2

  /// A broker on this machine's sockets, with event loops of its own.
  ///
  /// - Parameters:
  ///   - storage: where durable topics are, if there are to be any. The broker closes the store when it has stopped.
  ///   - access: whom the broker lets in, and what they may do; nil for everybody, and everything.
  ///   - layer: puts a network over that of sockets, for addresses that need one; nil for none.
  /// - Throws: ``ConfigurationError``; `IOError` when the loops can't be made; `StoreError` when the store can't be read.
  public convenience init(
    _ configuration: BrokerConfiguration, storage: StoreConfiguration? = nil, access: AccessPolicy? = nil,
    layer: ((any Network) -> any Network)? = nil
  ) throws {
    try configuration.validate()
    let group = try LoopGroup.threads(count: configuration.loops ?? LoopGroup.availableCores, name: "broker")
    let sockets = SocketNetwork(placement: .filling(upTo: Self.connectionsTogether))
    try self.init(
      configuration, network: layer?(sockets) ?? sockets, group: group, ownsLoops: true, storage: storage,
      storageGroup: storage == nil
        ? nil : try LoopGroup.threads(count: 1 + Self.storageReaders, name: "storage"), access: access,
      accessGroup: access == nil ? nil : try LoopGroup.threads(count: 1, name: "access"))
  }

  /// A broker on loops and a network that somebody else owns; they may be shared, or simulated.
  ///
  /// - Parameters:
  ///   - storage: where durable topics are, if there are to be any.
  ///   - storageGroup: the loops that work with the store, of which the first writes, and the others read; `group` if nil.
  ///   - access: whom the broker lets in, and what they may do; nil for everybody, and everything.
  ///   - accessGroup: the loops of which the first verifies credentials, which may take tens of milliseconds; `group` if nil.
  /// - Throws: ``ConfigurationError``; `StoreError` when the store can't be read.
  public convenience init(
    _ configuration: BrokerConfiguration, network: any Network, group: LoopGroup,
    storage: StoreConfiguration? = nil, storageGroup: LoopGroup? = nil, access: AccessPolicy? = nil,
    accessGroup: LoopGroup? = nil
  ) throws {
    try self.init(
      configuration, network: network, group: group, ownsLoops: false, storage: storage,
      storageGroup: storageGroup, access: access, accessGroup: accessGroup)
  }

  /// - Parameters:
  ///   - ownsLoops: whether the groups have threads that end with the broker.
  ///   - verify: how credentials are looked at.
  init(
    _ configuration: BrokerConfiguration, network: any Network, group: LoopGroup,
    ownsLoops: Bool, storage: StoreConfiguration? = nil, storageGroup: LoopGroup? = nil,
    access: AccessPolicy? = nil, accessGroup: LoopGroup? = nil,
    verify: @escaping Authenticator.Verification = Authenticator.verify
  ) throws {
    try configuration.validate()
    let now = group.loops[0].readClock()
    let metrics = BrokerMetrics()
    core = try BrokerCore(
      configuration: configuration, storage: storage, on: storageGroup ?? group,
      authenticator: access.map {
        Authenticator(
          $0, on: (accessGroup ?? group).loops[0], limits: configuration.limits, metrics: metrics,
          verify: verify)
      }, metrics: metrics, now: now)
    self.storageGroup = storageGroup
    self.accessGroup = accessGroup
    self.network = network
    self.group = group
    self.ownsLoops = ownsLoops
    contexts = group.loops.enumerated().map { [core] in
      LoopContext(loop: $1, core: core, isFirst: $0 == 0)
    }
  }

  /// Binds every address of the configuration and accepts connections. Returns at once; the loops do the work.
  ///
  /// - Returns: the addresses in fact bound, in the order of the configuration.
  /// - Throws: `IOError` for the first address that can't be bound; nothing is left half-started then.
  /// A broker that is stopped from another thread meanwhile accepts nothing: the listeners are closed before this returns.
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
    let loops = group.loops
    var listeners: [any Listener] = []
    do {
      for address in core.configuration.listen {
        listeners.append(
          try network.listen(at: address, group: group) { [core] stream, loop in
            guard let context = byLoop[ObjectIdentifier(loop)] else { return stream.abort() }
            Self.admit(stream, core, context, loops)
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
    // The broker was stopped while the addresses were bound, and the stop has found no listeners.
    if isStopping { for listener in listeners { listener.close() } }
    return listeners.map(\.address)
  }

  /// Starts, unless that was done, and returns when the broker has stopped.
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
    if ownsLoops {
      group.stopThreads()
      storageGroup?.stopThreads()
      accessGroup?.stopThreads()
    }
  }

  /// Calls `body` once, when the broker has stopped; at once if it has already. It may be called on any of the broker's loops, and must
  /// not wait there.
  public func whenStopped(_ body: @escaping @Sendable () -> Void) {
    let isStopped = state.withLock { state in
      if state.phase != .stopped { state.observers.append(body) }
      return state.phase == .stopped
    }
    if isStopped { body() }
  }

  /// Stops in an orderly way: no more connections, nothing more is published; subscribers get what is granted, then everybody is
  /// told and disconnected. Returns at once; ``run()`` returns when it is done, after the configuration's drain time at
  /// the latest. A second call stops at once.
  public func shutdown() {
    let (listeners, phase) = state.withLock { state in
      let phase = state.phase
      if phase == .running { state.phase = .stopping }
      return (state.listeners, phase)
    }
    guard phase == .running else { return phase == .stopping ? stop() : () }
    for listener in listeners { listener.close() }
    core.stage.store(.quiescing, ordering: .sequentiallyConsistent)
    for context in contexts {
      context.loop.execute { [self] in
        context.quiesce()
        loopBecameQuiet()
      }
    }
  }

  /// Stops at once: connections are closed as they are.
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

  /// What the broker has counted so far. From any thread.
  public var metrics: BrokerMetrics {
    core.metrics.set(.memoryUsed, to: core.memory.used)
    core.metrics.set(.keptBytes, to: core.memory.kept.used)
    core.metrics.set(.topics, to: core.registry.count)
    core.metrics.set(.storageBacklog, to: core.storage?.backlog ?? 0)
    return core.metrics
  }

  /// Has another policy hold from now on, also for the connections that there are: whoever isn't in it any more is disconnected with
  /// ``ErrorCode/accessRevoked``, and streams that its client may not have any more end with ``ErrorCode/permissionDenied``. From any thread; returns
  /// at once.
  ///
  /// - Precondition: the broker was made with a policy. One that asks nobody can't begin to.
  public func updateAccess(_ policy: AccessPolicy) {
    guard let authenticator = core.authenticator else {
      preconditionFailure("the broker asks nobody who they are")
    }
    authenticator.update(policy)
    for context in contexts { context.accessChanged() }
  }

  /// Has topics that are made from now on have other settings: see ``BrokerConfiguration/topicDefaults`` and
  /// ``BrokerConfiguration/topicRules``. Those that are there stay as they are. From any thread.
  public func updateTopics(defaults: TopicSettings, rules: [TopicRule]) {
    core.registry.update(defaults: defaults, rules: rules)
  }

  // MARK: Stopping

  /// When the last loop has stopped publishing, topics are final, and connections may be closed as they have got everything.
  private func loopBecameQuiet() {
    let allQuiet = state.withLock { state in
      state.quiet += 1
      return state.quiet == contexts.count
    }
    guard allQuiet else { return }
    let first = contexts[0].loop
    guard let storage = core.storage else { return first.execute { [self] in drain(first) } }
    // Records that nobody gets before they are on disk.
    storage.flush { [self] in first.execute { [self] in drain(first) } }
  }

  /// Nothing comes any more: connections may end when they have had what there is.
  private func drain(_ first: any EventLoop) {
    let deadline = first.now + core.configuration.drainTime
    state.withLock { $0.deadline = deadline }
    core.becameEmpty.withLock { $0 = { [weak self] in self?.closeAll() } }
    core.stage.store(.draining, ordering: .sequentiallyConsistent)
    if core.isEmpty { return closeAll() }
    _ = first.schedule(at: deadline) { [weak self] in self?.closeAll() }
  }

  /// Closes what is left on every loop; when the last one has, the broker has stopped.
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

  /// The connections are closed, but the system may still have bytes that their peers are about to read. If the process ended now, the
  /// next word of such a peer would be answered by a reset, and they would be lost. So their ends are waited for.
  private func waitForPeers() {
    let first = contexts[0].loop
    let deadline = state.withLock { $0.isUrgent ? nil : $0.deadline }
    let isDone = group.loops.allSatisfy { $0.streamCount == 0 }
    guard ownsLoops, !isDone, let deadline, first.now < deadline else { return stopped() }
    _ = first.schedule(after: .milliseconds(5)) { [self] in waitForPeers() }
  }

  private func stopped() {
    guard let storage = core.storage else { return storageClosed() }
    storage.close { [self] in storageClosed() }
  }

  private func storageClosed() {
    let observers = state.withLock { state in
      guard state.phase != .stopped else { return [] as [@Sendable () -> Void] }
      state.phase = .stopped
      defer { state.observers = [] }
      return state.observers
    }
    // This runs on one of the loops, so whoever waits in `run()` waits for their threads too.
    if ownsLoops {
      for loop in group.loops + (storageGroup?.loops ?? []) + (accessGroup?.loops ?? []) { loop.stop() }
    }
    for observer in observers { observer() }
  }

  // MARK: Connections

  /// A new connection, unless there are too many: then it is told so and closed, and costs nothing else.
  private static func admit(
    _ stream: any ByteStream, _ core: BrokerCore, _ context: LoopContext, _ loops: [any EventLoop]
  ) {
    // It was accepted before its listener was closed, and comes after the connections of its loop were.
    if context.isStopped { return stream.abort() }
    // Those that were closed keep their descriptors for a moment, until their peers have closed, too.
    let open = loops.reduce(0) { $0 + $1.streamCount }
    guard open <= core.configuration.limits.connections + BrokerLimits.closingConnections else {
      core.metrics.add(.refusedDescriptors)
      return stream.abort()
    }
    let origin = PeerOrigin(stream.peer)
    do {
      let id = try core.admit(from: origin)
      _ = Connection(id: id, stream: stream, origin: origin, context: context)
    } catch {
      core.configuration.report(.refused(nil, peer: stream.peer, error))
      RejectedConnection.tell(
        stream, error, on: context.loop, patience: core.configuration.limits.handshake)
    }
  }
}
