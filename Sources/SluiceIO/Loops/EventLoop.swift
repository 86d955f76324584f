/// One thread's worth of work: streams that became ready, timers that came due, jobs from other threads.
///
/// A loop goes round in *turns*. In each it hands out what became ready, runs the due timers and the jobs that were
/// passed to it, and last calls its turn participants once. The objects of a loop (its streams, their handlers, its
/// timers) are used on that loop only, so they need no locks.
///
/// There are two: one on `epoll`, and a simulated one on which everything, several loops included, runs in a single thread
/// under a clock that a test moves. Code written against this protocol runs on both.
public protocol EventLoop: AnyObject, Sendable {
  /// The time at the start of the current turn. On the loop only.
  var now: MonotonicTime { get }

  /// The wall clock at the start of the current turn, in milliseconds since 1970. On the loop only.
  var wallClock: Int64 { get }

  /// The time at this moment, read from the clock, where the turn's isn't good enough. From any thread.
  func readClock() -> MonotonicTime

  /// The wall clock at this moment, in milliseconds since 1970. From any thread.
  func readWallClock() -> Int64

  /// Nanoseconds that the loop has spent working rather than waiting for something to do, up to the start of the present turn. From
  /// any thread.
  var busyNanoseconds: UInt64 { get }

  /// The number of open streams that belong to this loop. From any thread.
  var streamCount: Int { get }

  /// The loop itself if it watches file descriptors, which sockets need; nil for a simulated loop. From any thread.
  var epoll: EpollLoop? { get }

  /// True when the calling code runs on this loop.
  var isCurrent: Bool { get }

  /// Runs `job` on this loop, in the order in which jobs were passed by one thread. From any thread.
  ///
  /// A loop that has been stopped drops the job without running it.
  func execute(_ job: @escaping @Sendable () -> Void)

  /// Runs `job` once, at `deadline` or as soon after it as the loop comes round. On the loop only.
  func schedule(at deadline: MonotonicTime, _ job: @escaping () -> Void) -> TimerToken

  /// Forgets a timer and releases its job; a timer that has fired or was cancelled before is ignored. On the loop only.
  func cancel(_ timer: TimerToken)

  /// Calls `participant` at the end of every later turn, in the order of registration, until the loop is stopped. On
  /// the loop only.
  func addTurnParticipant(_ participant: any TurnParticipant)

  /// Makes a signal that runs `handler` on this loop. From any thread.
  func makeSignal(_ handler: @escaping () -> Void) -> any LoopSignal

  /// Ends the loop after its present turn. From any thread; returns at once. See `join()`.
  ///
  /// Jobs and timers that haven't run are dropped, and handlers of streams hear nothing more. Loops on `epoll` close their streams, and
  /// still send what was written to them if that takes less than a second.
  func stop()

  /// Waits until the loop has ended, if it has a thread of its own. From any thread but the loop's.
  func join()
}

extension EventLoop {
  /// Runs `job` once, `delay` after the start of the current turn. On the loop only.
  public func schedule(after delay: Duration, _ job: @escaping () -> Void) -> TimerToken {
    schedule(at: now + delay, job)
  }

  /// Forgets the timer, if there is one, and its token. On the loop only.
  package func cancel(_ timer: inout TimerToken?) {
    if let timer = timer.take() { cancel(timer) }
  }
}

/// Names one timer of one loop; never reused.
public struct TimerToken: Hashable, Sendable {
  /// Never 0 for a loop's timers.
  public var number: UInt64

  public init(number: UInt64) {
    self.number = number
  }
}

/// Something that acts once per turn for all that became ready in it, so that a burst becomes one write.
public protocol TurnParticipant: AnyObject {
  /// The turn's events have all been handed out. Returns true when there is more to do, so that the loop must
  /// come round again without sleeping.
  func turnEnded() -> Bool
}

/// Wakes a loop from any thread, without allocating: however often it is fired before the loop gets to it, its handler
/// runs once.
public protocol LoopSignal: AnyObject, Sendable {
  /// Makes the handler run on the loop, in this turn or the next. From any thread, the loop's own included. The handler
  /// sees all writes before `fire()`.
  func fire()
}
