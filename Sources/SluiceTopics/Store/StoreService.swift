import SluiceIO
import SluiceLog
import SluiceSession
import SluiceStore
import SluiceWire
import Synchronization

/// Has the durable topics of one shard committed to its store and reads them back: one loop writes for all topics and connections, others read.
///
/// A broker of one node has one shard and one service; one of several nodes has a service for each shard that it owns.
///
/// ```
///   loops ── enqueue(topic) ──► arrivals ── one signal a turn ──► StoreWriter: take, commit, publish the outcome
/// ```
package final class StoreService: Sendable {
  /// The longest time until the records of a topic with sync `os` are on disk.
  static let longestDelay = Duration.seconds(1)
  /// The delay of changes that no client waits for: positions of cursors and groups.
  static let idleDelay = Duration.milliseconds(200)
  /// So many waiting bytes of one topic are committed before their delay is over.
  static let commitBytes = 4 << 20

  package let store: any ShardStore
  package let pool: SegmentPool
  package let limits: TopicLimits
  /// The most bytes of one topic's records that may wait to be written, and of all together. What waits is written in one go, and has to fit into the
  /// store beside what is about to be dropped for it.
  private let topicBacklog: Int
  private let backlogInAll: Int
  private let writingLoop: any EventLoop
  private let readers: [any EventLoop]
  package let report: @Sendable (StoreEvent) -> Void

  private struct Arrivals {
    var topics: [(topic: any DurableTopic, delay: Duration)] = []
    var nextID = TopicID(rawValue: 1)
    var isClosed = false
  }

  private let arrivals = Mutex(Arrivals())
  private let hasArrivals = StoreArrivals()
  private let arrivalsOfAll: StoreArrivals?
  let health = StoreHealth()
  /// Producers that were rejected while the store takes no records.
  package let waiters = StoreWaiters()
  /// Bytes of records that wait, of all topics.
  private let waitingBytes = Atomic<Int>(0)
  let metrics: BrokerMetrics
  private let commitTimes = Mutex(Histogram())
  /// Bytes of records that were read for subscribers behind the records in memory.
  let loadedBytes = Atomic<Int>(0)
  private let writing = Mutex<(writer: StoreWriter, signal: any LoopSignal)?>(nil)

  /// - Parameters:
  ///   - writer: the loop on which the store is used. A store that blocks blocks its thread while something is written.
  ///   - readers: their threads are blocked while something is read from such a store; at least one.
  ///   - arrivalsOfAll: is told, too, when something is enqueued: what this service has in common with others.
  package init(
    _ store: any ShardStore, pool: SegmentPool, limits: TopicLimits, writer: any EventLoop,
    readers: [any EventLoop], metrics: BrokerMetrics, arrivalsOfAll: StoreArrivals? = nil,
    report: @escaping @Sendable (StoreEvent) -> Void
  ) {
    precondition(!readers.isEmpty, "a store needs a loop that reads")
    self.store = store
    self.pool = pool
    self.limits = limits
    let limit = store.limit ?? .max
    topicBacklog = min(limits.topicBacklog, limit / 8)
    backlogInAll = min(limits.storageBacklog, limit / 4)
    self.metrics = metrics
    self.arrivalsOfAll = arrivalsOfAll
    writingLoop = writer
    self.readers = readers
    self.report = report
  }

  /// Before anything else.
  ///
  /// - Parameter notify: called when the store begins or ceases to take records.
  package func start(nextTopic: TopicID, notify: @escaping @Sendable () -> Void) {
    arrivals.withLock { $0.nextID = nextTopic }
    let writer = StoreWriter(self, on: writingLoop, notify: notify)
    let signal = writingLoop.makeSignal { [weak self] in self?.withWriter { $0.run() } }
    writing.withLock { $0 = (writer, signal) }
    store.begin { [weak self] event in
      guard let self else { return }
      // Jobs of the loop keep their order, and the store's events with them.
      if writingLoop.isCurrent { withWriter { $0.received(event) } } else { write { $0.received(event) } }
    }
    write { $0.tick() }
  }

  func newTopic() -> TopicID {
    arrivals.withLock { arrivals in
      defer { arrivals.nextID.rawValue += 1 }
      return arrivals.nextID
    }
  }

  // MARK: From any loop

  /// The topic has something to be committed within that time. It is taken up at the end of the turn, or with ``kick()``.
  func enqueue(_ topic: any DurableTopic, within delay: Duration) {
    arrivals.withLock { arrivals in
      if !arrivals.isClosed { arrivals.topics.append((topic, delay)) }
    }
    hasArrivals.note()
    arrivalsOfAll?.note()
  }

  /// Wakes the writer for what was enqueued. At the end of a turn.
  func kick() {
    if hasArrivals.take() { writing.withLock { $0 }?.signal.fire() }
  }

  /// What was enqueued. On the writer's loop.
  func takeArrivals() -> [(topic: any DurableTopic, delay: Duration)] {
    arrivals.withLock { arrivals in
      defer { arrivals.topics.removeAll(keepingCapacity: arrivals.topics.capacity <= 1024) }
      return arrivals.topics
    }
  }

  /// Why durable topics take no records now; nil when they do.
  package var refusal: Fault? { health.failure?.fault }

  /// The store as it is. From any thread.
  package var snapshot: StoreSnapshot {
    var snapshot = StoreSnapshot()
    if let failure = health.failure {
      snapshot.state = failure.fault.code == .storageFull ? .full : .failing
      snapshot.since = max((now - failure.since).clampedMilliseconds, 1)
      snapshot.message = failure.fault.message
      snapshot.isRemoved = failure.isRemoved
    }
    let size = health.size
    snapshot.limit = size?.limit ?? store.limit.map { UInt64($0) }
    snapshot.fileBytes = size?.files ?? 0
    snapshot.usedBytes = size?.used ?? 0
    snapshot.availableBytes = size?.available
    snapshot.backlog = UInt64(max(backlog, 0))
    snapshot.waiting = waiters.count
    return snapshot
  }

  /// The time of its loops. From any thread.
  package var now: MonotonicTime { writingLoop.readClock() }

  func noteWaiting(_ bytes: Int) { waitingBytes.add(bytes, ordering: .relaxed) }

  /// Bytes of records that wait, of all topics.
  package var backlog: Int { waitingBytes.load(ordering: .relaxed) }

  /// How long commits took that succeeded.
  package var commitHistogram: Histogram { commitTimes.withLock { $0 } }

  func commitTook(_ nanoseconds: UInt64) { commitTimes.withLock { $0.add(nanoseconds) } }

  /// How many more bytes of a topic's records may wait to be written, besides those that do.
  package func room(besides waiting: Int) -> Int {
    let inAll = backlogInAll - waitingBytes.load(ordering: .relaxed)
    return max(min(topicBacklog - waiting, inAll), 0)
  }

  /// Calls `body` where a topic may be read: on the thread of a reader if the store blocks, at once if it doesn't.
  package func read(_ id: TopicID, _ body: @escaping @Sendable (any ShardStore) -> Void) {
    guard store.isBlocking else { return body(store) }
    let reader = readers[Int(id.rawValue % UInt64(readers.count))]
    reader.execute { [store] in body(store) }
  }

  /// Reports what can't be read of a topic.
  package func lost(_ topic: String, _ message: String) {
    report(.lost(topic: topic, message: message))
  }

  // MARK: On the writer's loop

  /// Keeps track of topics that were restored from the store.
  package func adopt(_ topics: [any DurableTopic]) {
    write { $0.adopt(topics) }
  }

  /// Commits what waits, if that is possible, and calls `body` on the writer's loop when what was begun is settled.
  package func flush(_ body: @escaping @Sendable () -> Void) {
    write { $0.flush(body) }
  }

  /// Commits what waits, and closes the store, which may not be used any more. Calls `body` on the writer's loop.
  package func close(_ body: @escaping @Sendable () -> Void) {
    write { [self] writer in
      writer.close { [self] in
        arrivals.withLock { arrivals in
          arrivals.isClosed = true
          arrivals.topics = []
        }
        body()
      }
    }
  }

  private func write(_ body: @escaping @Sendable (StoreWriter) -> Void) {
    writingLoop.execute { [self] in withWriter(body) }
  }

  /// Calls `body` with the writer, which uses the service. On the writer's loop.
  func withWriter(_ body: (StoreWriter) -> Void) {
    guard let writer = writing.withLock({ $0?.writer }) else { return }
    withExtendedLifetime(self) { body(writer) }
  }
}
