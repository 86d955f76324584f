import CLinux
import Glibc
import Synchronization

/// An event loop on `epoll`, with a thread of its own or on one that it is given.
///
/// A turn is: events of streams, due timers, jobs, signals, turn participants. The loop sleeps between turns only when
/// nothing of that is waiting, and only then do other threads make a system call to wake it.
///
/// Timers are due to the millisecond: they never fire early, and at most about one late on an idle loop.
///
/// A loop lives until it is stopped: its thread keeps it. Unchecked: everything but the constants and atomics is used by
/// the loop's thread only, or before it starts.
@safe
public final class EpollLoop: EventLoop, @unchecked Sendable {
  public let name: String

  private let poll: Int32
  private let wakeUp: Int32
  /// Wakes the loop for its next timer. With a timeout for `epoll_wait`, the system would arm and disarm a separate timer each time that the loop sleeps.
  private let alarm: Int32

  // From any thread.
  private let ownerThread = Atomic<UInt>(0)
  private let isSleeping = Atomic<Bool>(false)
  private let stopRequested = Atomic<Bool>(false)
  private let terminated = Atomic<Bool>(false)
  private let busy = Atomic<UInt64>(0)
  private let load = Atomic<Int>(0)
  private let jobs = JobQueue()
  private let remoteSignals = SignalStack()
  private let thread = LoopThread()

  // On the loop only. Accesses to what each turn uses aren't checked for overlaps: none of it calls anything while it changes.
  @safe @exclusivity(unchecked) public private(set) var now: MonotonicTime
  @safe @exclusivity(unchecked) private var wallClockRead: Int64?
  @safe @exclusivity(unchecked) private var timers = TimerHeap()
  /// The time that `alarm` is set to, in nanoseconds: no later than the next timer, while the loop sleeps; all ones when it
  /// isn't set.
  private var alarmTime = UInt64.max
  @safe @exclusivity(unchecked) private var sources = RegistrationTable()
  @safe @exclusivity(unchecked) private var participants: [any TurnParticipant] = []
  @safe @exclusivity(unchecked) private var localSignals: [EpollSignal] = []
  @safe @exclusivity(unchecked) private var runningSignals: [EpollSignal] = []
  @safe @exclusivity(unchecked) private var runningJobs: [JobQueue.Job] = []
  @safe @exclusivity(unchecked) private var settling: [Registration] = []
  @safe @exclusivity(unchecked) private var moreToDo = false
  /// How long a closed stream waits for the peer's end, and as long again whenever the peer has taken something meanwhile.
  package var peerPatience = Duration.seconds(2)
  private let events = UnsafeMutableBufferPointer<epoll_event>.allocate(capacity: 256)

  /// Data of the wake-up descriptor's events; no registration has this value, since places are counted from 0 up.
  private static let wakeUpData = UInt64.max
  /// The same of the alarm's.
  private static let alarmData = UInt64.max - 1

  /// A batch of jobs or signals keeps its memory for the next turn unless a burst made it larger than this.
  private static let keptCapacity = 4_096

  /// The value of `ownerThread` after the loop has ended. No thread has it: it would be an address.
  private static let noThread: UInt = 1

  /// How long a stopped loop still sends the output of closed streams.
  static let closingTime = Duration.seconds(1)

  /// Makes a loop that doesn't run yet: call `run()` on the thread that shall be the loop's. See also `start(name:)`.
  ///
  /// - Throws: when the system has no more descriptors.
  public init(name: String) throws(IOError) {
    self.name = name
    now = Self.clock()
    poll = epoll_create1(Int32(EPOLL_CLOEXEC))
    guard poll >= 0 else { throw IOError(action: "create an event loop", code: errno) }
    wakeUp = eventfd(0, Int32(EFD_CLOEXEC | EFD_NONBLOCK))
    guard wakeUp >= 0 else {
      let code = errno
      _ = Glibc.close(poll)
      throw IOError(action: "create an event loop's wake-up", code: code)
    }
    alarm = timerfd_create(CLOCK_MONOTONIC, Int32(TFD_CLOEXEC | TFD_NONBLOCK))
    guard alarm >= 0, Self.watch(wakeUp, Self.wakeUpData, by: poll),
      Self.watch(alarm, Self.alarmData, by: poll)
    else {
      let code = errno
      _ = Glibc.close(poll)
      _ = Glibc.close(wakeUp)
      if alarm >= 0 { _ = Glibc.close(alarm) }
      throw IOError(action: "create an event loop's wake-up", code: code)
    }
  }

