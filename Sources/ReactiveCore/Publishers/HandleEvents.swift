import Synchronization

extension Publishers {
  /// Calls functions as a stream goes by.
  public struct HandleEvents<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Gets the subscription.
    public var receiveSubscription: ((any Subscription) -> Void)?
    /// Gets each value, before downstream does.
    public var receiveOutput: ((Upstream.Output) -> Void)?
    /// Gets the completion, before downstream does.
    public var receiveCompletion: ((Subscribers.Completion<Upstream.Failure>) -> Void)?
    /// Called when downstream cancels, before upstream is cancelled.
    public var receiveCancel: (() -> Void)?
    /// Gets each request of downstream, before upstream does.
    public var receiveRequest: ((Subscribers.Demand) -> Void)?

    /// Watches the stream of a publisher.
    @inlinable
    public init(
      upstream: Upstream,
      receiveSubscription: ((any Subscription) -> Void)? = nil,
      receiveOutput: ((Output) -> Void)? = nil,
      receiveCompletion: ((Subscribers.Completion<Failure>) -> Void)? = nil,
      receiveCancel: (() -> Void)? = nil,
      receiveRequest: ((Subscribers.Demand) -> Void)?
    ) {
      self.upstream = upstream
      self.receiveSubscription = receiveSubscription
      self.receiveOutput = receiveOutput
      self.receiveCompletion = receiveCompletion
      self.receiveCancel = receiveCancel
      self.receiveRequest = receiveRequest
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: HandleEventsSubscriber<Upstream, Output, Failure, S>(self, downstream: subscriber))
    }
  }
}

@usableFromInline
final class HandleEventsSubscriber<Upstream: Publisher, Input, Failure, Downstream: Subscriber>: Subscriber,
  OperatorPart
where
  Upstream.Output == Input, Upstream.Failure == Failure, Downstream.Input == Input,
  Downstream.Failure == Failure
{
  @usableFromInline let receiveSubscription: ((any Subscription) -> Void)?
  @usableFromInline let receiveOutput: ((Input) -> Void)?
  @usableFromInline let receiveCompletion: ((Subscribers.Completion<Failure>) -> Void)?
  @usableFromInline let downstream: Downstream
  @usableFromInline let link: HandleEventsLink

  @inlinable
  init(_ events: Publishers.HandleEvents<Upstream>, downstream: Downstream) {
    receiveSubscription = events.receiveSubscription
    receiveOutput = events.receiveOutput
    receiveCompletion = events.receiveCompletion
    self.downstream = downstream
    link = HandleEventsLink(receiveCancel: events.receiveCancel, receiveRequest: events.receiveRequest)
  }

  @inlinable
  func receive(subscription: any Subscription) {
    receiveSubscription?(subscription)
    if link.connect(subscription) {
      downstream.receive(subscription: link)
    } else {
      subscription.cancel()
    }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard link.isOpen else {
      link.ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    receiveOutput?(input)
    let more = downstream.receive(input)
    if more != .none { link.report(more) }
    return more
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    guard link.complete() else {
      link.ignoreIfEarly(.completionBeforeSubscription)
      return
    }
    receiveCompletion?(completion)
    downstream.receive(completion: completion)
  }

  @usableFromInline var description: String { "HandleEvents" }
}

/// The subscription for downstream. It doesn't hold the operator's subscriber, so the two are no cycle.
@usableFromInline
final class HandleEventsLink: Subscription, SubscriptionAwaiting, OperatorPart {
  /// Whether values are passed on. Written under the lock, read without it for each value.
  @usableFromInline let isConnected = Atomic<Bool>(false)

  private let lock = Lock()
  // Guarded by the lock.
  private var upstream: (any Subscription)?
  private var hasEnded = false
  private var receiveCancel: (() -> Void)?
  private var receiveRequest: ((Subscribers.Demand) -> Void)?

  @usableFromInline
  init(receiveCancel: (() -> Void)?, receiveRequest: ((Subscribers.Demand) -> Void)?) {
    self.receiveCancel = receiveCancel
    self.receiveRequest = receiveRequest
  }

  @inlinable @inline(__always)
  var isOpen: Bool { isConnected.load(ordering: .acquiring) }

  /// Takes the subscription, unless there was one or the stream has ended.
  @usableFromInline
  func connect(_ subscription: any Subscription) -> Bool {
    lock.withLock {
      guard upstream == nil, !hasEnded else { return false }
      upstream = subscription
      isConnected.store(true, ordering: .releasing)
      return true
    }
  }

  /// Ends the stream because upstream has completed.
  ///
  /// - Returns: Whether it was open, so that downstream must get the completion.
  @usableFromInline
  func complete() -> Bool {
    // Calls of upstream before its subscription are ignored.
    isOpen && end().upstream != nil
  }

  @usableFromInline var isAwaitingSubscription: Bool { lock.withLock { upstream == nil && !hasEnded } }

  /// Calls the function for requests.
  @usableFromInline
  func report(_ demand: Subscribers.Demand) {
    lock.withLock { receiveRequest }?(demand)
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    report(demand)
    lock.withLock { upstream }?.request(demand)
  }

  @usableFromInline
  func cancel() {
    let (upstream, receiveCancel) = end()
    receiveCancel?()
    upstream?.cancel()
  }

  /// Ends it and returns what is to be called, outside the lock.
  private func end() -> (upstream: (any Subscription)?, receiveCancel: (() -> Void)?) {
    var upstream: (any Subscription)?
    var receiveCancel: (() -> Void)?
    var receiveRequest: ((Subscribers.Demand) -> Void)?
    lock.withLock {
      hasEnded = true
      isConnected.store(false, ordering: .releasing)
      swap(&upstream, &self.upstream)
      swap(&receiveCancel, &self.receiveCancel)
      swap(&receiveRequest, &self.receiveRequest)
    }
    withExtendedLifetime(receiveRequest) {}
    return (upstream, receiveCancel)
  }

  @usableFromInline var description: String { "HandleEvents" }
}

extension Publisher {
  /// Calls functions as the stream goes by.
  ///
  /// Unlike Combine, downstream gets its subscription when upstream has given one, and never anything after the end.
  ///
  /// - Parameters:
  ///   - receiveSubscription: Gets the subscription.
  ///   - receiveOutput: Gets each value, before downstream does.
  ///   - receiveCompletion: Gets the completion, before downstream does.
  ///   - receiveCancel: Called when downstream cancels, before upstream is cancelled.
  ///   - receiveRequest: Gets each request of downstream, before upstream does.
  @inlinable
  public func handleEvents(
    receiveSubscription: ((any Subscription) -> Void)? = nil,
    receiveOutput: ((Output) -> Void)? = nil,
    receiveCompletion: ((Subscribers.Completion<Failure>) -> Void)? = nil,
    receiveCancel: (() -> Void)? = nil,
    receiveRequest: ((Subscribers.Demand) -> Void)? = nil
  ) -> Publishers.HandleEvents<Self> {
    Publishers.HandleEvents(
      upstream: self, receiveSubscription: receiveSubscription, receiveOutput: receiveOutput,
      receiveCompletion: receiveCompletion, receiveCancel: receiveCancel, receiveRequest: receiveRequest)
  }
}
