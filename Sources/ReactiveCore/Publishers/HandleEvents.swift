extension Publishers {
  /// Calls functions as a stream goes by.
  public struct HandleEvents<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
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

    @inlinable
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.subscribe(HandleEventsSubscriber(self, downstream: subscriber))
    }
  }
}

@usableFromInline
final class HandleEventsSubscriber<Upstream: Publisher, Input, Failure, Downstream: Subscriber>: Subscriber,
  Subscription,
  CustomStringConvertible, CustomReflectable, CustomPlaygroundDisplayConvertible
where
  Upstream.Output == Input, Upstream.Failure == Failure, Downstream.Input == Input,
  Downstream.Failure == Failure
{
  @usableFromInline
  enum State {
    case awaiting
    case open(any Subscription)
    case ended
  }

  @usableFromInline let lock = Lock()
  @usableFromInline var state = State.awaiting  // guarded by the lock
  @usableFromInline var events: Publishers.HandleEvents<Upstream>?  // guarded by the lock
  @usableFromInline var downstream: Downstream?  // guarded by the lock

  @inlinable
  init(_ events: Publishers.HandleEvents<Upstream>, downstream: Downstream) {
    self.events = events
    self.downstream = downstream
  }

  @inlinable
  func receive(subscription: any Subscription) {
    lock.withLock { events }?.receiveSubscription?(subscription)
    let accepted: Downstream? = lock.withLock {
      guard case .awaiting = state else { return nil }
      state = .open(subscription)
      return downstream
    }
    if let accepted {
      accepted.receive(subscription: self)
    } else {
      subscription.cancel()
    }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    let (events, downstream): (Publishers.HandleEvents<Upstream>?, Downstream?) =
      lock.withLock { (self.events, self.downstream) }
    guard let downstream else { return .none }
    events?.receiveOutput?(input)
    let more = downstream.receive(input)
    if more != .none {
      lock.withLock { self.events }?.receiveRequest?(more)
    }
    return more
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    let (_, events, downstream) = end()
    events?.receiveCompletion?(completion)
    downstream?.receive(completion: completion)
  }

  @inlinable
  func request(_ demand: Subscribers.Demand) {
    lock.withLock { events }?.receiveRequest?(demand)
    var upstream: (any Subscription)?
    lock.withLock {
      if case .open(let subscription) = state { upstream = subscription }
    }
    upstream?.request(demand)
  }

  @inlinable
  func cancel() {
    let (state, events, _) = end()
    events?.receiveCancel?()
    if case .open(let subscription) = state {
      subscription.cancel()
    }
  }

  /// Ends it and returns what was held, to be used and released outside the lock.
  @inlinable
  func end() -> (State, Publishers.HandleEvents<Upstream>?, Downstream?) {
    lock.withLock {
      defer {
        state = .ended
        events = nil
        downstream = nil
      }
      return (state, events, downstream)
    }
  }

  @usableFromInline var description: String { "HandleEvents" }

  @usableFromInline var customMirror: Mirror { Mirror(self, children: EmptyCollection()) }

  @usableFromInline var playgroundDescription: Any { description }
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
