import SluiceIO

/// The one timer of an owner with many deadlines, of which only the earliest one counts.
///
/// Deadlines move away far more often than they come: a timer that is set stays while the deadline is later, and the owner looks again when it comes
/// too early. On the loop only.
struct DeadlineTimer {
  private var pending: (token: TimerToken, time: MonotonicTime)?

  /// Sets the timer.
  ///
  /// - Parameters:
  ///   - deadline: the earliest one; nil for none.
  ///   - body: called on the loop at the deadline, or before it. It calls ``fired()`` first.
  mutating func set(
    _ deadline: MonotonicTime?, on loop: any EventLoop, _ body: @autoclosure () -> () -> Void
  ) {
    if let pending, let deadline, pending.time <= deadline { return }
    cancel(on: loop)
    pending = deadline.map { (loop.schedule(at: $0, body()), $0) }
  }

  /// The timer has come.
  mutating func fired() { pending = nil }

  mutating func cancel(on loop: any EventLoop) {
    if let pending { loop.cancel(pending.token) }
    pending = nil
  }
}
