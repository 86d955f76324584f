import SluiceStore
import SluiceWire
import Synchronization

/// The stores of this node's durable topics: one service for a broker of one node, and one for each shard of a cluster's node. From any thread.
package final class TopicStores: Sendable {
  private enum Kind: Sendable {
    /// There are no durable topics.
    case none
    case one(StoreService)
    case shards(ShardRoutes)
  }

  private let kind: Kind
  private let services = Mutex(ShardServices())
  /// The arrivals that the shards' services share.
  package let arrivals = StoreArrivals()

  /// - Parameters:
  ///   - service: the only service; nil for a broker without durable topics, and for a node of a cluster.
  ///   - routes: the shards of topics; nil for a broker of one node.
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

  /// The service that stores a topic; nil if this node doesn't store it.
  package func service(for topic: String) -> StoreService? {
    switch kind {
    case .none: nil
    case .one(let service): service
    case .shards(let routes): routes.shard(of: topic).flatMap { shard in services.withLock { $0[shard] } }
    }
  }

  package func service(of shard: ShardID) -> StoreService? { services.withLock { $0[shard] } }

  /// All services, in the order of their shards.
  package var all: [StoreService] {
    switch kind {
    case .none: []
    case .one(let service): [service]
    case .shards: services.withLock { $0.inOrder }
    }
  }

  package func add(_ service: StoreService, of shard: ShardID) { services.withLock { $0[shard] = service } }

  /// - Returns: the shard's service, if any.
  package func remove(_ shard: ShardID) -> StoreService? {
    services.withLock { $0.remove(shard) }
  }

  /// Removes a closed service; the shard may already have a new one.
  package func remove(_ service: StoreService, of shard: ShardID) {
    services.withLock { if $0[shard] === service { $0[shard] = nil } }
  }

  // MARK: All of them

  /// Wakes the writers if topics were enqueued. Called at the end of a turn.
  package func kick() {
    switch kind {
    case .none: break
    case .one(let service): service.kick()
    case .shards:
      // In most turns no topic was enqueued, and a node has many shards.
      guard arrivals.take() else { return }
      for service in all { service.kick() }
    }
  }

  /// Removes the waiting producers of a connection that has ended.
  package func forgetWaiters(of connection: UInt64) {
    for service in all { service.waiters.remove(carrier: connection) }
  }

  package var waiters: [StoreWaiter] { all.flatMap(\.waiters.all) }

  /// Bytes of records that wait to be written.
  package var backlog: Int { all.reduce(0) { $0 + $1.backlog } }

  /// The durations of successful commits; nil without a store.
  package var commitHistogram: Histogram? {
    let all = all
    guard var sum = all.first?.commitHistogram else { return nil }
    for service in all.dropFirst() { sum.add(service.commitHistogram) }
    return sum
  }

  /// The state of all stores together; nil for a broker without stores.
  package var snapshot: StoreSnapshot? {
    let snapshots = all.map(\.snapshot)
    guard var sum = snapshots.first else { return areAvailable ? StoreSnapshot() : nil }
    for snapshot in snapshots.dropFirst() { sum.add(snapshot) }
    return sum
  }

  /// Commits all waiting changes as far as possible, and calls `body` when the commits are settled, on any thread.
  package func flush(_ body: @escaping @Sendable () -> Void) { forEach({ $0.flush($1) }, then: body) }

  /// Commits all waiting changes and closes the stores, which must not be used afterwards. Calls `body` on any thread.
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
  /// Adds the store of another shard. The state and message are those of the store that has failed longest.
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

/// The services of a node's shards. They are called in the order of the shards, so that a simulation is determined by its seed.
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

/// Whether a topic was enqueued at any of several services. From any thread.
package final class StoreArrivals: Sendable {
  private let areThere = Atomic(false)

  package init() {}

  func note() { areThere.store(true, ordering: .releasing) }

  /// - Returns: whether a topic was enqueued since the last call.
  func take() -> Bool {
    areThere.load(ordering: .acquiring) && areThere.exchange(false, ordering: .acquiring)
  }
}
