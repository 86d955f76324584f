extension Publishers {
  /// Delivers values and completion some time later.
  public struct Delay<Upstream: Publisher, Context: Scheduler>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// The delay.
    public let interval: Context.SchedulerTimeType.Stride
    /// By how much more a delivery may be late.
    public let tolerance: Context.SchedulerTimeType.Stride
    /// The scheduler that downstream is called on, and whose time counts.
    public let scheduler: Context
    /// The scheduler's options.
    public let options: Context.SchedulerOptions?

    /// Delivers the values and the completion of a publisher some time later.
    public init(
      upstream: Upstream, interval: Context.SchedulerTimeType.Stride,
      tolerance: Context.SchedulerTimeType.Stride, scheduler: Context,
      options: Context.SchedulerOptions? = nil
    ) {
      self.upstream = upstream
      self.interval = interval
      self.tolerance = tolerance
      self.scheduler = scheduler
      self.options = options
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.subscribe(
        DelaySubscriber(
          interval: interval, tolerance: tolerance, scheduler: scheduler, options: options,
          downstream: subscriber))
    }
  }
}

extension Publishers.Delay: Sendable
where
  Upstream: Sendable, Context: Sendable, Context.SchedulerTimeType.Stride: Sendable,
  Context.SchedulerOptions: Sendable
{}

/// Each value schedules its own function, which delivers the first value in the queue. All values wait equally long, so the first
/// one is due in any case, and the order holds although timers may fire out of order.
private final class DelaySubscriber<Context: Scheduler, Input, Failure, Downstream: Subscriber>:
  TimedSubscriber
where Downstream.Input == Input, Downstream.Failure == Failure {
  private let interval: Context.SchedulerTimeType.Stride
  private let tolerance: Context.SchedulerTimeType.Stride
  private let options: Context.SchedulerOptions?
  let delivery: TimedDelivery<Context, Input, Failure, Downstream>

  init(
    interval: Context.SchedulerTimeType.Stride, tolerance: Context.SchedulerTimeType.Stride,
    scheduler: Context, options: Context.SchedulerOptions?, downstream: Downstream
  ) {
    self.interval = interval
    self.tolerance = tolerance
    self.options = options
    delivery = TimedDelivery("Delay", scheduler: scheduler, options: options, downstream: downstream)
  }

  func receive(subscription: any Subscription) {
    guard delivery.connect(subscription) else { return }
    delivery.open(with: self, onDemand: delivery.requestUpstream)
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    let isOpen = delivery.lock.withLock {
      guard delivery.phase == .open else { return false }
      delivery.lockedPut(input)
      return true
    }
    if isOpen {
      schedule()
    } else {
      delivery.ignoreIfEarly(.valueBeforeSubscription)
    }
    return .none
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    if delivery.complete(completion) { schedule() }
  }

  private func schedule() {
    let date = delivery.scheduler.now.advanced(by: interval)
    delivery.scheduler.schedule(after: date, tolerance: tolerance, options: options) {
      self.delivery.deliver(onDemand: self.delivery.requestUpstream)
    }
  }

  func request(_ demand: Subscribers.Demand) { delivery.requestUpstream(demand) }
}

extension Publisher {
  /// Delivers values and completion some time later, in order.
  ///
  /// Downstream gets its subscription at once, on the thread on which upstream hands it over. Requests and cancellation pass
  /// upstream on the thread they come from. Waiting values are released at once when downstream cancels.
  ///
  /// - Parameters:
  ///   - interval: The delay. Nothing is delivered earlier than that.
  ///   - tolerance: By how much more a delivery may be late; the scheduler's least tolerance if nil.
  ///   - scheduler: The scheduler that downstream is called on. It may run functions concurrently; downstream gets one value at a time all the same.
  ///   - options: The scheduler's options.
  public func delay<S: Scheduler>(
    for interval: S.SchedulerTimeType.Stride, tolerance: S.SchedulerTimeType.Stride? = nil, scheduler: S,
    options: S.SchedulerOptions? = nil
  ) -> Publishers.Delay<Self, S> {
    Publishers.Delay(
      upstream: self, interval: interval, tolerance: tolerance ?? scheduler.minimumTolerance,
      scheduler: scheduler, options: options)
  }
}
