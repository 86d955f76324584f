import Foundation
import ReactiveCore

/// A function that is handed over to a scheduler to be run once, without delay.
struct HandedOverAction: @unchecked Sendable {
  // Sendable because the caller that hands it over doesn't use it again.

  let run: () -> Void
}

/// A function that a timer will run, until it is cancelled.
///
/// Timers may keep their handlers for some time after they have been cancelled. They hold this, which is
/// emptied at once.
final class ScheduledAction: Cancellable, @unchecked Sendable {
  // Sendable because the lock guards the function, which is run by one thread at a time: that of the scheduler.

  private let lock = Lock()
  private var action: (() -> Void)?

  init(_ action: @escaping () -> Void) { self.action = action }

  /// Runs the function, unless it has been cancelled.
  func run() {
    lock.withLock { action }?()
  }

  /// Runs the function, unless it has been cancelled, and releases it.
  func runLast() { take()?() }

  func cancel() { _ = take() }

  private func take() -> (() -> Void)? {
    lock.withLock { action.take() }
  }
}

extension Date {
  /// Whether it will never come, as far as timers are concerned.
  var isNever: Bool { !(self < .distantFuture) }
}
