import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire

/// Commits what durable topics have to be stored, and keeps the store within its topics' limits. What has failed is tried again by the ``StoreRecovery``.
///
/// While commits are under way the next one gathers, so that one sync serves all topics that changed meanwhile. A store that blocks has one under
/// way, which is settled when the call returns; one far away has several, which settle in order.
// @unchecked: belongs to `loop`, whose thread is blocked while a store that blocks writes something.
final class StoreWriter: @unchecked Sendable {
  private static let trimInterval = Duration.seconds(1)
  /// How often waiting producers are reported.
  private static let reminderInterval = Duration.seconds(60)
  /// How long commits under way are waited for at the end.
  private static let longestClose = Duration.seconds(10)

  /// What a commit under way is for.
  private enum Work {
    case commits([TopicCommit])
    case step(StoreRecovery.Step)
  }

  private let store: any ShardStore
  let loop: any EventLoop
  /// Has the writer, and calls it: see ``StoreService/withWriter(_:)``.
  unowned let service: StoreService
  /// Called when the store begins or ceases to take records.
  private let notify: @Sendable () -> Void

  private(set) var due = DueTopics()
  private(set) var builders: [ObjectIdentifier: (topic: any DurableTopic, builder: TopicCommitBuilder)] = [:]
  private var timer: TimerToken?
  private var underWay = CommitsUnderWay<Work>()
  private let pace: CommitPace
  var stuck = StuckCommits()
  /// What is tried at the moment after a failure. Nothing else is committed meanwhile.
  private var recovery: StoreRecovery?
  private var retry = StoreRetry()
  private var retryTimer: TimerToken?
  private var hasGarbage = true
  private var isClosed = false
  /// Why nothing is stored any more: another owner has the shard.
  private var fence: StoreError?
  private var closing: (body: @Sendable () -> Void, timer: TimerToken?)?
  /// When waiting producers are reported next; nil while the store works.
  private var reminder: MonotonicTime?
  /// Whether there was a commit, or an attempt at one, since the size was read.
  private var hasGrown = true

  init(_ service: StoreService, on loop: any EventLoop, notify: @escaping @Sendable () -> Void) {
    self.service = service
    store = service.store
    pace = CommitPace(commitBytes: store.commitBytes)
    self.loop = loop
    self.notify = notify
  }

  /// The most changes of one commit.
  var mostChanges: Int { store.mostChanges }

  /// Whether the store takes another commit.
  private var isFree: Bool {
    stuck.isEmpty && recovery == nil && fence == nil && underWay.count < store.depth
  }

  /// Whether the next commit may be begun.
  private var isReady: Bool {
    isFree
      && pace.mayBegin(
        besides: underWay.count, of: underWay.bytes, with: service.backlog - underWay.bytes)
  }

