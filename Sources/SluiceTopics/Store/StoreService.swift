import SluiceIO
import SluiceLog
import SluiceSession
import SluiceStore
import SluiceWire
import Synchronization

/// Commits the durable topics of one shard to its store and reads them back: one loop writes for all topics and connections, others read.
///
/// A broker of one node has one shard and one service; a node of a cluster has a service for each shard that it owns.
///
/// ```
///   loops ── enqueue(topic) ──► arrivals ── one signal a turn ──► StoreWriter: take, commit, publish the outcome
/// ```
package final class StoreService: Sendable {
  /// The longest time until the records of a topic with sync `os` are on disk.
  static let longestDelay = Duration.seconds(1)
  /// The delay of changes that no client waits for: positions of cursors and groups.
  static let idleDelay = Duration.milliseconds(200)
  /// When so many bytes of one topic wait, they are committed before their delay ends.
  static let commitBytes = 4 << 20

  package let store: any ShardStore
  package let pool: SegmentPool
  package let limits: TopicLimits
  /// The most bytes that may wait to be written, of one topic and of all topics. Waiting records are written at once, and must fit into the store beside the
  /// records that they replace.
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
  /// Producers that were rejected while the store accepts no records.
  package let waiters = StoreWaiters()
  /// Waiting bytes of records, of all topics.
  private let waitingBytes = Atomic<Int>(0)
  let metrics: BrokerMetrics
  private let commitTimes = Mutex(Histogram())
  /// Bytes of records read for subscribers that need records older than those in memory.
  let loadedBytes = Atomic<Int>(0)
  private let writing = Mutex<(writer: StoreWriter, signal: any LoopSignal)?>(nil)

  /// - Parameters:
  ///   - writer: the loop on which the store is used. A store that blocks blocks the loop's thread while it writes.
  ///   - readers: the threads that such a store blocks while it reads; at least one.
  ///   - arrivalsOfAll: also notified when a topic is enqueued; several services share it.
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

  /// Starts the writer. Call it before anything else.
  ///
  /// - Parameter notify: called when the store begins or ceases to accept records.
  package func start(nextTopic: TopicID, notify: @escaping @Sendable () -> Void) {
    arrivals.withLock { $0.nextID = nextTopic }
    let writer = StoreWriter(self, on: writingLoop, notify: notify)
    let signal = writingLoop.makeSignal { [weak self] in self?.withWriter { $0.run() } }
    writing.withLock { $0 = (writer, signal) }
    store.begin { [weak self] event in
      guard let self else { return }
      // Jobs of a loop keep their order, so the store's events do too.
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

  /// Enqueues a topic whose changes must be committed within that time. The writer starts at the end of the turn, or with ``kick()``.
  func enqueue(_ topic: any DurableTopic, within delay: Duration) {
    arrivals.withLock { arrivals in
      if !arrivals.isClosed { arrivals.topics.append((topic, delay)) }
    }
    hasArrivals.note()
    arrivalsOfAll?.note()
  }

  /// Wakes the writer if topics were enqueued. Called at the end of a turn.
  func kick() {
    if hasArrivals.take() { writing.withLock { $0 }?.signal.fire() }
  }

  /// Takes the enqueued topics. On the writer's loop.
  func takeArrivals() -> [(topic: any DurableTopic, delay: Duration)] {
    arrivals.withLock { arrivals in
      defer { arrivals.topics.removeAll(keepingCapacity: arrivals.topics.capacity <= 1024) }
      return arrivals.topics
    }
  }

  /// Why durable topics accept no records now; nil if they do.
  package var refusal: Fault? { health.failure?.fault }

  /// The state of the store. From any thread.
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

  /// Waiting bytes of records, of all topics.
  package var backlog: Int { waitingBytes.load(ordering: .relaxed) }

  /// The durations of successful commits.
  package var commitHistogram: Histogram { commitTimes.withLock { $0 } }

  func commitTook(_ nanoseconds: UInt64) { commitTimes.withLock { $0.add(nanoseconds) } }

  /// How many more bytes of a topic's records may wait to be written, besides the waiting ones.
  package func room(besides waiting: Int) -> Int {
    let inAll = backlogInAll - waitingBytes.load(ordering: .relaxed)
    return max(min(topicBacklog - waiting, inAll), 0)
  }

  /// Calls `body` on a thread where a topic may be read: a reader's thread if the store blocks, this thread at once otherwise.
  package func read(_ id: TopicID, _ body: @escaping @Sendable (any ShardStore) -> Void) {
    guard store.isBlocking else { return body(store) }
    let reader = readers[Int(id.rawValue % UInt64(readers.count))]
    reader.execute { [store] in body(store) }
  }

  /// Reports data of a topic that can't be read.
  package func lost(_ topic: String, _ message: String) {
    report(.lost(topic: topic, message: message))
  }

  // MARK: On the writer's loop

  /// Registers topics that were restored from the store.
  package func adopt(_ topics: [any DurableTopic]) {
    write { $0.adopt(topics) }
  }

  /// Commits all waiting changes if possible, and calls `body` on the writer's loop when the commits are settled.
  package func flush(_ body: @escaping @Sendable () -> Void) {
    write { $0.flush(body) }
  }

  /// Commits all waiting changes and closes the store, which must not be used afterwards. Calls `body` on the writer's loop.
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

  /// Calls `body` with the writer, exclusively. On the writer's loop.
  func withWriter(_ body: (StoreWriter) -> Void) {
    guard let writer = writing.withLock({ $0?.writer }) else { return }
    withExtendedLifetime(self) { body(writer) }
  }
}