  /// Edge-triggered: each write, and each alarm, is an event, so that the counter never has to be read.
  private static func watch(_ descriptor: Int32, _ data: UInt64, by poll: Int32) -> Bool {
    var event = unsafe epoll_event(
      events: EpollEvents([.readable, .edgeTriggered]).rawValue, data: epoll_data_t(u64: data))
    return unsafe epoll_ctl(poll, EPOLL_CTL_ADD, descriptor, &event) == 0
  }

  /// Makes a loop and a thread that runs it. End it with `stop()` and `join()`.
  ///
  /// - Throws: when the system has no more descriptors or threads.
  public static func start(name: String) throws(IOError) -> EpollLoop {
    let loop = try EpollLoop(name: name)
    try loop.thread.start(name: name) { loop.run() }
    return loop
  }

  deinit {
    _ = Glibc.close(poll)
    _ = Glibc.close(wakeUp)
    _ = Glibc.close(alarm)
    unsafe events.deallocate()
  }

  // MARK: For any thread

  public var isCurrent: Bool {
    ownerThread.load(ordering: .relaxed) == UInt(pthread_self())
  }

  /// True on the loop, and anywhere once it has ended: its streams' owners release them then.
  var isAccessible: Bool { isCurrent || hasEnded }

  var hasEnded: Bool { terminated.load(ordering: .sequentiallyConsistent) }

  /// The time that the loop has spent working rather than waiting for something to do, since it began to run. From any thread;
  /// as of the start of the present turn.
  public var busyTime: Duration { .nanoseconds(Int64(clamping: busyNanoseconds)) }

  public var busyNanoseconds: UInt64 { busy.load(ordering: .relaxed) }

  public var streamCount: Int { load.load(ordering: .relaxed) }

  public var epoll: EpollLoop? { self }

  public func execute(_ job: @escaping @Sendable () -> Void) {
    if jobs.append(job) { wake() }
  }

  public func makeSignal(_ handler: @escaping () -> Void) -> any LoopSignal {
    EpollSignal(loop: self, handler: handler)
  }

  public func stop() {
    stopRequested.store(true, ordering: .sequentiallyConsistent)
    wake()
  }

  public func join() {
    precondition(!isCurrent, "a loop can't wait for its own end")
    thread.join()
  }

  /// Makes the loop look at what was just added for it. Costs a system call only if it sleeps.
  private func wake() {
    guard isSleeping.load(ordering: .sequentiallyConsistent),
      isSleeping.exchange(false, ordering: .sequentiallyConsistent)
    else { return }
    _ = eventfd_write(wakeUp, 1)
  }

  func deliver(_ signal: EpollSignal) {
    remoteSignals.push(signal)
    if hasEnded {
      dropRemoteSignals()
    } else {
      wake()
    }
  }

  func addLoad(_ count: Int) {
    load.wrappingAdd(count, ordering: .relaxed)
  }

  /// The time of all loops of this kind. From any thread.
  public static var time: MonotonicTime { clock() }

  static func clock() -> MonotonicTime {
    var time = timespec()
    unsafe clock_gettime(CLOCK_MONOTONIC, &time)
    return MonotonicTime(nanoseconds: UInt64(time.tv_sec) &* 1_000_000_000 &+ UInt64(time.tv_nsec))
  }

  // MARK: On the loop

  public func readClock() -> MonotonicTime { Self.clock() }

  public var wallClock: Int64 {
    if let read = wallClockRead { return read }
    let read = readWallClock()
    wallClockRead = read
    return read
  }

  public func readWallClock() -> Int64 {
    var time = timespec()
    unsafe clock_gettime(CLOCK_REALTIME, &time)
    return Int64(time.tv_sec) * 1_000 + Int64(time.tv_nsec) / 1_000_000
  }

  public func schedule(at deadline: MonotonicTime, _ job: @escaping () -> Void) -> TimerToken {
    assert(isAccessible, "timers are scheduled on their loop")
    return timers.schedule(at: deadline, job)
  }