  func run() {
    guard !isClosed else { return }
    takeArrivals()
    let now = loop.now
    // A commit takes everything along, due or not: the sync is paid for.
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

  /// - Parameter isLast: takes changes along whose delay isn't over.
  private func commitAll(isLast: Bool = false) {
    let now = isLast ? loop.now + StoreService.idleDelay : loop.now
    let topics = due.take(store.mostChanges)
    let commits = topics.compactMap { builder(of: $0).commit($0, now: now, wallClock: loop.wallClock) }
    guard !commits.isEmpty else { return }
    for commit in commits where commit.taken.hasMore { makeDue(commit.topic) }
    attempt(commits.sorted { $0.change.topic < $1.change.topic })
  }

  func builder(of topic: any DurableTopic) -> TopicCommitBuilder {
    if let known = builders[ObjectIdentifier(topic)] { return known.builder }
    let builder = TopicCommitBuilder(topic, store)
    builders[ObjectIdentifier(topic)] = (topic, builder)
    return builder
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
    hasGrown = true
    return store.commit(changes, as: underWay.next())
  }

  private func settled(_ commits: [TopicCommit], _ error: StoreError?, since start: MonotonicTime) {
    switch error?.kind {
    case nil:
      count(commits, since: start)
      retry.reset()
      // A store that doesn't block reports itself when it takes records again.
      if store.isBlocking { recovered() }
      for commit in commits { done(commit) }
    case .invalid:
      // The store refuses one of the changes for its contents: each topic's change is tried alone, and those that are refused are set aside.
      recover(StoreRecovery(each: commits, of: self))
    case .fenced:
      stuck.add(commits)
      if let error { fenced(error) }
    default:
      stuck.add(commits)
      guard let error, underWay.isEmpty else { return }
      // Those that were refused meanwhile come behind these.
      if let rest = recovery.take()?.untried { stuck.add(rest) }
      failed(error)
    }
  }

  /// Counts a commit that is stored.
  func count(_ commits: [TopicCommit], since start: MonotonicTime) {
    let end = loop.readClock()
    service.commitTook(end > start ? end.nanoseconds - start.nanoseconds : 0)
    service.metrics.add(.commits)
    service.metrics.add(.bytesStored, commits.reduce(0) { $0 + $1.taken.bytes })
  }

  /// - Parameter rejected: states that aren't stored, for what they are.
  func done(_ commit: TopicCommit, rejected: [TopicChange.State] = []) {
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

  // MARK: What the store reports

  func received(_ event: ShardStoreEvent) {
    switch event {
    case .settled(let number, let error): settled(number, error)
    case .delayed(let error): report(failure: error)
    case .resumed: if stuck.isEmpty { recovered() }
    case .fenced(let error):
      fenced(error)
      if closing != nil { goOnClosing() }
    }
  }

  private func settled(_ number: UInt64, _ error: StoreError?) {
    // After a fence nothing is under way any more.
    guard let entry = underWay.settle(number) else { return }
    switch entry.work {
    case .commits(let commits): settled(commits, error, since: entry.start)
    case .step(let step): conclude(step, error, since: entry.start)
    }
    tellFlushed()
    if closing != nil { return goOnClosing() }
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
    guard service.health.failed(error, now: loop.now) else { return }
    reminder = reminder ?? loop.now
    service.report(.failed(message: error.message, isFull: error.kind == .full))
    notify()
  }

  func recovered() {
    retry.reset()
    guard service.health.recovered() else { return }
    service.waiters.removeAll()
    reminder = nil
    service.report(.recovered)
    notify()
  }

  /// Tries failed commits again.
  private func tryAgain() {
    retryTimer = nil
    guard !isClosed, !stuck.isEmpty, recovery == nil, fence == nil else { return }
    takeArrivals()
    recover(StoreRecovery(stuckOf: self))
  }

  private func recover(_ recovery: StoreRecovery) {
    self.recovery = recovery
    advance()
  }

  /// Takes the next steps of the recovery: one at a time, with nothing else under way.
  private func advance() {
    while underWay.isEmpty, let recovery {
      guard let step = recovery.next() else {
        self.recovery = nil
        // The timer may have fired while the steps were under way.
        if !stuck.isEmpty { armRetry() }
        if closing == nil { run() } else { goOnClosing() }
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

  /// Another owner has the shard: nothing more is stored of these topics, granted, or acknowledged.
  private func fenced(_ error: StoreError) {
    guard fence == nil else { return }
    fence = error
    report(failure: error)
    service.report(.fenced(message: error.message))
    let fault = StoreHealth.fault(error)
    for entry in underWay.entries {
      if case .commits(let commits) = entry.work { stuck.add(commits) }
    }
    let taken = Dictionary(stuck.all.map { (ObjectIdentifier($0.topic), $0.taken) }) { first, _ in first }
    for (key, (topic, _)) in builders { set(aside: topic, taken[key] ?? UncommittedTail.Taken(), fault) }
    underWay.removeAll()
    stuck.removeAll()
    due.removeAll()
    recovery = nil
    tellFlushed()
  }

  /// Drops what a topic has to be stored; clients get the reason.
  func set(aside topic: any DurableTopic, _ taken: UncommittedTail.Taken, _ fault: Fault) {
    let (bytes, completions) = topic.quarantine(taken, fault)
    service.noteWaiting(-bytes)
    for completion in completions { completion.body(fault) }
  }

  /// Takes a topic out of those that are due.
  func removeDue(_ topic: any DurableTopic) { due.remove(topic) }

  /// The topic is due at once.
  func makeDue(_ topic: any DurableTopic) { due.add(topic, at: loop.now) }

  /// Drops the failed commits of a deleted topic.
  func discardStuck(of topic: any DurableTopic) {
    for commit in stuck.take(of: topic) {
      service.noteWaiting(-commit.taken.bytes)
      for completion in commit.taken.completions { completion.body(nil) }
    }
  }

  // MARK: Periodic work

  /// Drops records that have become too old, and frees the space of deleted topics.
  func tick() {
    guard !isClosed else { return }
    collectGarbage()
    inspect()
    if isReady {
      for (topic, builder) in builders.values where builder.isOutdated(topic, wallClock: loop.wallClock) {
        makeDue(topic)
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
    guard hasGarbage, !isClosed, stuck.isEmpty, recovery == nil, fence == nil else { return }
    do throws(StoreError) {
      hasGarbage = try store.reclaim()
    } catch {
      hasGarbage = false
    }
    guard hasGarbage else { return }
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

  /// Commits what waits, if that is possible, and calls `body` when all that was begun is settled.
  func flush(_ body: @escaping @Sendable () -> Void) {
    takeArrivals()
    while isFree, !isClosed, !due.isEmpty { commitAll() }
    underWay.whenSettled(body)
    tellFlushed()
  }

  private func tellFlushed() {
    for body in underWay.takeFlushed() { body() }
  }

  /// Commits what waits, closes the store, which may not be used any more, and calls `body`.
  func close(_ body: @escaping @Sendable () -> Void) {
    guard closing == nil, !isClosed else { return body() }
    closing = (body, nil)
    takeArrivals()
    if let timer { loop.cancel(timer) }
    loop.cancel(&retryTimer)
    if fence == nil, recovery == nil, !stuck.isEmpty {
      attempt(stuck.takeAll())
    }
    goOnClosing()
  }

  private func goOnClosing() {
    while isFree, !due.isEmpty { commitAll(isLast: true) }
    guard underWay.isEmpty, recovery == nil else { return awaitLast() }
    finishClosing()
  }

  /// The store may never say what became of the last commits.
  private func awaitLast() {
    guard closing?.timer == nil, !isClosed else { return }
    closing?.timer = loop.schedule(after: Self.longestClose) { [weak service] in
      service?.withWriter { $0.finishClosing() }
    }
  }

  private func finishClosing() {
    guard let (body, timer) = closing, !isClosed else { return }
    isClosed = true
    // The caller's body has the service, which has this writer.
    closing = nil
    if let timer { loop.cancel(timer) }
    loop.cancel(&retryTimer)
    let isUnknown = !underWay.isEmpty
    due.removeAll()
    builders = [:]
    stuck.removeAll()
    underWay.removeAll()
    underWay.removeFlushes()
    recovery = nil
    let (service, report) = (service, service.report)
    if let refusal = service.refusal {
      report(.closed(message: "\(refusal.message); what waited is lost"))
      return body()
    }
    if isUnknown {
      report(.closed(message: "the store doesn't say whether the last commits were stored"))
      return body()
    }
    store.close { error in
      report(.closed(message: error?.message))
      body()
    }
  }
}
