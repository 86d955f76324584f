extension Publishers {
  /// Delivers at most one value in each stretch of time.
  public struct Throttle<Upstream: Publisher, Context: Scheduler>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// The least time between two deliveries.
    public let interval: Context.SchedulerTimeType.Stride
    /// The scheduler that downstream is called on, and whose time counts.
    public let scheduler: Context
    /// Whether the last value that comes in the meantime is delivered, or the first.
    public let latest: Bool

    /// Delivers at most one value of a publisher in each stretch of time.
    public init(
      upstream: Upstream, interval: Context.SchedulerTimeType.Stride, scheduler: Context, latest: Bool
    ) {
      self.upstream = upstream
      self.interval = interval
      self.scheduler = scheduler
      self.latest = latest
    }

    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.subscribe(
        ThrottleSubscriber(interval: interval, scheduler: scheduler, latest: latest, downstream: subscriber))
    }
  }
}

extension Publishers.Throttle: Sendable
where Upstream: Sendable, Context: Sendable, Context.SchedulerTimeType.Stride: Sendable {}

private final class ThrottleSubscriber<Context: Scheduler, Input, Failure, Downstream: Subscriber>:
  TimedSubscriber
where Downstream.Input == Input, Downstream.Failure == Failure {
  private let interval: Context.SchedulerTimeType.Stride
  private let latest: Bool
  let delivery: TimedDelivery<Context, Input, Failure, Downstream>

  // Guarded by the delivery's lock.
  private var pending: Input?  // within demand, and a function on the scheduler will deliver it
  private var lastDelivery: Context.SchedulerTimeType?

  init(interval: Context.SchedulerTimeType.Stride, scheduler: Context, latest: Bool, downstream: Downstream) {
    self.interval = interval
    self.latest = latest
    delivery = TimedDelivery("Throttle", scheduler: scheduler, downstream: downstream)
  }

  func receive(subscription: any Subscription) {
    guard delivery.connect(subscription) else { return }
    // Downstream's demand comes first: upstream may send its values within the request.
    delivery.open(with: self, onDemand: request)
    delivery.requestUpstream(.unlimited)
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    guard delivery.isOpen else {
      delivery.ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    let now = delivery.scheduler.now
    var dropped: Input?
    var previous: Context.SchedulerTimeType?
    let mustSchedule = delivery.lock.withLock {
      guard delivery.phase == .open else { return false }
      if pending != nil {
        if latest {
          dropped = pending.take()
          pending = input
        }
        return false
      }
      guard delivery.demand > .none else { return false }
      delivery.demand -= 1
      pending = input
      previous = lastDelivery
      return true
    }
    withExtendedLifetime(dropped) {}
    if mustSchedule {
      if let earliest = previous?.advanced(by: interval), now < earliest {
        delivery.scheduler.schedule(after: earliest) { self.deliver() }
      } else {
        delivery.scheduler.schedule { self.deliver() }
      }
    }
    return .none
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    var isPending = false
    let isOpen = delivery.complete(completion) { isPending = pending != nil }
    if isOpen, !isPending {
      delivery.scheduler.schedule { self.deliver() }
    }
  }

  private func deliver() {
    let now = delivery.scheduler.now
    let count: Int = delivery.lock.withLock {
      guard delivery.phase != .ended else { return 0 }
      var count = delivery.phase == .completing ? 1 : 0
      if let value = pending {
        pending = nil
        lastDelivery = now
        delivery.lockedPut(value)
        count += 1
      }
      return count
    }
    if count > 0 { delivery.deliver(count, onDemand: request) }
  }

  func request(_ demand: Subscribers.Demand) {
    delivery.lock.withLock {
      if delivery.phase == .open { delivery.demand += demand }
    }
  }

  func cancel() {
    var dropped: Input?
    delivery.cancel { swap(&dropped, &pending) }
  }
}

extension Publisher {
  /// Delivers at most one value in each stretch of time, and drops the others.
  ///
  /// Asks upstream for everything. The first value is delivered without delay, and a later one as soon as the interval since the
  /// last delivery has passed. Values without demand are dropped. But unlike in Combine, with `latest` they replace a waiting
  /// value that has demand. When upstream ends, a value that waits is delivered in its time, and the completion after it.
  ///
  /// - Parameters:
  ///   - interval: The least time between two deliveries.
  ///   - scheduler: The scheduler that downstream is called on. It may run functions concurrently; downstream gets one value at a time all the same.
  ///   - latest: Whether the last value that comes while one waits takes its place; otherwise the first is delivered.
  public func throttle<S: Scheduler>(
    for interval: S.SchedulerTimeType.Stride, scheduler: S, latest: Bool
  ) -> Publishers.Throttle<Self, S> {
    Publishers.Throttle(upstream: self, interval: interval, scheduler: scheduler, latest: latest)
  }
}
