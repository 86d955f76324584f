import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire

/// Commits the changes of durable topics, and keeps the store within its topics' limits. ``StoreRecovery`` retries failed commits.
///
/// While commits are in progress, changes gather for the next one, so that one sync serves all topics that changed meanwhile. A store that blocks has at most
/// one commit in progress, which is settled when the call returns; a remote store has several, which settle in order.
// @unchecked: belongs to `loop`, whose thread is blocked while a store that blocks writes something.
final class StoreWriter: @unchecked Sendable {
  private static let trimInterval = Duration.seconds(1)

  /// The purpose of a commit in progress.
  private enum Work {
    case commits([TopicCommit])
    case step(StoreRecovery.Step)
  }

  private let store: any ShardStore
  let loop: any EventLoop
  /// Owns the writer, and calls it: see ``StoreService/withWriter(_:)``.
  unowned let service: StoreService
  /// Called when the store begins or ceases to accept records.
  private let notify: @Sendable () -> Void

  private(set) var due = DueTopics()
  private(set) var builders: TopicCommitBuilders
  private var timer: TimerToken?
  private var underWay = CommitsUnderWay<Work>()
  private let pace: CommitPace
  var stuck = StuckCommits()
  /// The recovery in progress after a failure. No other commits are made meanwhile.
  private var recovery: StoreRecovery?
  private var retry = StoreRetry()
  private var retryTimer: TimerToken?
  private var space = StoreSpace()
  private var reports: StoreReports
  private var closing = StoreClosing()
  private var closingTimer: TimerToken?
  /// Another owner has the shard: no more changes are stored.
  private var isFenced = false

  init(_ service: StoreService, on loop: any EventLoop, notify: @escaping @Sendable () -> Void) {
    self.service = service
    store = service.store
    builders = TopicCommitBuilders(store)
    pace = CommitPace(commitBytes: store.commitBytes)
    reports = StoreReports(service.health)
    self.loop = loop
    self.notify = notify
  }

  /// The most changes of one commit.
  var mostChanges: Int { store.mostChanges }

  /// Whether the store accepts another commit.
  private var isFree: Bool {
    stuck.isEmpty && recovery == nil && !isFenced && underWay.count < store.depth
  }

  /// Whether the next commit may begin.
  private var isReady: Bool {
    isFree
      && pace.mayBegin(
        besides: underWay.count, of: underWay.bytes, with: service.backlog - underWay.bytes)
  }

  func run() {
    guard !closing.isClosed else { return }
    takeArrivals()
    let now = loop.now
    // A commit takes the changes of all topics, due or not, because the cost of the sync is the same.
    while isReady, due.first.map({ $0 <= now }) ?? false { commitAll() }
    setTimer()
  }

  func takeArrivals() {
    for (topic, delay) in service.takeArrivals() {
      due.add(topic, at: loop.now + delay)
    }
  }

  private func setTimer() {
    if let timer { loop.cancel(timer) }
    timer = nil
    guard isReady, let next = due.first else { return }
    timer = loop.schedule(at: next) { [weak service] in
      service?.withWriter {
        $0.timer = nil
        $0.run()
      }
    }
  }

  // MARK: Commits

  /// - Parameter isLast: whether to take changes whose delay hasn't passed.
  private func commitAll(isLast: Bool = false) {
    let delay = isLast ? StoreService.idleDelay : .zero
    let (now, wallClock) = (loop.now + delay, loop.wallClock + Int64(delay / .milliseconds(1)))
    let topics = due.take(store.mostChanges)
    let commits = topics.compactMap { builder(of: $0).commit($0, now: now, wallClock: wallClock) }
    guard !commits.isEmpty else { return }
    for commit in commits where commit.taken.hasMore { makeDue(commit.topic) }
    attempt(commits.sorted { $0.change.topic < $1.change.topic })
  }

  func builder(of topic: any DurableTopic) -> TopicCommitBuilder {
    builders.builder(of: topic)
  }

  private func attempt(_ commits: [TopicCommit]) {
    let start = loop.readClock()
    switch begin(commits.map(\.change)) {
    case .settled(let error): settled(commits, error, since: start)
    case .underWay:
      underWay.add(.commits(commits), bytes: commits.reduce(0) { $0 + $1.taken.bytes }, since: start)
    }
  }

  private func begin(_ changes: [TopicChange]) -> CommitOutcome {
    space.commitBegins()
    return store.commit(changes, as: underWay.next())
  }