  public func cancel(_ timer: TimerToken) {
    assert(isAccessible, "timers are cancelled on their loop")
    // Bound to a name, so that the job is released when `timers` isn't being changed any more.
    let job = timers.cancel(timer)
    _ = consume job
  }

  public func addTurnParticipant(_ participant: any TurnParticipant) {
    assert(isCurrent, "turn participants are added on their loop")
    participants.append(participant)
  }

  func deliverLocally(_ signal: EpollSignal) {
    localSignals.append(signal)
  }

  /// Watches `source` for `interest`, and keeps it, until `deregister`.
  func register(_ source: EventSource, for interest: EpollEvents) throws(IOError) {
    assert(isCurrent, "sources are registered on their loop")
    let registration = sources.insert(source)
    var event = unsafe epoll_event(events: interest.rawValue, data: epoll_data_t(u64: registration.rawValue))
    guard unsafe epoll_ctl(poll, EPOLL_CTL_ADD, source.descriptor, &event) == 0 else {
      let code = errno
      let removed = sources.remove(registration)
      _ = consume removed
      throw IOError(action: "watch a connection", code: code)
    }
    source.registration = registration
  }

  func changeInterest(of source: EventSource, to interest: EpollEvents) {
    guard let registration = source.registration else { return }
    var event = unsafe epoll_event(events: interest.rawValue, data: epoll_data_t(u64: registration.rawValue))
    let result = unsafe epoll_ctl(poll, EPOLL_CTL_MOD, source.descriptor, &event)
    precondition(result == 0, "a registered descriptor was closed behind the loop's back")
  }

  /// Ends the watch, if any. Before the descriptor is closed.
  func deregister(_ source: EventSource) {
    guard source.registration != nil else { return }
    var event = unsafe epoll_event()
    _ = unsafe epoll_ctl(poll, EPOLL_CTL_DEL, source.descriptor, &event)
    dropRegistration(source)
  }

  /// Forgets a source whose descriptor is closed already, and with it the kernel's watch.
  func dropRegistration(_ source: EventSource) {
    guard let registration = source.registration else { return }
    source.registration = nil
    let removed = sources.remove(registration)
    _ = consume removed
  }

  /// Calls the source's `turnSettled()` at the end of this turn.
  func settle(_ source: EventSource) {
    if let registration = source.registration { settling.append(registration) }
  }

  func source(for registration: Registration) -> EventSource? { sources[registration] }

  // MARK: Turns

  /// Makes the calling thread the loop's and runs turns until the loop is stopped. Once only.
  public func run() {
    let previous = ownerThread.exchange(UInt(pthread_self()), ordering: .acquiringAndReleasing)
    precondition(previous == 0, "a loop runs once")
    now = Self.clock()
    while !stopRequested.load(ordering: .acquiring) {
      let ready = waitForEvents()
      dispatch(ready)
      runTimers()
      runJobs()
      runSignals()
      endTurn()
    }
    finish()
  }

  /// Returns the number of events that wait in `events`. Begins a new turn.
  private func waitForEvents() -> Int {
    let turnStart = now
    var timeout: Int32 = 0
    if !moreToDo && localSignals.isEmpty {
      let time = Self.clock()
      timeout = isTimerDue(at: time) ? 0 : -1
      if timeout != 0 {
        isSleeping.store(true, ordering: .sequentiallyConsistent)
        if jobs.hasJobs || !remoteSignals.isEmpty || stopRequested.load(ordering: .sequentiallyConsistent) {
          timeout = 0
        } else {
          addBusyTime(from: turnStart, to: time)
          setAlarm()
        }
      }
    }
    let count = unsafe epoll_wait(poll, events.baseAddress, Int32(events.count), timeout)
    if timeout != 0 {
      now = Self.clock()
      isSleeping.store(false, ordering: .relaxed)
    } else {
      if isSleeping.load(ordering: .relaxed) { isSleeping.store(false, ordering: .relaxed) }
      now = Self.clock()
      addBusyTime(from: turnStart, to: now)
    }
    wallClockRead = nil
    return Int(max(count, 0))
  }

