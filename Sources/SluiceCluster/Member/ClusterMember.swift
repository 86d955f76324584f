import SluiceBroker
import SluiceIO
import SluiceNATS
import SluiceStore
import SluiceTopics

/// A broker as a node of a cluster: opens the shards that the node has gained, closes those that move to another one, and passes the routes of other shards
/// to the broker.
///
/// ```
///   engine ◄──► ClusterNode ── gained, closing, lost ──► ClusterMember ── open, close, lose ──► Broker
///                    └──────── directory ──────────────► ShardRoutes ◄── route(of:) ──────────────┘
/// ```
///
/// May be used from any thread. The caller keeps it until ``close()``, after ``leave(_:)`` for an orderly shutdown.
// @unchecked: mutable state belongs to `loop`.
public final class ClusterMember: @unchecked Sendable {
  public let options: ClusterOptions
  /// The nodes that serve topics, for the broker.
  package let routes: ShardRoutes
  private let loop: any EventLoop
  private let node: ClusterNode
  private let engine: JetStreamEngine
  private let report: @Sendable (ClusterEvent) -> Void
  private let storeReport: @Sendable (ShardID, StoreEvent) -> Void
  private var broker: Broker?
  private var shards: [Int: MemberShard] = [:]
  private var hasLeft: (@Sendable () -> Void)?
  private var isClosed = false

  /// - Parameters:
  ///   - options: the node's name, address, and engine.
  ///   - engineOptions: how shards are stored.
  ///   - network: where connections to the engine are made, without TLS.
  ///   - loop: the loop on which the node and its stores run. It mustn't serve connections, because a lease must be renewed in time.
  ///   - writer: a random number that distinguishes this process, and the shards that it opens, from other processes of the same name.
  ///   - storeReport: called with the events of the shards' stores, on `loop`, which waits.
  ///   - report: called with the cluster's events, in order, on `loop`, which waits.
  /// - Throws: ``ClusterError`` for invalid settings; `NATSError` for invalid addresses and TLS files.
  public init(
    _ options: ClusterOptions, engineOptions: JetStreamEngineOptions = JetStreamEngineOptions(),
    network: any Network, on loop: any EventLoop, writer: UInt64 = UInt64.random(in: 1 ... .max),
    storeReport: @escaping @Sendable (ShardID, StoreEvent) -> Void = { _, _ in },
    report: @escaping @Sendable (ClusterEvent) -> Void = { _ in }
  ) throws {
    self.options = options
    routes = ShardRoutes(of: options.name)
    self.loop = loop
    self.report = report
    self.storeReport = storeReport
    node = try ClusterNode(options, network: network, on: loop, writer: writer)
    engine = JetStreamEngine(node.client, options: engineOptions, seed: writer)
    node.leaseChanged = { [routes] in routes.lease.set(end: $0) }
  }

  // MARK: From any thread

  /// Joins the cluster. Call it once.
  ///
  /// - Parameter broker: a started broker that was made with the routes of this member; kept until ``close()``.
  public func start(_ broker: Broker) {
    loop.execute { [self] in
      self.broker = broker
      node.control.broker = broker.identity
      node.checkPeer = { [loop] peer, done in
        broker.reach(
          RemoteNode(name: peer.node, address: peer.address), identity: peer.broker
        ) { problem in
          loop.execute { done(problem) }
        }
      }
      broker.observeLinks { [weak self] node in
        guard let self else { return }
        loop.execute { [self] in self.node.doubt(node) }
      }
      node.start { [weak self] in self?.happened($0) }
    }
  }

  /// Hands all shards over to the other nodes, then leaves the cluster. Without other nodes the shards are only closed.
  ///
  /// - Parameter done: called on the loop when the node has left. It is never called if the engine stays unreachable: the caller limits the time.
  public func leave(_ done: @escaping @Sendable () -> Void) {
    loop.execute { [self] in
      guard !isClosed else { return done() }
      hasLeft = done
      node.leave()
    }
  }

  /// Ends at once. Other nodes take over the remaining shards when the lease has expired.
  public func close() {
    loop.execute { [self] in
      guard !isClosed else { return }
      isClosed = true
      node.close()
      routes.lease.set(end: nil)
      for shard in shards.keys.sorted() { lose(shard) }
      node.checkPeer = nil
      broker = nil
      hasLeft.take()?()
    }
  }

  /// Reports the node's knowledge of the cluster.
  ///
  /// - Parameter body: called on the loop.
  public func status(_ body: @escaping @Sendable (ClusterStatus) -> Void) {
    loop.execute { [self] in
      var status = node.status
      status.commits = engine.meter.times
      body(status)
    }
  }

  /// Makes a node hand over its shards, or cancels that: see ``ClusterNode/drain(_:_:_:)``.
  ///
  /// - Parameters:
  ///   - node: the node's name.
  ///   - isWanted: false to cancel the drain.
  ///   - done: called on the loop with the failure; nil if the request was stored.
  public func drain(
    _ node: String, _ isWanted: Bool = true, _ done: @escaping @Sendable (NATSError?) -> Void
  ) {
    wish(done) { member, done throws(NATSError) in try member.node.drain(node, isWanted, done) }
  }

