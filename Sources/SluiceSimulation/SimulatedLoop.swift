import SluiceIO

/// An event loop of a simulated world. It has no thread: the world calls it when it is due.
///
/// Turns have the order of a real loop's. The choices that the contract leaves open come from the seed: which of
/// several ready streams comes first, how long a wake-up takes, whether an event comes this turn or the next.
///
/// Unchecked: a world and all that belongs to it is used by one thread at a time.
public final class SimulatedLoop: EventLoop, @unchecked Sendable {
  public let name: String

  private let scheduler: SimulatedScheduler
  private let settings: SimulatedSettings
  private var timers = TimerHeap()
  private var participants: [any TurnParticipant] = []
  private var jobs: [(landing: MonotonicTime, job: @Sendable () -> Void)] = []
  private var signals: [(landing: MonotonicTime, signal: SimulatedSignal)] = []
  private var ready: [SimulatedStream] = []
  private var isStopped = false
  private var stalledUntil: MonotonicTime?

  /// When the next turn is due, and the number of that appointment: an earlier one makes a later one void.
  private var nextTurn: (time: MonotonicTime, number: UInt64)?
  private var appointments: UInt64 = 0
  /// The time of the next timer, apart from turns.
  private var alarm: MonotonicTime?

  /// Turns so far.
  public private(set) var turns: UInt64 = 0
  public internal(set) var streamCount = 0

  /// A loop with more work runs its next turn after this time, so that the clock advances.
  private static let shortestTurn = Duration.nanoseconds(500)

  init(name: String, scheduler: SimulatedScheduler, settings: SimulatedSettings) {
    self.name = name
    self.scheduler = scheduler
    self.settings = settings
  }

  // MARK: EventLoop

  public var now: MonotonicTime { scheduler.now }

  public func readClock() -> MonotonicTime { scheduler.now }

  /// No time passes in a turn: each counts as the shortest.
  public var busyNanoseconds: UInt64 { turns &* UInt64(Self.shortestTurn.clampedNanoseconds) }

  public var wallClock: Int64 { readWallClock() }

  public func readWallClock() -> Int64 { settings.wallClock(at: scheduler.now) }

  public var epoll: EpollLoop? { nil }

  public var isCurrent: Bool { scheduler.current === self }

  public func execute(_ job: @escaping @Sendable () -> Void) {
    if isStopped { return }
    let delay = scheduler.random.next(in: settings.conditions.wakeDelay)
    let landing = max(scheduler.now + delay, jobs.last?.landing ?? scheduler.now)
    jobs.append((landing, job))
    wake(at: landing)
  }

  public func schedule(at deadline: MonotonicTime, _ job: @escaping () -> Void) -> TimerToken {
    precondition(isCurrent, "timers are scheduled on their loop")
    return timers.schedule(at: deadline, job)
  }

  public func cancel(_ timer: TimerToken) {
    precondition(isCurrent || isStopped, "timers are cancelled on their loop")
    let job = timers.cancel(timer)
    _ = consume job
  }

  public func addTurnParticipant(_ participant: any TurnParticipant) {
    precondition(isCurrent, "turn participants are added on their loop")
    participants.append(participant)
  }

  public func makeSignal(_ handler: @escaping () -> Void) -> any LoopSignal {
    SimulatedSignal(loop: self, handler: handler)
  }

  func deliver(_ signal: SimulatedSignal) {
    if isStopped { return }
    let delay = isCurrent ? .zero : scheduler.random.next(in: settings.conditions.wakeDelay)
    signals.append((scheduler.now + delay, signal))
    wake(at: scheduler.now + delay)
  }

  // MARK: For tests

  /// Runs `body` on the loop, now: a turn in which nothing else comes up.
  ///
  /// Works on a stalled loop too; what follows from it waits.
  public func perform<Result>(_ body: () throws -> Result) rethrows -> Result {
    defer { makeAppointment() }
    return try asCurrent {
      defer {
        if endTurn() { wake(at: scheduler.now + Self.shortestTurn) }
      }
      return try body()
    }
  }

  /// Runs nothing for that long, as if the process were not given the processor. Bytes that arrive meanwhile wait.
  public func stall(for duration: Duration) {
    scheduler.note("\(name): stalls for \(duration)")
    stalledUntil = max(stalledUntil ?? scheduler.now, scheduler.now + duration)
  }

  /// Runs nothing until `resume()`.
  public func stall() {
    scheduler.note("\(name): stalls")
    stalledUntil = MonotonicTime(nanoseconds: .max)
  }

  /// Ends a stall now.
  public func resume() {
    guard stalledUntil != nil else { return }
    scheduler.note("\(name): goes on")
    stalledUntil = nil
    nextTurn = nil
    makeAppointment()
  }

