import SluiceStore
import SluiceWire
import Synchronization

/// Where this node's durable topics are stored: one service for a broker of one node, and one for each of its shards in a cluster. From any
/// thread.
package final class TopicStores: Sendable {
  private enum Kind: Sendable {
    /// There are no durable topics.
    case none
    case one(StoreService)
    case shards(ShardRoutes)
  }

  private let kind: Kind
  private let services = Mutex(ShardServices())
  /// Of the shards' services.
  package let arrivals = StoreArrivals()

  /// - Parameters:
  ///   - service: the only one; nil for a broker without durable topics, and for a node of a cluster.
  ///   - routes: which shard a topic belongs to; nil for a broker of one node.
  package init(_ service: StoreService?, _ routes: ShardRoutes?) {
    if let routes {
      kind = .shards(routes)
    } else {
      kind = service.map { .one($0) } ?? .none
    }
  }

  /// Whether a topic can be durable.
  package var areAvailable: Bool {
    if case .none = kind { return false }
    return true
  }

  /// The service that stores a topic; nil if this node doesn't.
  package func service(for topic: String) -> StoreService? {
    switch kind {
    case .none: nil
    case .one(let service): service
    case .shards(let routes): routes.shard(of: topic).flatMap { shard in services.withLock { $0[shard] } }
    }
  }

  package func service(of shard: ShardID) -> StoreService? { services.withLock { $0[shard] } }

  /// All of them, in the order of their shards.
  package var all: [StoreService] {
    switch kind {
    case .none: []
    case .one(let service): [service]
    case .shards: services.withLock { $0.inOrder }
    }
  }

  package func add(_ service: StoreService, of shard: ShardID) { services.withLock { $0[shard] = service } }

  /// - Returns: the shard's service, if it had one.
  package func remove(_ shard: ShardID) -> StoreService? {
    services.withLock { $0.remove(shard) }
  }

  /// Removes a service that is closed; the shard may have another one by now.
  package func remove(_ service: StoreService, of shard: ShardID) {
    services.withLock { if $0[shard] === service { $0[shard] = nil } }
  }

  // MARK: All of them

  /// Wakes the writers for what was enqueued. At the end of a turn.
  package func kick() {
    switch kind {
    case .none: break
    case .one(let service): service.kick()
    case .shards:
      // Most turns bring none, and a node has many shards.
      guard arrivals.take() else { return }
      for service in all { service.kick() }
    }
  }

  /// A connection has ended.
  package func forgetWaiters(of connection: UInt64) {
    for service in all { service.waiters.remove(carrier: connection) }
  }

  package var waiters: [StoreWaiter] { all.flatMap(\.waiters.all) }

  /// Bytes of records that wait to be written.
  package var backlog: Int { all.reduce(0) { $0 + $1.backlog } }

  /// How long commits took that succeeded; nil without a store.
  package var commitHistogram: Histogram? {
    let all = all
    guard var sum = all.first?.commitHistogram else { return nil }
    for service in all.dropFirst() { sum.add(service.commitHistogram) }
    return sum
  }

  /// The stores as one; nil for a broker without.
  package var snapshot: StoreSnapshot? {
    let snapshots = all.map(\.snapshot)
    guard var sum = snapshots.first else { return areAvailable ? StoreSnapshot() : nil }
    for snapshot in snapshots.dropFirst() { sum.add(snapshot) }
    return sum
  }

  /// Commits what waits, as far as that is possible, and calls `body` when what was begun is settled, on any thread.
  package func flush(_ body: @escaping @Sendable () -> Void) { forEach({ $0.flush($1) }, then: body) }

  /// Commits what waits and closes the stores, which may not be used any more. Calls `body` on any thread.
  package func close(_ body: @escaping @Sendable () -> Void) { forEach({ $0.close($1) }, then: body) }

  private func forEach(
    _ step: (StoreService, @escaping @Sendable () -> Void) -> Void, then body: @escaping @Sendable () -> Void
  ) {
    let all = all
    guard !all.isEmpty else { return body() }
    let rest = SharedCount(all.count)
    for service in all { step(service) { if rest.countDown() { body() } } }
  }
}

/// Counts down from any thread.
private final class SharedCount: Sendable {
  private let count: Atomic<Int>

  init(_ count: Int) { self.count = Atomic(count) }

  /// Returns whether that was the last one.
  func countDown() -> Bool { count.subtract(1, ordering: .acquiringAndReleasing).newValue == 0 }
}

extension StoreSnapshot {
  /// Adds the store of another shard: the one that is worst off tells the state.
  mutating func add(_ other: StoreSnapshot) {
    let isWorse = state == .working ? other.state != .working : other.since > since
    if isWorse {
      (state, since, message, isRemoved) = (other.state, other.since, other.message, other.isRemoved)
    }
    fileBytes += other.fileBytes
    usedBytes += other.usedBytes
    backlog += other.backlog
    waiting += other.waiting
    limit = limit.flatMap { own in other.limit.map { own + $0 } }
    availableBytes = availableBytes ?? other.availableBytes
  }
}

/// The services of a node's shards. In the order of the shards they are called, so that a simulation follows from its seed.
private struct ShardServices {
  private var byShard: [ShardID: StoreService] = [:]
  private(set) var inOrder: [StoreService] = []

  subscript(shard: ShardID) -> StoreService? {
    get { byShard[shard] }
    set {
      byShard[shard] = newValue
      inOrder = byShard.sorted { $0.key < $1.key }.map(\.value)
    }
  }

  mutating func remove(_ shard: ShardID) -> StoreService? {
    defer { self[shard] = nil }
    return byShard[shard]
  }
}

/// Whether something was enqueued at any of several services. From any thread.
package final class StoreArrivals: Sendable {
  private let areThere = Atomic(false)

  package init() {}

  func note() { areThere.store(true, ordering: .releasing) }

  /// - Returns: whether something was enqueued since the last call.
  func take() -> Bool {
    areThere.load(ordering: .acquiring) && areThere.exchange(false, ordering: .acquiring)
  }
}
