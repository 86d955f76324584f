public import Foundation
public import ReactiveCore

extension RunLoop {
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

/// Runs functions on the run loop's thread, in order, while the loop runs in its default mode.
///
/// May be called from any thread.
extension RunLoop: Scheduler {
  /// There are no options.
  public struct SchedulerOptions: Sendable {}

  /// The present moment.
  public var now: SchedulerTimeType { SchedulerTimeType(Date()) }

  /// No time: a timer may be asked to be as accurate as the system allows.
  public var minimumTolerance: SchedulerTimeType.Stride { 0 }

  /// Runs a function as soon as the loop gets to it, and never before this returns unless on another thread.
  public func schedule(options: SchedulerOptions?, _ action: @escaping () -> Void) {
    let action = HandedOverAction(run: action)
    perform { action.run() }
    if RunLoop.current !== self {
      // A loop that sleeps does not notice, unless it gets something else to wake up for.
      add(Timer(fire: .distantPast, interval: 0, repeats: false) { _ in }, forMode: .default)
    }
  }

  /// Runs a function at some moment, or up to the tolerance later; never before, and at once if the moment has passed.
  ///
  /// A function for the distant future is released, for it will not run.
  public func schedule(
    after date: SchedulerTimeType, tolerance: SchedulerTimeType.Stride, options: SchedulerOptions?,
    _ action: @escaping () -> Void
  ) {
    if date.date.isNever { return }
    let action = ScheduledAction(action)
    addTimer(Timer(fire: date.date, interval: 0, repeats: false) { _ in action.runLast() }, tolerance)
  }

  /// Runs a function at some moment and then at regular intervals, each time up to the tolerance later.
  ///
  /// Intervals that pass while the loop is busy are skipped.
  ///
  /// - Returns: An object that stops it, at once and from any thread; also when it is released.
  public func schedule(
    after date: SchedulerTimeType, interval: SchedulerTimeType.Stride, tolerance: SchedulerTimeType.Stride,
    options: SchedulerOptions?, _ action: @escaping () -> Void
  ) -> any Cancellable {
    if date.date.isNever { return AnyCancellable {} }
    let action = ScheduledAction(action)
    let timer = Timer(fire: date.date, interval: interval.timeInterval, repeats: true) { _ in action.run() }
    addTimer(timer, tolerance)
    return AnyCancellable {
      action.cancel()
      timer.invalidate()
    }
  }

  private func addTimer(_ timer: Timer, _ tolerance: SchedulerTimeType.Stride) {
    timer.tolerance = Swift.max(tolerance.timeInterval, 0)
    add(timer, forMode: .default)
  }
}
