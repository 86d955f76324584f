extension Publishers {
  /// Delivers the time between the values of a publisher.
  public struct MeasureInterval<Upstream: Publisher, Context: Scheduler>: Publisher {
    public typealias Output = Context.SchedulerTimeType.Stride
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
    public let upstream: Upstream
    /// Whose time is measured.
    public let scheduler: Context

    /// Measures the time between the values of a publisher.
    @inlinable
    public init(upstream: Upstream, scheduler: Context) {
      self.upstream = upstream
      self.scheduler = scheduler
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: MeasureIntervalSubscriber<Context, Upstream.Output, Failure, S>(
          scheduler: scheduler, downstream: subscriber))
    }
  }
}

extension Publishers.MeasureInterval: Sendable where Upstream: Sendable, Context: Sendable {}

@usableFromInline
final class MeasureIntervalSubscriber<Context: Scheduler, Input, Failure, Downstream: Subscriber>: Subscriber,
  Subscription, SubscriptionAwaiting, OperatorPart
where Downstream.Input == Context.SchedulerTimeType.Stride, Downstream.Failure == Failure {
  @usableFromInline let scheduler: Context
  @usableFromInline let lock = Lock()

  // Guarded by the lock.
  @usableFromInline var downstream: Downstream?
  @usableFromInline var upstream: (any Subscription)?
  @usableFromInline var isConnected = false

  @usableFromInline var last: Context.SchedulerTimeType?  // used by one value at a time

  @inlinable
  init(scheduler: Context, downstream: Downstream) {
    self.scheduler = scheduler
    self.downstream = downstream
  }

  @inlinable
  func receive(subscription: any Subscription) {
    var accepted: Downstream?
    lock.withLock {
      guard !isConnected else { return }
      isConnected = true
      upstream = subscription
      accepted = downstream
    }
    guard let accepted else { return subscription.cancel() }
    last = scheduler.now
    accepted.receive(subscription: self)
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard let downstream = openDownstream else {
      ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    let now = scheduler.now
    let interval = last.map { $0.distance(to: now) } ?? 0
    last = now
    let more = downstream.receive(interval)
    if more != .none { request(more) }
    return .none
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    guard let downstream = take().downstream else {
      ignoreIfEarly(.completionBeforeSubscription)
      return
    }
    downstream.receive(completion: completion)
  }

  @usableFromInline var isAwaitingSubscription: Bool {
    lock.withLock { !isConnected && downstream != nil }
  }

  @inlinable var openDownstream: Downstream? {
    var downstream: Downstream?
    lock.withLock { downstream = isConnected ? self.downstream : nil }
    return downstream
  }

  @inlinable
  func request(_ demand: Subscribers.Demand) {
    var upstream: (any Subscription)?
    lock.withLock { upstream = self.upstream }
    upstream?.request(demand)
  }

  @inlinable
  func cancel() {
    take().upstream?.cancel()
  }

  /// Ends the stream and takes out both ends.
  @usableFromInline
  func take() -> (upstream: (any Subscription)?, downstream: Downstream?) {
    var upstream: (any Subscription)?
    var downstream: Downstream?
    lock.withLock {
      guard isConnected else { return }
      swap(&upstream, &self.upstream)
      swap(&downstream, &self.downstream)
    }
    return (upstream, downstream)
  }

  @usableFromInline var description: String { "MeasureInterval" }
}

extension Publisher {
  /// Delivers, in place of each value, the time since the one before, or since the subscription for the first.
  ///
  /// Delivers on the thread that upstream delivers on. Requests pass unchanged.
  ///
  /// - Parameters:
  ///   - scheduler: Whose time is measured.
  ///   - options: Without effect.
  @inlinable
  public func measureInterval<S: Scheduler>(
    using scheduler: S, options: S.SchedulerOptions? = nil
  ) -> Publishers.MeasureInterval<Self, S> {
    Publishers.MeasureInterval(upstream: self, scheduler: scheduler)
  }
}
