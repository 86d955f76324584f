import Synchronization

extension Publishers {
  /// Delivers values and completion to downstream on a scheduler.
  public struct ReceiveOn<Upstream: Publisher, Context: Scheduler>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// The scheduler that downstream is called on.
    public let scheduler: Context
    /// The scheduler's options.
    public let options: Context.SchedulerOptions?

    /// Moves the deliveries of a publisher to a scheduler.
    @inlinable
    public init(upstream: Upstream, scheduler: Context, options: Context.SchedulerOptions?) {
      self.upstream = upstream
      self.scheduler = scheduler
      self.options = options
    }

    @inlinable
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.subscribe(
        ReceiveOnSubscriber<Context, Output, Failure, S>(
          scheduler: scheduler, options: options, downstream: subscriber))
    }
  }
}

extension Publishers.ReceiveOn: Sendable
where Upstream: Sendable, Context: Sendable, Context.SchedulerOptions: Sendable {}

/// Hands over the subscription in the caller's turn; queues what comes after it and hands that over on the scheduler.
///
/// Values that wait when a hop begins are delivered in that hop; later values in the next one. So many values cost one hop, and
/// none keeps the scheduler for long.
@usableFromInline
final class ReceiveOnSubscriber<Context: Scheduler, Input, Failure, Downstream: Subscriber>: Subscriber,
  Subscription, SubscriptionAwaiting, OperatorPart
where Downstream.Input == Input, Downstream.Failure == Failure {
  @usableFromInline
  enum Event {
    case value(Input)
    case completion(Subscribers.Completion<Failure>)
  }

  @usableFromInline let scheduler: Context
  @usableFromInline let options: Context.SchedulerOptions?

  /// Whether anything may be delivered still. Written under the lock.
  @usableFromInline let isOpen = Atomic<Bool>(true)

  @usableFromInline let lock = Lock()
  // Guarded by the lock.
  @usableFromInline var downstream: Downstream?
  @usableFromInline var upstream: (any Subscription)?
  @usableFromInline var isConnected = false
  @usableFromInline var isReceiving = false  // upstream has sent its subscription and not yet ended
  @usableFromInline var waiting: [Event] = []
  @usableFromInline var isScheduled = false  // a hop is under way or will come
  @usableFromInline var isHopping = false
  @usableFromInline var isHopDue = false  // a scheduled hop has come while another is under way
  @usableFromInline var spare: [Event] = []  // belongs to the hop

  @inlinable
  init(scheduler: Context, options: Context.SchedulerOptions?, downstream: Downstream) {
    self.scheduler = scheduler
    self.options = options
    self.downstream = downstream
  }

  @inlinable
  func receive(subscription: any Subscription) {
    var accepted: Downstream?
    lock.withLock {
      guard !isConnected else { return }
      isConnected = true
      isReceiving = downstream != nil
      upstream = subscription
      accepted = downstream
      // A hop that runs before downstream has its subscription does nothing; another follows.
      isHopping = true
    }
    guard let accepted else { return subscription.cancel() }
    accepted.receive(subscription: self)
    let isHopMissed = lock.withLock {
      isHopping = false
      defer { isHopDue = false }
      return isHopDue
    }
    if isHopMissed { schedule() }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    let mustSchedule = lock.withLock { lockedEnqueue(.value(input)) }
    if let mustSchedule {
      if mustSchedule { schedule() }
    } else {
      ignoreIfEarly(.valueBeforeSubscription)
    }
    return .none
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    // Upstream's subscription is released outside the lock.
    var upstream: (any Subscription)?
    let mustSchedule = lock.withLock {
      swap(&upstream, &self.upstream)
      defer { isReceiving = false }
      return lockedEnqueue(.completion(completion))
    }
    if let mustSchedule {
      if mustSchedule { schedule() }
    } else {
      ignoreIfEarly(.completionBeforeSubscription)
    }
  }

  @usableFromInline var isAwaitingSubscription: Bool { lock.withLock { !isConnected } }

  /// Keeps an event for the next hop. Called with the lock held.
  ///
  /// - Returns: Whether the caller must schedule the hop; nil if the event is ignored.
  @inlinable @inline(__always)
  func lockedEnqueue(_ event: Event) -> Bool? {
    guard isReceiving else { return nil }
    waiting.append(event)
    defer { isScheduled = true }
    return !isScheduled
  }

  @inlinable
  func schedule() {
    scheduler.schedule(options: options) { self.hop() }
  }

  @inlinable
  func hop() {
    let isOurs = lock.withLock {
      if isHopping { isHopDue = true }
      defer { isHopping = true }
      return !isHopping
    }
    guard isOurs else { return }
    while true {
      var batch = spare
      spare = []
      // Downstream is looked up once a hop: a lock for each value would be one that upstream, on another thread, waits for.
      var downstream: Downstream?
      lock.withLock {
        swap(&batch, &waiting)
        downstream = self.downstream
      }
      if let downstream {
        for event in batch {
          guard isOpen.load(ordering: .acquiring) else { break }
          deliver(event, to: downstream)
        }
      }
      batch.removeAll(keepingCapacity: true)
      spare = batch
      let isDone = lock.withLock {
        guard waiting.isEmpty else { return false }
        isScheduled = false
        isHopping = false
        return true
      }
      if isDone { return }
      // A scheduler that runs the next hop within `schedule` only marks it as due, and it is done here, not on top.
      schedule()
      let isNextDue = lock.withLock {
        defer { isHopDue = false }
        isHopping = isHopDue
        return isHopDue
      }
      if !isNextDue { return }
    }
  }

  @inlinable
  func deliver(_ event: Event, to downstream: Downstream) {
    switch event {
    case .value(let value):
      let more = downstream.receive(value)
      if more != .none { currentUpstream?.request(more) }
    case .completion(let completion):
      _ = take()
      downstream.receive(completion: completion)
    }
  }

  @inlinable var currentUpstream: (any Subscription)? {
    lock.withLock { upstream }
  }

  @inlinable
  func request(_ demand: Subscribers.Demand) { currentUpstream?.request(demand) }

  @inlinable func cancel() { take().upstream?.cancel() }

  @inlinable
  func take() -> (upstream: (any Subscription)?, downstream: Downstream?, waiting: [Event]) {
    lock.withLock {
      isConnected = true
      isReceiving = false
      isOpen.store(false, ordering: .releasing)
      return (upstream.take(), downstream.take(), exchange(&waiting, with: []))
    }
  }

  @usableFromInline var description: String { "ReceiveOn" }
}

extension Publisher {
  /// Delivers values and completion to downstream on a scheduler.
  ///
  /// Downstream gets its subscription at once, on the thread on which upstream hands it over, so that nothing is lost that
  /// upstream sends next. Requests and cancellation pass upstream on the thread they come from. Values that wait when downstream
  /// cancels are not delivered any more. Unlike Combine, values that wait share one function on the scheduler.
  ///
  /// - Parameters:
  ///   - scheduler: The scheduler that downstream is called on. It may run functions concurrently; downstream gets one value at a time all the same.
  ///   - options: The scheduler's options.
  @inlinable
  public func receive<S: Scheduler>(
    on scheduler: S, options: S.SchedulerOptions? = nil
  ) -> Publishers.ReceiveOn<Self, S> {
    Publishers.ReceiveOn(upstream: self, scheduler: scheduler, options: options)
  }
}
