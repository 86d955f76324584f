extension Publishers {
  /// Delivers the time between the values of a publisher.
  public struct MeasureInterval<Upstream: Publisher, Context: Scheduler>: Publisher {
    public typealias Output = Context.SchedulerTimeType.Stride
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// The scheduler whose time is measured.
    public let scheduler: Context

    /// Measures the time between the values of a publisher.
    @inlinable
    public init(upstream: Upstream, scheduler: Context) {
      self.upstream = upstream
      self.scheduler = scheduler
    }

    @inlinable @inline(__always)
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
  OperatorPart
where Downstream.Input == Context.SchedulerTimeType.Stride, Downstream.Failure == Failure {
  @usableFromInline let scheduler: Context
  @usableFromInline let downstream: Downstream
  @usableFromInline let link: UpstreamLink<Downstream>
  @usableFromInline var last: Context.SchedulerTimeType?  // used by one value at a time

  @inlinable
  init(scheduler: Context, downstream: Downstream) {
    self.scheduler = scheduler
    self.downstream = downstream
    link = UpstreamLink("MeasureInterval", downstream: downstream, isReflecting: false, acceptsNone: true)
  }

  @inlinable
  func receive(subscription: any Subscription) {
    guard link.connect(subscription) else { return }
    last = scheduler.now
    downstream.receive(subscription: link)
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard link.isOpen else { return .none }
    let now = scheduler.now
    let interval = last.map { $0.distance(to: now) } ?? 0
    last = now
    let more = downstream.receive(interval)
    if more != .none { link.request(more) }
    return .none
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    if link.complete() { downstream.receive(completion: completion) }
  }

  @usableFromInline var description: String { "MeasureInterval" }
}

extension Publisher {
  /// Delivers, in place of each value, the time since the one before, or since the subscription for the first.
  ///
  /// Delivers on the thread that upstream delivers on. Requests pass unchanged.
  ///
  /// - Parameters:
  ///   - scheduler: The scheduler whose time is measured.
  ///   - options: Without effect.
  @inlinable
  public func measureInterval<S: Scheduler>(
    using scheduler: S, options: S.SchedulerOptions? = nil
  ) -> Publishers.MeasureInterval<Self, S> {
    Publishers.MeasureInterval(upstream: self, scheduler: scheduler)
  }
}
