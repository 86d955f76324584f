import SluiceIO
import SluiceLog
import SluiceSession
import SluiceStore
import SluiceWire
import Synchronization

/// Commits durable topics to the store and reads them back: one thread commits for all topics and connections, others read.
///
/// ```
///   loops ── enqueue(topic) ──► arrivals ── one signal a turn ──► writer: take, commit, publish the outcome
/// ```
///
/// While a commit is under way the next one gathers, so that one sync serves all topics that changed meanwhile.
// @unchecked: the properties of the writer's loop are used there only, but for `signal` and `notify`, which `start` sets before anything else
// happens; everything else is constant, atomic, or has a lock.
package final class StoreService: @unchecked Sendable {
  /// The longest time until the records of a topic with sync `os` are on disk.
  static let longestDelay = Duration.seconds(1)
  /// The delay of changes that no client waits for: positions of cursors and groups.
  static let idleDelay = Duration.milliseconds(200)
  /// So many waiting bytes of one topic are committed before their delay is over.
  static let commitBytes = 4 << 20
  private static let firstRetry = Duration.milliseconds(100)
  private static let longestRetry = Duration.seconds(2)
  private static let trimInterval = Duration.seconds(1)
  /// How often waiting producers are reported.
  private static let reminderInterval = Duration.seconds(60)

  /// Why the store takes no records, and since when.
  private struct Failure {
    var fault: Fault
    var since: MonotonicTime
  }

  package let store: any TopicStore
  package let pool: SegmentPool
  package let limits: TopicLimits
  /// The most bytes of one topic's records that may wait to be written, and of all together. What waits is written in one go, and has to fit into the
  /// store beside what is about to be dropped for it.
  private let topicBacklog: Int
  private let backlogInAll: Int
  private let writer: any EventLoop
  private let readers: [any EventLoop]
  package let report: @Sendable (StoreEvent) -> Void

  private struct Arrivals {
    var topics: [(topic: any DurableTopic, delay: Duration)] = []
    var nextID = TopicID(rawValue: 1)
    var isClosed = false
  }

  private let arrivals = Mutex(Arrivals())
  private let hasArrivals = Atomic(false)
  private let failure = Mutex<Failure?>(nil)
  private let size = Mutex<StoreSize?>(nil)
  /// Producers that were rejected while the store takes no records.
  package let waiters = StoreWaiters()
  private let isFaulty = Atomic(false)
  /// Bytes of records that wait, of all topics.
  private let waitingBytes = Atomic<Int>(0)
  private let metrics: BrokerMetrics
  private let commitTimes = Mutex(Histogram())
  /// Bytes of records that were read for subscribers behind the records in memory.
  let loadedBytes = Atomic<Int>(0)
  private var signal: (any LoopSignal)?

  // On the writer's loop only.
  private var due: [ObjectIdentifier: (topic: any DurableTopic, time: MonotonicTime)] = [:]
  private var builders: [ObjectIdentifier: (topic: any DurableTopic, builder: TopicCommitBuilder)] = [:]
  private var timer: TimerToken?
  /// Commits that failed and are tried again.
  private var stuck: [TopicCommit] = []
  private var retry = StoreService.firstRetry
  private var retryTimer: TimerToken?
  private var hasGarbage = true
  private var isClosed = false
  /// When waiting producers are reported next; nil while the store works.
  private var reminder: MonotonicTime?
  /// Whether there was a commit, or an attempt at one, since the size was read.
  private var hasGrown = true
  /// Called when the store begins or ceases to take records.
  private var notify: @Sendable () -> Void = {}

  /// - Parameters:
  ///   - writer: its thread is blocked while something is written.
  ///   - readers: theirs while something is read; at least one.
  package init(
    _ store: any TopicStore, pool: SegmentPool, limits: TopicLimits, writer: any EventLoop,
    readers: [any EventLoop], metrics: BrokerMetrics,
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
    self.writer = writer
    self.readers = readers
    self.report = report
  }

  /// Before anything else.
  package func start(nextTopic: TopicID, notify: @escaping @Sendable () -> Void) {
    self.notify = notify
    arrivals.withLock { $0.nextID = nextTopic }
    signal = writer.makeSignal { [weak self] in self?.run() }
    writer.execute { [self] in tick() }
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
    hasArrivals.store(true, ordering: .releasing)
  }

  /// Wakes the writer for what was enqueued. At the end of a turn.
  func kick() {
    if hasArrivals.load(ordering: .acquiring), hasArrivals.exchange(false, ordering: .acquiring) {
      signal?.fire()
    }
  }

  /// Why durable topics take no records now; nil when they do.
  package var refusal: Fault? {
    isFaulty.load(ordering: .acquiring) ? failure.withLock { $0?.fault } : nil
  }

  /// The store as it is. From any thread.
  package var snapshot: StoreSnapshot {
    var snapshot = StoreSnapshot()
    if isFaulty.load(ordering: .acquiring), let failure = failure.withLock({ $0 }) {
      snapshot.state = failure.fault.code == .storageFull ? .full : .failing
      snapshot.since = max((writer.readClock() - failure.since).clampedMilliseconds, 1)
      snapshot.message = failure.fault.message
    }
    let size = size.withLock { $0 }
    snapshot.limit = size?.limit ?? store.limit.map { UInt64($0) }
    snapshot.fileBytes = size?.files ?? 0
    snapshot.usedBytes = size?.used ?? 0
    snapshot.availableBytes = size?.available
    snapshot.backlog = UInt64(max(backlog, 0))
    snapshot.waiting = waiters.count
    return snapshot
  }

  /// The time of its loops. From any thread.
  package var now: MonotonicTime { writer.readClock() }

  func noteWaiting(_ bytes: Int) { waitingBytes.add(bytes, ordering: .relaxed) }

  /// Bytes of records that wait, of all topics.
  package var backlog: Int { waitingBytes.load(ordering: .relaxed) }

  /// How long commits took that succeeded.
  package var commitHistogram: Histogram { commitTimes.withLock { $0 } }

  /// How many more bytes of a topic's records may wait to be written, besides those that do.
  package func room(besides waiting: Int) -> Int {
    let inAll = backlogInAll - waitingBytes.load(ordering: .relaxed)
    return max(min(topicBacklog - waiting, inAll), 0)
  }

  /// Calls `body` on the thread of a reader.
  package func read(_ id: TopicID, _ body: @escaping @Sendable (any TopicStore) -> Void) {
    let reader = readers[Int(id.rawValue % UInt64(readers.count))]
    reader.execute { [store] in body(store) }
  }

  // MARK: The writer

  private func run() {
    guard !isClosed else { return }
    takeArrivals()
    let now = writer.now
    // A commit takes everything along, due or not: the sync is paid for.
    if stuck.isEmpty, due.values.contains(where: { $0.time <= now }) { commitAll() }
    setTimer()
  }

  private func takeArrivals() {
    let topics = arrivals.withLock { arrivals in
      defer { arrivals.topics.removeAll(keepingCapacity: arrivals.topics.capacity <= 1024) }
      return arrivals.topics
    }
    for (topic, delay) in topics {
      let time = writer.now + delay
      let known = due[ObjectIdentifier(topic)]
      due[ObjectIdentifier(topic)] = (topic, known.map { min($0.time, time) } ?? time)
    }
  }

  private func setTimer() {
    if let timer { writer.cancel(timer) }
    timer = nil
    guard stuck.isEmpty, let next = due.values.map(\.time).min() else { return }
    timer = writer.schedule(at: next) { [weak self] in
      self?.timer = nil
      self?.run()
    }
  }

  /// - Parameter isLast: takes changes along whose delay isn't over.
  private func commitAll(isLast: Bool = false) {
    let now = isLast ? writer.now + Self.idleDelay : writer.now
    let topics = due.values.map(\.topic)
    due.removeAll(keepingCapacity: due.capacity <= 1024)
    let commits = topics.compactMap { builder(of: $0).commit($0, now: now, wallClock: writer.wallClock) }
    guard !commits.isEmpty else { return }
    attempt(commits.sorted { $0.change.topic < $1.change.topic })
  }

  private func builder(of topic: any DurableTopic) -> TopicCommitBuilder {
    if let known = builders[ObjectIdentifier(topic)] { return known.builder }
    let builder = TopicCommitBuilder(topic, store)
    builders[ObjectIdentifier(topic)] = (topic, builder)
    return builder
  }

  /// - Returns: whether they are on disk.
  @discardableResult
  private func attempt(_ commits: [TopicCommit]) -> Bool {
    do throws(StoreError) {
      try commit(commits)
      stuck = []
      retry = Self.firstRetry
      recovered()
      for commit in commits { done(commit) }
      return true
    } catch {
      if error.kind == .invalid { return attemptEach(commits) }
      stuck = commits
      failed(error)
      return false
    }
  }

  /// The store refuses one of the changes for its contents: each topic's change is tried alone, and those that are refused are set aside.
  private func attemptEach(_ commits: [TopicCommit]) -> Bool {
    for (index, commit) in commits.enumerated() {
      do throws(StoreError) {
        try attemptAlone(commit)
      } catch {
        stuck = Array(commits[index...])
        failed(error)
        return false
      }
    }
    stuck = []
    retry = Self.firstRetry
    recovered()
    return true
  }

  /// - Throws: errors of the disk. A change that is refused for its contents is handled here.
  private func attemptAlone(_ whole: TopicCommit) throws(StoreError) {
    var commit = whole
    commit.change.states.removeAll { $0.violation != nil }
    let rejected = whole.change.states.filter { $0.violation != nil }
    do throws(StoreError) {
      try self.commit([commit])
    } catch {
      guard error.kind == .invalid else { throw error }
      return quarantine(whole, error)
    }
    for state in rejected { report(rejected: state, of: whole.topic) }
    done(commit, rejected: rejected)
  }

  private func report(rejected state: TopicChange.State, of topic: any DurableTopic) {
    metrics.add(.rejectedChanges)
    report(.rejected(topic: topic.name, message: state.violation?.message ?? ""))
  }

  /// Nothing more of this topic can be stored. Its waiting changes are dropped, and clients get the reason.
  private func quarantine(_ commit: TopicCommit, _ error: StoreError) {
    metrics.add(.rejectedChanges)
    report(.rejected(topic: commit.topic.name, message: error.message))
    let fault = Fault(
      code: .storageFailed,
      message:
        "the store refuses what was published to topic \(commit.topic.name), which takes nothing more; delete it, or have the broker started again to go on with what is stored"
    )
    let (bytes, completions) = commit.topic.quarantine(commit.taken, fault)
    waitingBytes.subtract(bytes, ordering: .relaxed)
    for completion in completions { completion.body(fault) }
  }

  /// The failed commits need too much room together: tries them one by one, the smallest first.
  private func commitSome() {
    for commit in stuck.sorted(by: { $0.taken.bytes < $1.taken.bytes }) {
      guard (try? self.commit([commit])) != nil else { return }
      stuck.removeAll { $0.topic === commit.topic }
      done(commit)
    }
    recovered()
  }

  /// Writes all of the commits or none, and counts them.
  private func commit(_ commits: [TopicCommit]) throws(StoreError) {
    let start = writer.readClock()
    hasGrown = true
    try store.commit(commits.map(\.change))
    let end = writer.readClock()
    commitTimes.withLock { $0.add(end > start ? end.nanoseconds - start.nanoseconds : 0) }
    metrics.add(.commits)
    metrics.add(.bytesStored, commits.reduce(0) { $0 + $1.taken.bytes })
  }

  /// - Parameter rejected: states that aren't stored, for what they are.
  private func done(_ commit: TopicCommit, rejected: [TopicChange.State] = []) {
    waitingBytes.subtract(commit.taken.bytes, ordering: .relaxed)
    if commit.change.isDeletion {
      builders[ObjectIdentifier(commit.topic)] = nil
      hasGarbage = true
      collectGarbage()
    } else {
      builder(of: commit.topic).moved(to: commit)
    }
    commit.topic.committed(commit)
    for completion in commit.taken.completions {
      let isRejected = completion.name.map { name in rejected.contains { $0.key == StoredValue.key(name) } }
      completion.body(isRejected ?? false ? Self.rejection(of: commit.topic) : nil)
    }
  }

  private static func rejection(of topic: any DurableTopic) -> Fault {
    Fault(
      code: .storageFailed,
      message: "the store refuses what was asked for in topic \(topic.name); the broker's log says why")
  }

  // MARK: Failures

  private func failed(_ error: StoreError) {
    metrics.add(.failedCommits)
    let isFull = error.kind == .full
    let fault = Fault(code: isFull ? .storageFull : .storageFailed, message: Self.publicMessage(error))
    let isNew = failure.withLock { failure in
      defer { failure = Failure(fault: fault, since: failure?.since ?? writer.now) }
      return failure?.fault.code != fault.code
    }
    isFaulty.store(true, ordering: .releasing)
    if isNew {
      reminder = reminder ?? writer.now
      report(.failed(message: error.message, isFull: isFull))
      notify()
    }
    // At most one retry timer is armed.
    guard retryTimer == nil else { return }
    retryTimer = writer.schedule(after: retry) { [weak self] in self?.tryAgain() }
    retry = min(retry * 2, Self.longestRetry)
  }

  /// The message for clients, without paths.
  private static func publicMessage(_ error: StoreError) -> String {
    error.kind == .full
      ? "the broker's storage has no room left; what was published to durable topics waits, try again later"
      : "the broker's storage fails; what was published to durable topics waits, try again later"
  }

  private func recovered() {
    guard isFaulty.exchange(false, ordering: .acquiringAndReleasing) else { return }
    failure.withLock { $0 = nil }
    waiters.removeAll()
    reminder = nil
    report(.recovered)
    notify()
  }

  /// Tries failed commits again. First what makes room: deletions, and records that topics no longer keep.
  private func tryAgain() {
    retryTimer = nil
    guard !isClosed, !stuck.isEmpty else { return }
    takeArrivals()
    // Changes without records may fit, where they failed together with larger ones.
    let light = stuck.filter { $0.change.batches.isEmpty }
    if !light.isEmpty, (try? store.commit(light.map(\.change))) != nil {
      stuck.removeAll { $0.change.batches.isEmpty }
      for commit in light { done(commit) }
    }
    for (key, entry) in due where entry.topic.isDeleted {
      due[key] = nil
      let builder = builder(of: entry.topic)
      guard let commit = builder.commit(entry.topic, now: writer.now, wallClock: writer.wallClock) else {
        continue
      }
      if (try? store.commit([commit.change])) == nil {
        due[key] = (entry.topic, writer.now)
        entry.topic.undo(commit.taken)
        break
      }
      done(commit)
      discardStuck(of: entry.topic)
    }
    for commit in stuck {
      guard let offset = commit.change.truncateBefore else { continue }
      var change = TopicChange(commit.change.topic)
      change.truncateBefore = min(offset, commit.before.head)
      try? store.commit([change])
    }
    // Records that have become too old meanwhile are dropped as well.
    for (topic, builder) in builders.values {
      guard let (change, limit) = builder.trim(topic, wallClock: writer.wallClock) else { continue }
      guard (try? store.commit([change])) != nil else { break }
      builder.trimmed(by: limit)
    }
    while let more = try? store.reclaim(), more {}
    let commits = stuck
    if commits.isEmpty { recovered() } else if !attempt(commits), commits.count > 1 { commitSome() }
    run()
  }

  /// Drops the failed commits of a deleted topic.
  private func discardStuck(of topic: any DurableTopic) {
    for commit in stuck where commit.topic === topic {
      waitingBytes.subtract(commit.taken.bytes, ordering: .relaxed)
      for completion in commit.taken.completions { completion.body(nil) }
    }
    stuck.removeAll { $0.topic === topic }
  }

  // MARK: Periodic work

  /// Drops records that have become too old, and frees the space of deleted topics.
  private func tick() {
    guard !isClosed else { return }
    collectGarbage()
    inspect()
    if stuck.isEmpty {
      for (topic, builder) in builders.values where builder.isOutdated(topic, wallClock: writer.wallClock) {
        due[ObjectIdentifier(topic)] = (topic, writer.now)
      }
      run()
    }
    _ = writer.schedule(after: Self.trimInterval) { [weak self] in self?.tick() }
  }

  /// Reads the store's size, and reports producers that wait.
  private func inspect() {
    if hasGrown || isFaulty.load(ordering: .relaxed) {
      hasGrown = false
      if let found = try? store.size() { size.withLock { $0 = found } }
    }
    guard let due = reminder, due <= writer.now, let failure = failure.withLock({ $0 }) else { return }
    guard waiters.count > 0 || backlog > 0 else { return }
    reminder = writer.now + Self.reminderInterval
    report(
      .waiting(
        publishers: waiters.count, bytes: backlog, isFull: failure.fault.code == .storageFull,
        milliseconds: (writer.now - failure.since).clampedMilliseconds))
  }

  /// Frees space a piece at a time, so that commits don't wait for it.
  private func collectGarbage() {
    guard hasGarbage, !isClosed, stuck.isEmpty else { return }
    do throws(StoreError) {
      hasGarbage = try store.reclaim()
    } catch {
      hasGarbage = false
    }
    guard hasGarbage else { return }
    writer.execute { [weak self] in self?.collectGarbage() }
  }

  /// Keeps track of topics that were restored from the store.
  package func adopt(_ topics: [any DurableTopic]) {
    writer.execute { [self] in for topic in topics { _ = builder(of: topic) } }
  }

  /// Reports what can't be read of a topic.
  package func lost(_ topic: String, _ message: String) {
    report(.lost(topic: topic, message: message))
  }

  // MARK: The end

  /// Commits what waits, if that is possible, and calls `body` on the writer's loop.
  package func flush(_ body: @escaping @Sendable () -> Void) {
    writer.execute { [self] in
      takeArrivals()
      if stuck.isEmpty, !isClosed { commitAll() }
      body()
    }
  }

  /// Commits what waits, and closes the store, which may not be used any more. Calls `body` on the writer's loop.
  package func close(_ body: @escaping @Sendable () -> Void) {
    writer.execute { [self] in
      takeArrivals()
      if stuck.isEmpty { commitAll(isLast: true) } else { attempt(stuck) }
      if stuck.isEmpty, !due.isEmpty { commitAll(isLast: true) }
      isClosed = true
      arrivals.withLock { arrivals in
        arrivals.isClosed = true
        arrivals.topics = []
      }
      if let timer { writer.cancel(timer) }
      do throws(StoreError) {
        if let refusal { throw StoreError(.failed, "\(refusal.message); what waited is lost") }
        try store.close()
        report(.closed(message: nil))
      } catch {
        report(.closed(message: error.message))
      }
      due = [:]
      builders = [:]
      stuck = []
      body()
    }
  }
}
