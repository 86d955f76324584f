extension Publishers {
  /// Subscribes to upstream, requests and cancels on a scheduler.
  public struct SubscribeOn<Upstream: Publisher, Context: Scheduler>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// The scheduler that upstream is called on.
    public let scheduler: Context
    /// The scheduler's options.
    public let options: Context.SchedulerOptions?

    /// Moves the calls to a publisher to a scheduler.
    @inlinable
    public init(upstream: Upstream, scheduler: Context, options: Context.SchedulerOptions?) {
      self.upstream = upstream
      self.scheduler = scheduler
      self.options = options
    }

    @inlinable
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let subscriber = SubscribeOnSubscriber<Context, Output, Failure, S>(
        scheduler: scheduler, options: options, downstream: subscriber)
      scheduler.schedule(options: options) { [upstream] in
        upstream.subscribe(subscriber)
      }
    }
  }
}

extension Publishers.SubscribeOn: Sendable
where Upstream: Sendable, Context: Sendable, Context.SchedulerOptions: Sendable {}

@usableFromInline
final class SubscribeOnSubscriber<Context: Scheduler, Input, Failure, Downstream: Subscriber>: Subscriber,
  Subscription, SubscriptionAwaiting, OperatorPart
where Downstream.Input == Input, Downstream.Failure == Failure {
  private let scheduler: Context
  private let options: Context.SchedulerOptions?
  @usableFromInline let lock = Lock()

  // Guarded by the lock.
  @usableFromInline var downstream: Downstream?
  @usableFromInline var upstream: (any Subscription)?
  @usableFromInline var isConnected = false

  @usableFromInline
  init(scheduler: Context, options: Context.SchedulerOptions?, downstream: Downstream) {
    self.scheduler = scheduler
    self.options = options
    self.downstream = downstream
  }

  @usableFromInline
  func receive(subscription: any Subscription) {
    var accepted: Downstream?
    lock.withLock {
      guard !isConnected else { return }
      isConnected = true
      upstream = subscription
      accepted = downstream
    }
    if let accepted {
      accepted.receive(subscription: self)
    } else {
      subscription.cancel()
    }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard let downstream = lock.withLock({ isConnected ? self.downstream : nil }) else {
      ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    return downstream.receive(input)
  }

  @usableFromInline
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

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    guard let upstream = lock.withLock({ self.upstream }) else { return }
    // Weak: if nothing else keeps this object, no value can be delivered to it.
    scheduler.schedule(options: options) { [weak self] in
      if self != nil { upstream.request(demand) }
    }
  }

  @usableFromInline
  func cancel() {
    guard let upstream = take().upstream else { return }
    scheduler.schedule(options: options) { upstream.cancel() }
  }

  private func take() -> (upstream: (any Subscription)?, downstream: Downstream?) {
    lock.withLock { isConnected ? (upstream.take(), downstream.take()) : (nil, nil) }
  }

  @usableFromInline var description: String { "SubscribeOn" }
}

extension Publisher {
  /// Subscribes to upstream, requests from it and cancels it on a scheduler.
  ///
  /// Upstream delivers on its own threads. Once downstream has cancelled it gets nothing more, though upstream is cancelled later.
  ///
  /// - Parameters:
  ///   - scheduler: The scheduler that upstream is called on.
  ///   - options: The scheduler's options.
  @inlinable
  public func subscribe<S: Scheduler>(
    on scheduler: S, options: S.SchedulerOptions? = nil
  ) -> Publishers.SubscribeOn<Self, S> {
    Publishers.SubscribeOn(upstream: self, scheduler: scheduler, options: options)
  }
}
