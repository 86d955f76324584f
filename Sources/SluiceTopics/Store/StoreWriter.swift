import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire

/// Commits what durable topics have to be stored, tries again what has failed, and keeps the store within its topics' limits.
///
/// While a commit is under way the next one gathers, so that one sync serves all topics that changed meanwhile.
// @unchecked: belongs to `loop`, whose thread is blocked while something is written.
final class StoreWriter: @unchecked Sendable {
  private static let firstRetry = Duration.milliseconds(100)
  private static let longestRetry = Duration.seconds(2)
  private static let trimInterval = Duration.seconds(1)
  /// How often waiting producers are reported.
  private static let reminderInterval = Duration.seconds(60)

  private let store: any TopicStore
  private let loop: any EventLoop
  /// Has the writer, and calls it: see ``StoreService/withWriter(_:)``.
  private unowned let service: StoreService
  /// Called when the store begins or ceases to take records.
  private let notify: @Sendable () -> Void

  private var due: [ObjectIdentifier: (topic: any DurableTopic, time: MonotonicTime)] = [:]
  private var builders: [ObjectIdentifier: (topic: any DurableTopic, builder: TopicCommitBuilder)] = [:]
  private var timer: TimerToken?
  /// Commits that failed and are tried again.
  private var stuck: [TopicCommit] = []
  private var retry = firstRetry
  private var retryTimer: TimerToken?
  private var hasGarbage = true
  private var isClosed = false
  /// When waiting producers are reported next; nil while the store works.
  private var reminder: MonotonicTime?
  /// Whether there was a commit, or an attempt at one, since the size was read.
  private var hasGrown = true

  init(_ service: StoreService, on loop: any EventLoop, notify: @escaping @Sendable () -> Void) {
    self.service = service
    store = service.store
    self.loop = loop
    self.notify = notify
  }

  func run() {
    guard !isClosed else { return }
    takeArrivals()
    let now = loop.now
    // A commit takes everything along, due or not: the sync is paid for.
    if stuck.isEmpty, due.values.contains(where: { $0.time <= now }) { commitAll() }
    setTimer()
  }

  func takeArrivals() {
    for (topic, delay) in service.takeArrivals() {
      let time = loop.now + delay
      let known = due[ObjectIdentifier(topic)]
      due[ObjectIdentifier(topic)] = (topic, known.map { min($0.time, time) } ?? time)
    }
  }

  private func setTimer() {
    if let timer { loop.cancel(timer) }
    timer = nil
    guard stuck.isEmpty, let next = due.values.map(\.time).min() else { return }
    timer = loop.schedule(at: next) { [weak service] in
      service?.withWriter {
        $0.timer = nil
        $0.run()
      }
    }
  }

  /// - Parameter isLast: takes changes along whose delay isn't over.
  func commitAll(isLast: Bool = false) {
    let now = isLast ? loop.now + StoreService.idleDelay : loop.now
    let topics = due.values.map(\.topic)
    due.removeAll(keepingCapacity: due.capacity <= 1024)
    let commits = topics.compactMap { builder(of: $0).commit($0, now: now, wallClock: loop.wallClock) }
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
    service.metrics.add(.rejectedChanges)
    service.report(.rejected(topic: topic.name, message: state.violation?.message ?? ""))
  }

  /// Nothing more of this topic can be stored. Its waiting changes are dropped, and clients get the reason.
  private func quarantine(_ commit: TopicCommit, _ error: StoreError) {
    service.metrics.add(.rejectedChanges)
    service.report(.rejected(topic: commit.topic.name, message: error.message))
    let fault = Fault(
      code: .storageFailed,
      message:
        "the store refuses what was published to topic \(commit.topic.name), which takes nothing more; delete it, or have the broker started again to go on with what is stored"
    )
    let (bytes, completions) = commit.topic.quarantine(commit.taken, fault)
    service.noteWaiting(-bytes)
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
    let start = loop.readClock()
    hasGrown = true
    try store.commit(commits.map(\.change))
    let end = loop.readClock()
    service.commitTook(end > start ? end.nanoseconds - start.nanoseconds : 0)
    service.metrics.add(.commits)
    service.metrics.add(.bytesStored, commits.reduce(0) { $0 + $1.taken.bytes })
  }

