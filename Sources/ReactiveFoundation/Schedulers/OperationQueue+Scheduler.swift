import Dispatch
public import Foundation
public import ReactiveCore
import Synchronization

extension OperationQueue {
  /// A moment by the wall clock.
  public struct SchedulerTimeType: _WallClockTime {
    /// The date.
    public var date: Date

    /// A moment.
    public init(_ date: Date) { self.date = date }

    /// A length of time in seconds; values out of range are infinite.
    public struct Stride: _SecondsStride {
      /// The length in seconds, with its sign.
      public var magnitude: TimeInterval

      /// A number of seconds.
      public init(_ timeInterval: TimeInterval) { magnitude = timeInterval }
    }
  }
}

/// Runs functions as operations of the queue: in order and one at a time if it runs no more than one at once.
extension OperationQueue: Scheduler {
  /// There are no options.
  public struct SchedulerOptions: Sendable {}

  /// The present moment.
  public var now: SchedulerTimeType { SchedulerTimeType(Date()) }

  /// No time: a timer may be asked to be as accurate as the system allows.
  public var minimumTolerance: SchedulerTimeType.Stride { 0 }

  /// Runs a function as soon as the queue gets to it, and never before this returns unless on another thread.
  public func schedule(options: SchedulerOptions?, _ action: @escaping () -> Void) {
    let action = HandedOverAction(run: action)
    addOperation { action.run() }
  }

  /// Runs a function at some moment, or up to the tolerance later; never before, and at once if the moment has passed.
  ///
  /// Until then it is an operation of the queue that isn't ready. A function for the distant future is released, for it
  /// will not run.
  public func schedule(
    after date: SchedulerTimeType, tolerance: SchedulerTimeType.Stride, options: SchedulerOptions?,
    _ action: @escaping () -> Void
  ) {
    if date.date.isNever { return }
    let action = ScheduledAction(action)
    let operation = DelayedOperation(date: date.date, tolerance: tolerance.timeInterval) { action.runLast() }
    operation.start(on: self)
  }

  /// Runs a function at some moment and then at regular intervals, each time up to the tolerance later.
  ///
  /// Runs never overlap. Intervals that pass while one is under way are skipped.
  ///
  /// - Returns: An object that stops it, at once and from any thread; also when it is released.
  public func schedule(
    after date: SchedulerTimeType, interval: SchedulerTimeType.Stride, tolerance: SchedulerTimeType.Stride,
    options: SchedulerOptions?, _ action: @escaping () -> Void
  ) -> any Cancellable {
    if date.date.isNever { return AnyCancellable {} }
    let repetition = OperationRepetition(
      queue: self, interval: interval.timeInterval, tolerance: tolerance.timeInterval, action: action)
    repetition.schedule(after: date.date)
    return AnyCancellable { repetition.cancel() }
  }
}

/// An operation that becomes ready at some moment: it depends on another, which a timer runs.
private struct DelayedOperation: Cancellable, @unchecked Sendable {
  // Sendable because all it holds is safe to use from any thread; Dispatch does not say so of timers.

  private let date: Date
  private let tolerance: TimeInterval
  private let operation: BlockOperation
  private let timer = DispatchSource.makeTimerSource(queue: .global())

  init(date: Date, tolerance: TimeInterval, _ action: @escaping @Sendable () -> Void) {
    self.date = date
    self.tolerance = tolerance
    operation = BlockOperation(block: action)
  }

  func start(on queue: OperationQueue) {
    let gate = Operation()
    operation.addDependency(gate)
    // The timer lives as long as its handler, which cancelling removes.
    timer.setEventHandler {
      // The timer's clock isn't the wall clock.
      if date.timeIntervalSinceNow > 0 {
        setTimer()
      } else {
        timer.cancel()
        gate.start()
      }
    }
    setTimer()
    queue.addOperation(operation)
    timer.activate()
  }

  private func setTimer() {
    let delay = DispatchQueue.SchedulerTimeType.Stride.seconds(date.timeIntervalSinceNow)
    let leeway = DispatchQueue.SchedulerTimeType.Stride.seconds(max(tolerance, 0))
    timer.schedule(
      deadline: DispatchQueue.global().now.advanced(by: delay).dispatchTime, leeway: leeway.timeInterval)
  }

  func cancel() {
    timer.cancel()
    operation.cancel()
  }
}

/// Adds an operation to the queue repeatedly, each when the previous one has finished.
private final class OperationRepetition: Cancellable, Sendable {
  private struct State {
    var next: DelayedOperation?
    var isCancelled = false
  }

  private let queue: OperationQueue
  private let interval: TimeInterval
  private let tolerance: TimeInterval
  private let action: ScheduledAction

  private let state = Mutex(State())

  init(queue: OperationQueue, interval: TimeInterval, tolerance: TimeInterval, action: @escaping () -> Void) {
    self.queue = queue
    self.interval = interval
    self.tolerance = tolerance
    self.action = ScheduledAction(action)
  }

  func schedule(after date: Date) {
    let operation = DelayedOperation(date: date, tolerance: tolerance) { [self] in
      action.run()
      schedule(after: following(date))
    }
    let isCancelled = state.withLock {
      $0.next = operation
      return $0.isCancelled
    }
    operation.start(on: queue)
    if isCancelled { cancel() }
  }

  /// The next date in the sequence that hasn't passed.
  private func following(_ date: Date) -> Date {
    let late = max(0, -date.timeIntervalSinceNow)
    guard interval > 0 else { return Date() }
    return date.addingTimeInterval(interval * max(1, (late / interval).rounded(.up)))
  }

  func cancel() {
    let operation = state.withLock {
      $0.isCancelled = true
      return $0.next.take()
    }
    action.cancel()
    operation?.cancel()
  }
}
