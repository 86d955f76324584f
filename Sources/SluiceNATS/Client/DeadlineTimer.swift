import SluiceIO

/// The only timer of an owner with many deadlines. It is set for the earliest one.
///
/// Deadlines are postponed far more often than they expire, so the timer isn't moved to a later deadline. The owner checks its deadlines again when the
/// timer fires too early. On the loop only.
struct DeadlineTimer {
  private var pending: (token: TimerToken, time: MonotonicTime)?

  /// Sets the timer.
  ///
  /// - Parameters:
  ///   - deadline: the earliest deadline; nil for none.
  ///   - body: called on the loop at the deadline, or before it. It calls ``fired()`` first.
  mutating func set(
    _ deadline: MonotonicTime?, on loop: any EventLoop, _ body: @autoclosure () -> () -> Void
  ) {
    if let pending, let deadline, pending.time <= deadline { return }
    cancel(on: loop)
    pending = deadline.map { (loop.schedule(at: $0, body()), $0) }
  }

  /// Notes that the timer has fired.
  mutating func fired() { pending = nil }

  mutating func cancel(on loop: any EventLoop) {
    if let pending { loop.cancel(pending.token) }
    pending = nil
  }
}