  /// Pins a shard to a node while that is live, or cancels that: see ``ClusterNode/pin(_:to:_:)``.
  ///
  /// - Parameters:
  ///   - shard: the shard's number.
  ///   - node: the node's name; nil to cancel the pin.
  ///   - done: called on the loop with the failure; nil if the request was stored.
  public func pin(_ shard: Int, to node: String?, _ done: @escaping @Sendable (NATSError?) -> Void) {
    wish(done) { member, done throws(NATSError) in try member.node.pin(shard, to: node, done) }
  }

  private func wish(
    _ done: @escaping @Sendable (NATSError?) -> Void,
    _ body: @escaping @Sendable (ClusterMember, @escaping (NATSError?) -> Void) throws(NATSError) -> Void
  ) {
    loop.execute { [self] in
      do throws(NATSError) {
        try body(self, done)
      } catch {
        done(error)
      }
    }
  }

  // MARK: Events of the cluster

  private func happened(_ event: ClusterEvent) {
    switch event {
    case .gained(let shard, let term): open(shard, term)
    case .closing(let shard, let term, _): close(shard, term)
    case .lost(let shard, _): lose(shard)
    case .resumed: broker?.leaseResumed()
    case .engineConnected: broker?.boundRecords(by: engine.longestRecord)
    case .directoryChanged(let shards): updateRoutes(shards)
    default: break
    }
    report(event)
    if case .left = event { hasLeft.take()?() }
  }

  private func updateRoutes(_ shards: some Sequence<Int>) {
    let changed = shards.map { (ShardID(rawValue: UInt32($0)), route(of: $0)) }
    let (count, nodes) = node.others
    routes.update(
      shardCount: count, nodes: nodes, problems: node.control.peerProblems,
      Dictionary(uniqueKeysWithValues: changed))
  }

  private func route(of shard: Int) -> TopicRoute {
    switch node.route(ofShard: shard) {
    case .local: shards[shard]?.isServed ?? false ? .local : .moving
    case .remote(let name, let address, _): .remote(RemoteNode(name: name, address: address))
    case .moving: .moving
    }
  }

  // MARK: Shards

  private func open(_ number: Int, _ term: UInt64) {
    // A shard of an earlier term has ended; its topics mustn't be served beside the new ones.
    if shards[number] != nil { lose(number) }
    shards[number] = MemberShard(term: term)
    updateRoutes([number])
    let shard = ShardID(rawValue: UInt32(number))
    engine.open(ShardLease(shard: shard, term: term)) { [weak self] result in
      guard let self else { return }
      loop.execute { [self] in opened(number, term, result) }
    }
  }

  private func opened(_ number: Int, _ term: UInt64, _ result: Result<OpenedShard, StoreError>) {
    switch result {
    case .failure(let error):
      guard shards[number]?.term == term else { return }
      shards[number] = nil
      storeReport(ShardID(rawValue: UInt32(number)), .failed(message: error.message, isFull: false))
      node.closed(number, term: term)
    case .success(let opened):
      guard shards[number]?.term == term, let broker else { return opened.store.close { _ in } }
      let shard = ShardID(rawValue: UInt32(number))
      shards[number]?.isWithBroker = true
      broker.open(
        shard, opened, on: loop, report: { [storeReport] in storeReport(shard, $0) }
      ) { [weak self] error in
        guard let self else { return }
        loop.execute { [self] in served(number, term, error) }
      }
    }
  }

  private func served(_ number: Int, _ term: UInt64, _ error: StoreError?) {
    guard shards[number]?.term == term else { return }
    if error != nil || shards[number]?.isClosing == true { return shut(number, term) }
    shards[number]?.isServed = true
    node.opened(number, term: term)
    updateRoutes([number])
  }

  private func close(_ number: Int, _ term: UInt64) {
    guard let shard = shards[number], shard.term == term, !shard.isClosing else { return }
    shards[number]?.isClosing = true
    updateRoutes([number])
    // A shard that is being opened is closed once it is open.
    if shard.isServed { shut(number, term) }
  }

  private func shut(_ number: Int, _ term: UInt64) {
    shards[number]?.isServed = false
    updateRoutes([number])
    broker?.close(ShardID(rawValue: UInt32(number))) { [weak self] in
      guard let self else { return }
      loop.execute { [self] in
        guard shards[number]?.term == term else { return }
        shards[number] = nil
        node.closed(number, term: term)
      }
    }
  }

  private func lose(_ number: Int) {
    guard let shard = shards.removeValue(forKey: number) else { return }
    updateRoutes([number])
    if shard.isWithBroker { broker?.lose(ShardID(rawValue: UInt32(number))) }
  }
}

/// A shard that the node owns, as its broker sees it.
private struct MemberShard {
  var term: UInt64
  /// Whether the broker has its store.
  var isWithBroker = false
  /// Whether clients may use its topics.
  var isServed = false
  var isClosing = false
}