  private func settled(_ commits: [TopicCommit], _ error: StoreError?, since start: MonotonicTime) {
    switch error?.kind {
    case nil:
      count(commits, since: start)
      retry.reset()
      // A store that doesn't block signals by itself when it accepts records again.
      if store.isBlocking { recovered() }
      for commit in commits { done(commit) }
    case .invalid:
      // The store rejects one of the changes for its contents: each topic's change is tried alone, and the rejected ones are dropped.
      recover(StoreRecovery(each: commits, of: self))
    case .fenced:
      stuck.add(commits)
      if let error { fenced(error) }
    default:
      stuck.add(commits)
      guard let error, underWay.isEmpty else { return }
      // Commits that were rejected meanwhile follow these.
      if let rest = recovery.take()?.untried { stuck.add(rest) }
      failed(error)
    }
  }

  /// Counts a stored commit.
  func count(_ commits: [TopicCommit], since start: MonotonicTime) {
    let end = loop.readClock()
    service.commitTook(end > start ? end.nanoseconds - start.nanoseconds : 0)
    service.metrics.add(.commits)
    service.metrics.add(.bytesStored, commits.reduce(0) { $0 + $1.taken.bytes })
  }

  /// - Parameter rejected: states that aren't stored because of their contents.
  func done(_ commit: TopicCommit, rejected: [TopicChange.State] = []) {
    service.noteWaiting(-commit.taken.bytes)
    if commit.change.isDeletion {
      builders.remove(commit.topic)
      space.topicDeleted()
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
      message: "the store refuses a change of topic \(topic.name); see the broker's log for the cause")
  }

  // MARK: Events of the store

  func received(_ event: ShardStoreEvent) {
    switch event {
    case .settled(let number, let error): settled(number, error)
    case .delayed(let error): report(failure: error)
    case .resumed: if stuck.isEmpty { recovered() }
    case .fenced(let error):
      fenced(error)
      if closing.isClosing { goOnClosing() }
    }
  }

  private func settled(_ number: UInt64, _ error: StoreError?) {
    // After a fence, no commits are in progress.
    guard let entry = underWay.settle(number) else { return }
    switch entry.work {
    case .commits(let commits): settled(commits, error, since: entry.start)
    case .step(let step): conclude(step, error, since: entry.start)
    }
    tellFlushed()
    if closing.isClosing { return goOnClosing() }
    if recovery != nil { advance() } else { run() }
  }

  // MARK: Failures

  func failed(_ error: StoreError) {
    report(failure: error)
    service.metrics.add(.failedCommits)
    armRetry()
  }

  /// At most one retry timer is armed.
  private func armRetry() {
    guard retryTimer == nil else { return }
    retryTimer = loop.schedule(after: retry.next()) { [weak service] in
      service?.withWriter { $0.tryAgain() }
    }
  }

  private func report(failure error: StoreError) {
    guard let event = reports.failed(error, at: loop.now) else { return }
    service.report(event)
    notify()
  }

  func recovered() {
    retry.reset()
    guard let event = reports.recovered() else { return }
    service.waiters.removeAll()
    service.report(event)
    notify()
  }

  /// Retries failed commits.
  private func tryAgain() {
    retryTimer = nil
    guard !closing.isClosed, !stuck.isEmpty, recovery == nil, !isFenced else { return }
    takeArrivals()
    recover(StoreRecovery(stuckOf: self))
  }

  private func recover(_ recovery: StoreRecovery) {
    self.recovery = recovery
    advance()
  }

  /// Takes the next steps of the recovery: one at a time, without other commits in progress.
  private func advance() {
    while underWay.isEmpty, let recovery {
      guard let step = recovery.next() else {
        self.recovery = nil
        // The timer may have fired while the steps were in progress.
        if !stuck.isEmpty { armRetry() }
        if closing.isClosing { goOnClosing() } else { run() }
        return
      }
      let start = loop.readClock()
      switch begin(step.changes) {
      case .settled(let error): conclude(step, error, since: start)
      case .underWay: underWay.add(.step(step), since: start)
      }
    }
  }

  private func conclude(_ step: StoreRecovery.Step, _ error: StoreError?, since start: MonotonicTime) {
    if let error, error.kind == .fenced { return fenced(error) }
    recovery?.conclude(step, error, since: start)
  }

  /// Handles that another owner has the shard: no more records of these topics are stored, granted or acknowledged.
  private func fenced(_ error: StoreError) {
    guard !isFenced else { return }
    isFenced = true
    report(failure: error)
    service.report(.fenced(message: error.message))
    let fault = StoreHealth.fault(error)
    for entry in underWay.entries {
      if case .commits(let commits) = entry.work { stuck.add(commits) }
    }
    let taken = Dictionary(stuck.all.map { (ObjectIdentifier($0.topic), $0.taken) }) { first, _ in first }
    for (topic, _) in builders.all {
      set(aside: topic, taken[ObjectIdentifier(topic)] ?? UncommittedTail.Taken(), fault)
    }
    underWay.removeAll()
    stuck.removeAll()
    due.removeAll()
    recovery = nil
    tellFlushed()
  }