  /// - Parameter rejected: states that aren't stored, for what they are.
  private func done(_ commit: TopicCommit, rejected: [TopicChange.State] = []) {
    service.noteWaiting(-commit.taken.bytes)
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
    service.metrics.add(.failedCommits)
    if service.health.failed(error, now: loop.now) {
      reminder = reminder ?? loop.now
      service.report(.failed(message: error.message, isFull: error.kind == .full))
      notify()
    }
    // At most one retry timer is armed.
    guard retryTimer == nil else { return }
    retryTimer = loop.schedule(after: retry) { [weak service] in service?.withWriter { $0.tryAgain() } }
    retry = min(retry * 2, Self.longestRetry)
  }

  private func recovered() {
    guard service.health.recovered() else { return }
    service.waiters.removeAll()
    reminder = nil
    service.report(.recovered)
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
      guard let commit = builder.commit(entry.topic, now: loop.now, wallClock: loop.wallClock) else {
        continue
      }
      if (try? store.commit([commit.change])) == nil {
        due[key] = (entry.topic, loop.now)
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
      guard let (change, limit) = builder.trim(topic, wallClock: loop.wallClock) else { continue }
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
      service.noteWaiting(-commit.taken.bytes)
      for completion in commit.taken.completions { completion.body(nil) }
    }
    stuck.removeAll { $0.topic === topic }
  }

  // MARK: Periodic work

  /// Drops records that have become too old, and frees the space of deleted topics.
  func tick() {
    guard !isClosed else { return }
    collectGarbage()
    inspect()
    if stuck.isEmpty {
      for (topic, builder) in builders.values where builder.isOutdated(topic, wallClock: loop.wallClock) {
        due[ObjectIdentifier(topic)] = (topic, loop.now)
      }
      run()
    }
    _ = loop.schedule(after: Self.trimInterval) { [weak service] in service?.withWriter { $0.tick() } }
  }

  /// Reads the store's size, and reports producers that wait.
  private func inspect() {
    let failure = service.health.failure
    if hasGrown || failure != nil {
      hasGrown = false
      if let found = try? store.size() { service.health.size = found }
    }
    guard let due = reminder, due <= loop.now, let failure else { return }
    guard service.waiters.count > 0 || service.backlog > 0 else { return }
    reminder = loop.now + Self.reminderInterval
    service.report(
      .waiting(
        publishers: service.waiters.count, bytes: service.backlog,
        isFull: failure.fault.code == .storageFull,
        milliseconds: (loop.now - failure.since).clampedMilliseconds))
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
    loop.execute { [weak service] in service?.withWriter { $0.collectGarbage() } }
  }

  /// Keeps track of topics that were restored from the store.
  func adopt(_ topics: [any DurableTopic]) {
    for topic in topics { _ = builder(of: topic) }
  }

  // MARK: The end

  /// Commits what waits, if that is possible.
  func flush() {
    takeArrivals()
    if stuck.isEmpty, !isClosed { commitAll() }
  }

  /// Commits what waits, and closes the store, which may not be used any more.
  func close() {
    takeArrivals()
    if stuck.isEmpty { commitAll(isLast: true) } else { attempt(stuck) }
    if stuck.isEmpty, !due.isEmpty { commitAll(isLast: true) }
    isClosed = true
    if let timer { loop.cancel(timer) }
    do throws(StoreError) {
      if let refusal = service.refusal {
        throw StoreError(.failed, "\(refusal.message); what waited is lost")
      }
      try store.close()
      service.report(.closed(message: nil))
    } catch {
      service.report(.closed(message: error.message))
    }
    due = [:]
    builders = [:]
    stuck = []
  }
}
