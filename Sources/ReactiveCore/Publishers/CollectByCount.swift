extension Publishers {
  /// Delivers the values of a publisher in arrays of a certain size.
  public struct CollectByCount<Upstream: Publisher>: Publisher {
    public typealias Output = [Upstream.Output]
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// How many values are in an array.
    public let count: Int

    /// Collects the values of a publisher in arrays.
    ///
    /// - Parameter count: How many values are in an array; at least one.
    @inlinable
    public init(upstream: Upstream, count: Int) {
      self.upstream = upstream
      self.count = count
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: CollectByCountSubscriber<Upstream.Output, Failure, S>(
          count: count, downstream: subscriber))
    }
  }
}

extension Publishers.CollectByCount: Equatable where Upstream: Equatable {}
extension Publishers.CollectByCount: Sendable where Upstream: Sendable {}

@usableFromInline
final class CollectByCountSubscriber<Input, Failure, Downstream: Subscriber>: Subscriber, Subscription,
  SubscriptionAwaiting, OperatorPart
where Downstream.Input == [Input], Downstream.Failure == Failure {
  @usableFromInline let count: Int
  @usableFromInline let lock = Lock()

  // Guarded by the lock.
  @usableFromInline @exclusivity(unchecked) var downstream: Downstream?
  @usableFromInline @exclusivity(unchecked) var upstream: (any Subscription)?
  @usableFromInline @exclusivity(unchecked) var isConnected = false
  @usableFromInline @exclusivity(unchecked) var buffer: [Input] = []

  @inlinable
  init(count: Int, downstream: Downstream) {
    precondition(count > 0, "collect needs a count of at least one")
    self.count = count
    unsafe self.downstream = downstream
  }

  @inlinable
  func receive(subscription: any Subscription) {
    var accepted: Downstream?
    lock.withLock {
      guard unsafe !isConnected else { return }
      unsafe isConnected = true
      unsafe upstream = subscription
      accepted = unsafe downstream
    }
    if let accepted {
      accepted.receive(subscription: self)
    } else {
      subscription.cancel()
    }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    var full: [Input] = []
    var downstream: Downstream?
    let isOpen = lock.withLock {
      guard unsafe upstream != nil else { return false }
      // A large count may stand for all values, and these may be few.
      if unsafe buffer.isEmpty { unsafe buffer.reserveCapacity(Swift.min(count, 1024)) }
      unsafe buffer.append(input)
      if unsafe buffer.count == count {
        unsafe swap(&full, &buffer)
        downstream = unsafe self.downstream
      }
      return true
    }
    if !isOpen { ignoreIfEarly(.valueBeforeSubscription) }
    guard let downstream else { return .none }
    return downstream.receive(full) * count
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    let (_, downstream, rest) = take()
    guard let downstream else {
      ignoreIfEarly(.completionBeforeSubscription)
      return
    }
    if !rest.isEmpty, case .finished = completion { _ = downstream.receive(rest) }
    downstream.receive(completion: completion)
  }

  @usableFromInline var isAwaitingSubscription: Bool {
    lock.withLock { unsafe !isConnected && downstream != nil }
  }

  @inlinable
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    lock.withLock { unsafe upstream }?.request(demand * count)
  }

  @inlinable func cancel() { take().upstream?.cancel() }

  /// Ends the stream and takes out all that is held.
  @usableFromInline
  func take() -> (upstream: (any Subscription)?, downstream: Downstream?, rest: [Input]) {
    var upstream: (any Subscription)?
    var downstream: Downstream?
    var rest: [Input] = []
    lock.withLock {
      guard unsafe isConnected else { return }
      unsafe swap(&upstream, &self.upstream)
      unsafe swap(&downstream, &self.downstream)
      unsafe swap(&rest, &buffer)
    }
    return (upstream, downstream, rest)
  }

  @usableFromInline var description: String { "CollectByCount" }

  @usableFromInline var customMirror: Mirror {
    let (downstream, upstream, buffer) = lock.withLock {
      unsafe (self.downstream, self.upstream, self.buffer)
    }
    return mirror(
      ("downstream", downstream as Any), ("upstreamSubscription", upstream as Any), ("buffer", buffer),
      ("count", count))
  }
}

extension Publisher {
  /// Delivers the values in arrays of a certain size; in a shorter one those that are left when upstream finishes.
  ///
  /// Asks upstream for as many values as the arrays asked for hold. When upstream fails, an array that isn't full is dropped.
  ///
  /// - Parameter count: How many values are in an array; at least one.
  @inlinable
  public func collect(_ count: Int) -> Publishers.CollectByCount<Self> {
    Publishers.CollectByCount(upstream: self, count: count)
  }
}