  /// Ends the loop for good. Jobs and timers are dropped; see `SimulatedNetwork.crash(_:)` for its connections.
  public func stop() {
    isStopped = true
    nextTurn = nil
    asCurrent {
      let dropped = (timers.removeAll(), participants, jobs, signals, ready)
      (participants, jobs, signals, ready) = ([], [], [], [])
      withExtendedLifetime(dropped) {}
    }
  }

  /// Returns at once: the loop has no thread.
  public func join() {}

  func asCurrent<Result>(_ body: () throws -> Result) rethrows -> Result {
    let previous = scheduler.current
    scheduler.current = self
    defer { scheduler.current = previous }
    return try body()
  }

  // MARK: Turns

  /// Puts a stream that has something to report on the list for the next turn.
  func enqueue(_ stream: SimulatedStream) {
    if isStopped || stream.isQueued { return }
    stream.isQueued = true
    ready.append(stream)
    wake(at: scheduler.now + scheduler.random.next(in: settings.conditions.wakeDelay))
  }

  private func wake(at time: MonotonicTime) {
    if isStopped { return }
    if let next = nextTurn, next.time <= time { return }
    appointments += 1
    let number = appointments
    nextTurn = (time, number)
    scheduler.schedule(at: time) { [unowned self] in
      guard let next = nextTurn, next.number == number else { return }
      if let end = stalledUntil {
        if end > scheduler.now {
          nextTurn = nil
          if end.nanoseconds < .max { wake(at: end) }
          return
        }
        stalledUntil = nil
      }
      runTurn()
    }
  }

  private func runTurn() {
    nextTurn = nil
    turns += 1
    scheduler.current = self
    scheduler.note("\(name): turn \(turns), \(ready.count) ready")
    handOutEvents()
    let mark = timers.mark
    while let job = timers.popDue(at: scheduler.now, before: mark) { job() }
    runJobs()
    runSignals()
    let more = endTurn()
    scheduler.current = nil
    if more || !ready.isEmpty { wake(at: scheduler.now + Self.shortestTurn) }
    makeAppointment()
  }

  private func handOutEvents() {
    if ready.isEmpty { return }
    var events = ready
    ready = []
    scheduler.random.shuffle(&events)
    for stream in events {
      stream.isQueued = false
      if isStopped { return }
      if !scheduler.random.oneIn(settings.conditions.lateEventOneIn) { stream.handOutEvents() }
      if stream.hasEvents { enqueue(stream) }
    }
  }

  private func runJobs() {
    guard let first = jobs.first, first.landing <= scheduler.now else { return }
    let due = jobs.prefix { $0.landing <= scheduler.now }
    jobs.removeFirst(due.count)
    for (_, job) in due where !isStopped { job() }
  }

  private func runSignals() {
    if signals.isEmpty { return }
    var due = signals.filter { $0.landing <= scheduler.now }
    signals.removeAll { $0.landing <= scheduler.now }
    scheduler.random.shuffle(&due)
    for (_, signal) in due where !isStopped { signal.run() }
  }

  private func endTurn() -> Bool {
    var more = false
    for participant in participants where participant.turnEnded() { more = true }
    return more
  }

  /// Sees to it that there is a turn for whatever waits.
  private func makeAppointment() {
    if !ready.isEmpty { wake(at: scheduler.now + scheduler.random.next(in: settings.conditions.wakeDelay)) }
    if let landing = jobs.first?.landing { wake(at: landing) }
    if !signals.isEmpty, let landing = signals.map(\.landing).min() { wake(at: landing) }
    guard let deadline = timers.nextDeadline.map(MonotonicTime.init(nanoseconds:)) else { return }
    if deadline <= scheduler.now {
      wake(at: scheduler.now + scheduler.random.next(in: .zero...settings.conditions.timerLateness))
    } else if alarm.map({ $0 > deadline }) ?? true {
      setAlarm(for: deadline)
    }
  }

  /// Looks at the timers again at `time`. Apart from the turns, so that a loop with a far-off timer and many turns before
  /// it leaves one event waiting and not as many as turns.
  private func setAlarm(for time: MonotonicTime) {
    alarm = time
    scheduler.schedule(at: time) { [unowned self] in
      guard alarm == time else { return }
      alarm = nil
      if !isStopped { makeAppointment() }
    }
  }
}

/// A signal of a simulated loop. Unchecked: see `SimulatedLoop`.
final class SimulatedSignal: LoopSignal, @unchecked Sendable {
  private let loop: SimulatedLoop
  private let handler: () -> Void
  private var fired = false

  init(loop: SimulatedLoop, handler: @escaping () -> Void) {
    self.loop = loop
    self.handler = handler
  }

  func fire() {
    if fired { return }
    fired = true
    loop.deliver(self)
  }

  func run() {
    fired = false
    handler()
  }
}
