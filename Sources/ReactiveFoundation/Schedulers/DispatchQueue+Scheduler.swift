public import Dispatch
public import ReactiveCore

/// Runs functions on the queue: in order and one at a time if the queue is serial.
extension DispatchQueue: Scheduler {
  /// How a function is run on the queue.
  public struct SchedulerOptions: @unchecked Sendable {
    // Sendable because all three are values or safe to use from any thread; Dispatch does not say so of the flags.

    /// The quality of service; unspecified means the queue's own.
    public var qos: DispatchQoS

    /// Whether the function is a barrier, and the like.
    public var flags: DispatchWorkItemFlags

    /// The group that waits for the function, from when it is scheduled.
    public var group: DispatchGroup?

    /// How a function is run on the queue.
    public init(
      qos: DispatchQoS = .unspecified, flags: DispatchWorkItemFlags = [], group: DispatchGroup? = nil
    ) {
      self.qos = qos
      self.flags = flags
      self.group = group
    }
  }

  /// The present moment.
  public var now: SchedulerTimeType { SchedulerTimeType(.now()) }

  /// No time: a timer may be asked to be as accurate as the system allows.
  public var minimumTolerance: SchedulerTimeType.Stride { 0 }

  /// Runs a function as soon as the queue gets to it, and never before this returns unless on another thread.
  public func schedule(options: SchedulerOptions?, _ action: @escaping () -> Void) {
    let action = HandedOverAction(run: action)
    guard let options else {
      return async { action.run() }
    }
    async(group: options.group, qos: options.qos, flags: options.flags) { action.run() }
  }

  /// Runs a function at some moment, or up to the tolerance later; never before, and at once if the moment has passed.
  ///
  /// A function for the distant future is released, for it will not run.
  public func schedule(
    after date: SchedulerTimeType, tolerance: SchedulerTimeType.Stride, options: SchedulerOptions?,
    _ action: @escaping () -> Void
  ) {
    if date.dispatchTime == .distantFuture { return }
    let action = ScheduledAction(action)
    let timer = DispatchSource.makeTimerSource(queue: self)
    timer.schedule(deadline: date.dispatchTime, leeway: tolerance.leeway)
    options?.group?.enter()
    // The timer lives as long as its handler, which cancelling removes.
    timer.setEventHandler { [self] in
      timer.cancel()
      guard let options else { return action.runLast() }
      schedule(options: options, action.runLast)
      options.group?.leave()
    }
    timer.activate()
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
    if date.dispatchTime == .distantFuture { return AnyCancellable {} }
    let action = ScheduledAction(action)
    let timer = DispatchSource.makeTimerSource(queue: self)
    timer.schedule(
      deadline: date.dispatchTime, repeating: max(interval, .nanoseconds(1)).timeInterval,
      leeway: tolerance.leeway)
    timer.setEventHandler { [self] in
      guard let options else { return action.run() }
      schedule(options: options, action.run)
    }
    timer.activate()
    return AnyCancellable {
      timer.cancel()
      action.cancel()
    }
  }
}

extension DispatchQueue.SchedulerTimeType.Stride {
  fileprivate var leeway: DispatchTimeInterval { max(self, .nanoseconds(0)).timeInterval }
}