  private func addBusyTime(from start: MonotonicTime, to end: MonotonicTime) {
    // Only this thread writes it, so it needs no atomic addition.
    let sum = busy.load(ordering: .relaxed) &+ (end.nanoseconds &- start.nanoseconds)
    busy.store(sum, ordering: .relaxed)
  }

  private func isTimerDue(at time: MonotonicTime) -> Bool {
    guard let next = timers.nextDeadline else { return false }
    return next <= time.nanoseconds
  }

  /// Sets the alarm for the next timer, to the millisecond, unless it comes earlier anyway: for a timer that was cancelled since, the loop then takes a turn
  /// for nothing.
  private func setAlarm() {
    guard let next = timers.nextDeadline, next < alarmTime else { return }
    let time = next > .max - 999_999 ? next : (next + 999_999) / 1_000_000 * 1_000_000
    guard time < alarmTime else { return }
    alarmTime = time
    var setting = itimerspec()
    setting.it_value.tv_sec = Int(clamping: time / 1_000_000_000)
    setting.it_value.tv_nsec = Int(time % 1_000_000_000)
    let result = unsafe timerfd_settime(alarm, Int32(TFD_TIMER_ABSTIME), &setting, nil)
    precondition(result == 0, "a loop's alarm was closed behind its back")
  }

  private func dispatch(_ count: Int) {
    for index in 0..<count {
      let event = unsafe events[index]
      switch unsafe event.data.u64 {
      case Self.wakeUpData: break
      case Self.alarmData: alarmTime = .max
      case let registration:
        guard let source = sources[Registration(rawValue: registration)] else { continue }
        unsafe source.ready(EpollEvents(rawValue: event.events))
      }
    }
  }

  private func runTimers() {
    guard let next = timers.nextDeadline, next <= now.nanoseconds else { return }
    let mark = timers.mark
    while let job = timers.popDue(at: now, before: mark) { job() }
  }

  private func runJobs() {
    jobs.take(into: &runningJobs)
    if runningJobs.isEmpty { return }
    for index in runningJobs.indices { runningJobs[index]() }
    // Taken out first: releasing a job may call the loop.
    var done = exchange(&runningJobs, with: [])
    done.removeAll(keepingCapacity: done.capacity <= Self.keptCapacity)
    runningJobs = done
  }

  private func runSignals() {
    swap(&localSignals, &runningSignals)
    remoteSignals.take(into: &runningSignals)
    if runningSignals.isEmpty { return }
    for index in runningSignals.indices { runningSignals[index].run() }
    var done = exchange(&runningSignals, with: [])
    done.removeAll(keepingCapacity: done.capacity <= Self.keptCapacity)
    runningSignals = done
  }

  private func endTurn() {
    moreToDo = false
    for index in participants.indices where participants[index].turnEnded() { moreToDo = true }
    if settling.isEmpty { return }
    for registration in settling { sources[registration]?.turnSettled() }
    settling.removeAll(keepingCapacity: true)
  }

  // MARK: The end

  private func finish() {
    releaseWork()
    for source in sources.all { source.loopStopped() }
    let deadline = Self.clock() + Self.closingTime
    while sources.count > 0 {
      let time = Self.clock()
      guard time < deadline else { break }
      let milliseconds = ((deadline - time).clampedNanoseconds - 1) / 1_000_000 + 1
      let count = unsafe epoll_wait(
        poll, events.baseAddress, Int32(events.count), Int32(clamping: milliseconds))
      dispatch(Int(max(count, 0)))
    }
    for source in sources.all { source.closeDescriptor() }
    releaseWork()
    terminated.store(true, ordering: .sequentiallyConsistent)
    // The system may give the thread's identity to another one.
    ownerThread.store(Self.noThread, ordering: .relaxed)
    dropRemoteSignals()
  }

  /// Lets go of everything that was waiting to be called. Released objects may add more jobs; those never run.
  private func releaseWork() {
    _ = jobs.close()
    let droppedTimers = timers.removeAll()
    let droppedParticipants = exchange(&participants, with: [])
    let droppedSignals = exchange(&localSignals, with: [])
    _ = (droppedTimers, droppedParticipants, droppedSignals)
  }

  private func dropRemoteSignals() {
    var dropped: [EpollSignal] = []
    remoteSignals.take(into: &dropped)
  }
}
