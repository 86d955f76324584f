extension Publishers {
  /// Delivers a value once upstream has been quiet for some time.
  public struct Debounce<Upstream: Publisher, Context: Scheduler>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// How long upstream must be quiet.
    public let dueTime: Context.SchedulerTimeType.Stride
    /// The scheduler that downstream is called on, and whose time counts.
    public let scheduler: Context
    /// The scheduler's options.
    public let options: Context.SchedulerOptions?

    /// Delivers a value of a publisher once it has been quiet for some time.
    public init(
      upstream: Upstream, dueTime: Context.SchedulerTimeType.Stride, scheduler: Context,
      options: Context.SchedulerOptions?
    ) {
      self.upstream = upstream
      self.dueTime = dueTime
      self.scheduler = scheduler
      self.options = options
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.subscribe(
        DebounceSubscriber(dueTime: dueTime, scheduler: scheduler, options: options, downstream: subscriber))
    }
  }
}

extension Publishers.Debounce: Sendable
where
  Upstream: Sendable, Context: Sendable, Context.SchedulerTimeType.Stride: Sendable,
  Context.SchedulerOptions: Sendable
{}

private final class DebounceSubscriber<Context: Scheduler, Input, Failure, Downstream: Subscriber>:
  TimedSubscriber
where Downstream.Input == Input, Downstream.Failure == Failure {
  private let dueTime: Context.SchedulerTimeType.Stride
  let delivery: TimedDelivery<Context, Input, Failure, Downstream>
  private var current: Input?  // guarded by the delivery's lock

  init(
    dueTime: Context.SchedulerTimeType.Stride, scheduler: Context, options: Context.SchedulerOptions?,
    downstream: Downstream
  ) {
    self.dueTime = dueTime
    delivery = TimedDelivery("Debounce", scheduler: scheduler, options: options, downstream: downstream)
  }

  func receive(subscription: any Subscription) {
    guard delivery.connect(subscription) else { return }
    delivery.open(with: self, onDemand: request)
    delivery.requestUpstream(.unlimited)
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    var previous: Input?
    let generation: UInt64? = delivery.lock.withLock {
      guard delivery.phase == .open else { return nil }
      previous = current.take()
      current = input
      return delivery.lockedRestartTimer()
    }
    withExtendedLifetime(previous) {}
    if let generation {
      delivery.startTimer(generation, after: dueTime) { self.timerFired(generation) }
    } else {
      delivery.ignoreIfEarly(.valueBeforeSubscription)
    }
    return .none
  }

  private func timerFired(_ generation: UInt64) {
    var timer: (any Cancellable)?
    var dropped: Input?
    let isAskedFor = delivery.lock.withLock {
      let isOurs: Bool
      (isOurs, timer) = delivery.lockedStopTimer(generation)
      guard isOurs else { return false }
      guard delivery.demand > .none, let value = current else {
        swap(&dropped, &current)
        return false
      }
      delivery.demand -= 1
      delivery.lockedPut(value)
      current = nil
      return true
    }
    withExtendedLifetime(dropped) {}
    timer?.cancel()
    if isAskedFor { delivery.deliver(onDemand: request) }
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    var dropped: Input?
    if delivery.complete(completion, alsoTaking: { swap(&dropped, &current) }) {
      delivery.scheduler.schedule { self.delivery.deliver(onDemand: self.request) }
    }
  }

  func request(_ demand: Subscribers.Demand) {
    delivery.lock.withLock {
      if delivery.phase == .open { delivery.demand += demand }
    }
  }

  func cancel() {
    var dropped: Input?
    delivery.cancel { swap(&dropped, &current) }
  }

  var customMirror: Mirror {
    let (downstream, current, demand) = delivery.lock.withLock {
      (delivery.downstream, self.current, delivery.demand)
    }
    return mirror(
      ("downstream", downstream as Any), ("downstreamDemand", demand), ("currentValue", current as Any))
  }
}

extension Publisher {
  /// Delivers a value once upstream has been quiet for some time, and drops those that are followed by another before.
  ///
  /// Asks upstream for everything. A value that falls due while downstream has asked for nothing is dropped too. When upstream
  /// ends, the value that waits is dropped, and the completion is delivered on the scheduler without delay.
  ///
  /// - Parameters:
  ///   - dueTime: How long upstream must be quiet.
  ///   - scheduler: The scheduler that downstream is called on. It may run functions concurrently; downstream gets one value at a time all the same.
  ///   - options: The scheduler's options.
  public func debounce<S: Scheduler>(
    for dueTime: S.SchedulerTimeType.Stride, scheduler: S, options: S.SchedulerOptions? = nil
  ) -> Publishers.Debounce<Self, S> {
    Publishers.Debounce(upstream: self, dueTime: dueTime, scheduler: scheduler, options: options)
  }
}