  /// Drops a topic's waiting changes; clients get the reason.
  func set(aside topic: any DurableTopic, _ taken: UncommittedTail.Taken, _ fault: Fault) {
    let (bytes, completions) = topic.quarantine(taken, fault)
    service.noteWaiting(-bytes)
    for completion in completions { completion.body(fault) }
  }

  /// Removes a topic from those that are due.
  func removeDue(_ topic: any DurableTopic) { due.remove(topic) }

  /// Makes a topic due at once.
  func makeDue(_ topic: any DurableTopic) { due.add(topic, at: loop.now) }

  /// Drops the failed commits of a deleted topic.
  func discardStuck(of topic: any DurableTopic) {
    for commit in stuck.take(of: topic) {
      service.noteWaiting(-commit.taken.bytes)
      for completion in commit.taken.completions { completion.body(nil) }
    }
  }

  // MARK: Periodic work

  /// Drops expired records, and frees the space of deleted topics.
  func tick() {
    guard !closing.isClosed else { return }
    checkPlace()
    collectGarbage()
    inspect()
    if isReady {
      for topic in builders.outdated(wallClock: loop.wallClock) { makeDue(topic) }
      run()
    }
    _ = loop.schedule(after: Self.trimInterval) { [weak service] in service?.withWriter { $0.tick() } }
  }

  /// Detects that the store's files were removed, or are back, also while there are no commits.
  private func checkPlace() {
    do throws(StoreError) {
      try store.checkPlace()
      // Waiting commits are retried by a timer anyway.
      if service.health.failure?.isRemoved == true, stuck.isEmpty, recovery == nil { recovered() }
    } catch {
      if error.kind == .removed { report(failure: error) }
    }
  }

  /// Reads the store's size, and reports producers that wait.
  private func inspect() {
    let size = space.size(isFailing: service.health.failure != nil) { () throws(StoreError) in
      try store.size()
    }
    if let size { service.health.size = size }
    service.waiters.forgetSilent(at: loop.now)
    let waiting = reports.waiting(publishers: service.waiters.count, bytes: service.backlog, at: loop.now)
    if let waiting { service.report(waiting) }
  }

  /// Frees space a piece at a time, so that commits don't wait for it.
  private func collectGarbage() {
    guard space.hasGarbage, !closing.isClosed, stuck.isEmpty, recovery == nil, !isFenced else { return }
    guard space.free({ () throws(StoreError) in try store.reclaim() }) else { return }
    loop.execute { [weak service] in service?.withWriter { $0.collectGarbage() } }
  }

  /// Frees all the space that can be freed. Blocks as long as the store does.
  func reclaimAll() {
    while let more = try? store.reclaim(), more {}
  }

  /// Keeps track of topics that were restored from the store.
  func adopt(_ topics: [any DurableTopic]) {
    for topic in topics { _ = builder(of: topic) }
  }

  // MARK: The end

  /// Commits all waiting changes if possible, and calls `body` when the commits are settled.
  func flush(_ body: @escaping @Sendable () -> Void) {
    takeArrivals()
    while isFree, !closing.isClosed, !due.isEmpty { commitAll() }
    underWay.whenSettled(body)
    tellFlushed()
  }

  private func tellFlushed() {
    for body in underWay.takeFlushed() { body() }
  }

  /// Commits all waiting changes, closes the store, which must not be used afterwards, and calls `body`.
  func close(_ body: @escaping @Sendable () -> Void) {
    guard closing.begin(body) else { return body() }
    takeArrivals()
    if let timer { loop.cancel(timer) }
    loop.cancel(&retryTimer)
    if !isFenced, recovery == nil, !stuck.isEmpty {
      attempt(stuck.takeAll())
    }
    goOnClosing()
  }

  private func goOnClosing() {
    while isFree, !due.isEmpty { commitAll(isLast: true) }
    switch closing.next(isSettled: underWay.isEmpty && recovery == nil) {
    case .await: break
    // The store may never report the results of the last commits.
    case .awaitAtMost:
      closingTimer = loop.schedule(after: StoreClosing.patience) { [weak service] in
        service?.withWriter { $0.finishClosing() }
      }
    case .finish: finishClosing()
    }
  }

  private func finishClosing() {
    let closed = closing.finish(refusal: service.refusal, isSettled: underWay.isEmpty)
    guard let (end, body) = closed else { return }
    loop.cancel(&closingTimer)
    loop.cancel(&retryTimer)
    due.removeAll()
    builders.removeAll()
    stuck.removeAll()
    underWay.removeAll()
    underWay.removeFlushes()
    recovery = nil
    let report = service.report
    switch end {
    case .leave(let message):
      report(.closed(message: message))
      body()
    case .close:
      store.close { error in
        report(.closed(message: error?.message))
        body()
      }
    }
  }
}
