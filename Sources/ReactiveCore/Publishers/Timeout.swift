extension Publishers {
  /// Ends the stream when upstream has been quiet for too long.
  public struct Timeout<Upstream: Publisher, Context: Scheduler>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// How long upstream may be quiet.
    public let interval: Context.SchedulerTimeType.Stride
    /// The scheduler that downstream is called on, and whose time counts.
    public let scheduler: Context
    /// The scheduler's options.
    public let options: Context.SchedulerOptions?
    /// The failure to send; nil to finish.
    public let customError: (() -> Failure)?

    /// Ends the stream of a publisher when it has been quiet for too long.
    public init(
      upstream: Upstream, interval: Context.SchedulerTimeType.Stride, scheduler: Context,
      options: Context.SchedulerOptions?, customError: (() -> Failure)?
    ) {
      self.upstream = upstream
      self.interval = interval
      self.scheduler = scheduler
      self.options = options
      self.customError = customError
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.subscribe(
        TimeoutSubscriber(
          interval: interval, scheduler: scheduler, options: options, customError: customError,
          downstream: subscriber))
    }
  }
}

private final class TimeoutSubscriber<Context: Scheduler, Input, Failure, Downstream: Subscriber>:
  TimedSubscriber
where Downstream.Input == Input, Downstream.Failure == Failure {
  private let interval: Context.SchedulerTimeType.Stride
  let delivery: TimedDelivery<Context, Input, Failure, Downstream>

  // Guarded by the delivery's lock.
  private var customError: (() -> Failure)?
  private var isRequested = false

  init(
    interval: Context.SchedulerTimeType.Stride, scheduler: Context, options: Context.SchedulerOptions?,
    customError: (() -> Failure)?, downstream: Downstream
  ) {
    self.interval = interval
    self.customError = customError
    delivery = TimedDelivery("Timeout", scheduler: scheduler, options: options, downstream: downstream)
  }

  func receive(subscription: any Subscription) {
    guard delivery.connect(subscription) else { return }
    startTimer()
    delivery.open(with: self, onDemand: delivery.requestUpstream)
  }

  private func startTimer() {
    let generation: UInt64? = delivery.lock.withLock {
      delivery.phase == .open ? delivery.lockedRestartTimer() : nil
    }
    guard let generation else { return }
    delivery.startTimer(generation, after: interval) { self.timeOut(generation) }
  }

  /// Cancels upstream and delivers the completion, after the values that wait.
  private func timeOut(_ generation: UInt64) {
    var timer: (any Cancellable)?
    var makeError: (() -> Failure)?
    var upstream: (any Subscription)?
    let isOurs = delivery.lock.withLock {
      let isOurs: Bool
      (isOurs, timer) = delivery.lockedStopTimer(generation)
      guard isOurs else { return false }
      makeError = customError.take()
      upstream = delivery.lockedClose().upstream
      return true
    }
    guard isOurs else { return }
    timer?.cancel()
    upstream?.cancel()
    let completion = makeError.map { Subscribers.Completion.failure($0()) } ?? .finished
    delivery.lock.withLock {
      if delivery.phase == .completing { delivery.lockedPut(completion) }
    }
    delivery.deliver(nil, onDemand: delivery.requestUpstream)
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    guard delivery.isOpen else {
      delivery.ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    startTimer()
    let isOpen = delivery.lock.withLock {
      guard delivery.phase == .open else { return false }
      delivery.lockedPut(input)
      return true
    }
    if isOpen { delivery.schedule(onDemand: delivery.requestUpstream) }
    return .none
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    var makeError: (() -> Failure)?
    if delivery.complete(completion, alsoTaking: { swap(&makeError, &customError) }) {
      delivery.schedule(onDemand: delivery.requestUpstream)
    }
  }

  func request(_ demand: Subscribers.Demand) {
    let isFirst = delivery.lock.withLock {
      guard delivery.phase == .open, !isRequested else { return false }
      isRequested = true
      return true
    }
    // The time before the first request does not count: upstream had nothing to deliver.
    if isFirst { startTimer() }
    delivery.requestUpstream(demand)
  }

  func cancel() {
    var makeError: (() -> Failure)?
    delivery.cancel { swap(&makeError, &customError) }
  }
}

extension Publisher {
  /// Ends the stream when upstream has been quiet for too long.
  ///
  /// The time starts with the subscription, anew with the first request, and anew with each value. Values and completion are
  /// delivered on the scheduler. When time is up, upstream is cancelled, and downstream gets the completion after the values that wait.
  ///
  /// - Parameters:
  ///   - interval: How long upstream may be quiet.
  ///   - scheduler: The scheduler that downstream is called on. It may run functions concurrently; downstream gets one value at a time all the same.
  ///   - options: The scheduler's options.
  ///   - customError: What to fail with when time is up; called then, on the scheduler. The stream finishes if nil.
  public func timeout<S: Scheduler>(
    _ interval: S.SchedulerTimeType.Stride, scheduler: S, options: S.SchedulerOptions? = nil,
    customError: (() -> Failure)? = nil
  ) -> Publishers.Timeout<Self, S> {
    Publishers.Timeout(
      upstream: self, interval: interval, scheduler: scheduler, options: options, customError: customError)
  }
}
