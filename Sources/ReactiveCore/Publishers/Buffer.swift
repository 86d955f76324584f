extension Publishers {
  /// When a buffer asks upstream for values.
  public enum PrefetchStrategy: Equatable, Hashable, Sendable {
    /// Asks for as many as fit, and for one more for each that is delivered.
    case keepFull
    /// Asks for everything at once; the ``BufferingStrategy`` decides on values that do not fit.
    case byRequest
  }

  /// The treatment of a value that does not fit into a full buffer.
  public enum BufferingStrategy<Failure: Error> {
    /// Drops the value.
    case dropNewest
    /// Drops the oldest value in the buffer, and keeps this one.
    case dropOldest
    /// Cancels upstream and fails, once what is in the buffer has been delivered.
    case customError(() -> Failure)
  }

  /// Keeps values that downstream has not asked for yet.
  public struct Buffer<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// How many values are kept.
    public let size: Int
    /// When to request values from upstream.
    public let prefetch: Publishers.PrefetchStrategy
    /// How a value that does not fit is treated.
    public let whenFull: Publishers.BufferingStrategy<Failure>

    /// Buffers the values of a publisher.
    @inlinable
    public init(
      upstream: Upstream, size: Int, prefetch: Publishers.PrefetchStrategy,
      whenFull: Publishers.BufferingStrategy<Failure>
    ) {
      self.upstream = upstream
      self.size = size
      self.prefetch = prefetch
      self.whenFull = whenFull
    }

    @inlinable
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.subscribe(
        BufferSubscriber(size: size, prefetch: prefetch, whenFull: whenFull, downstream: subscriber))
    }
  }
}

@usableFromInline
final class BufferSubscriber<Input, Failure, Downstream: Subscriber>: Subscriber, Subscription,
  SubscriptionAwaiting, OperatorPart
where Downstream.Input == Input, Downstream.Failure == Failure {
  /// The treatment of a value.
  @usableFromInline
  enum Outcome {
    case taken
    case overflow
    case ignored
  }

  @usableFromInline let size: Int
  @usableFromInline let prefetch: Publishers.PrefetchStrategy
  @usableFromInline let whenFull: Publishers.BufferingStrategy<Failure>

  @usableFromInline let lock = Lock()
  // Guarded by the lock.
  @usableFromInline @exclusivity(unchecked) var downstream: Downstream?
  @usableFromInline @exclusivity(unchecked) var upstream: (any Subscription)?
  @usableFromInline @exclusivity(unchecked) var isConnected = false
  @usableFromInline @exclusivity(unchecked) var isOpen = false  // downstream knows its subscription
  @usableFromInline @exclusivity(unchecked) var isDelivering = false
  @usableFromInline @exclusivity(unchecked) var values = RingBuffer<Input>()
  @usableFromInline @exclusivity(unchecked) var demand = Subscribers.Demand.none
  @usableFromInline @exclusivity(unchecked) var terminal: Subscribers.Completion<Failure>?
  /// A value did not fit: the failure waits until what is in the buffer has been delivered.
  @usableFromInline @exclusivity(unchecked) var isFailing = false

  @inlinable
  init(
    size: Int, prefetch: Publishers.PrefetchStrategy, whenFull: Publishers.BufferingStrategy<Failure>,
    downstream: Downstream
  ) {
    self.size = size
    self.prefetch = prefetch
    self.whenFull = whenFull
    unsafe self.downstream = downstream
  }

  @inlinable
  func receive(subscription: any Subscription) {
    var accepted: Downstream?
    lock.withLock {
      if unsafe !isConnected {
        unsafe isConnected = true
        unsafe upstream = subscription
        accepted = unsafe downstream
      }
    }
    guard let accepted else { return subscription.cancel() }
    switch prefetch {
    case .keepFull: if size > 0 { subscription.request(.max(size)) }
    case .byRequest: subscription.request(.unlimited)
    }
    accepted.receive(subscription: self)
    lock.withLock { unsafe isOpen = true }
    replenish(drain())
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    var dropped: Input?
    let outcome: Outcome = lock.withLock {
      if unsafe downstream == nil || !isConnected || isFailing { return .ignored }
      if case .failure = unsafe terminal { return .ignored }
      // Values within demand are being delivered; only the others count against the size.
      let requested = unsafe min(values.count, demand.max ?? values.count)
      if unsafe values.count - requested >= size {
        switch whenFull {
        case .dropNewest: return .taken
        case .dropOldest:
          if size == 0 { return .taken }
          dropped = unsafe values.remove(at: requested)
        case .customError:
          unsafe isFailing = true
          return .overflow
        }
      }
      unsafe values.append(input)
      return .taken
    }
    withExtendedLifetime(dropped) {}
    switch outcome {
    case .ignored:
      ignoreIfEarly(.valueBeforeSubscription)
      return .none
    case .overflow:
      failOnOverflow()
      return .none
    case .taken:
      let count = drain()
      return prefetch == .keepFull ? .max(count) : .none
    }
  }

  @inlinable
  func failOnOverflow() {
    guard case .customError(let makeError) = whenFull else { return }
    let error = makeError()
    var upstream: (any Subscription)?
    lock.withLock {
      unsafe terminal = .failure(error)
      unsafe swap(&upstream, &self.upstream)
    }
    upstream?.cancel()
    _ = drain()
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    var upstream: (any Subscription)?
    let isFirst = lock.withLock {
      guard unsafe isConnected, unsafe downstream != nil, unsafe terminal == nil, unsafe !isFailing else {
        return false
      }
      unsafe terminal = completion
      unsafe swap(&upstream, &self.upstream)
      return true
    }
    if isFirst {
      _ = drain()
    } else {
      ignoreIfEarly(.completionBeforeSubscription)
    }
  }

  @usableFromInline var isAwaitingSubscription: Bool {
    lock.withLock { unsafe !isConnected && downstream != nil }
  }

  @inlinable
  func request(_ demand: Subscribers.Demand) {
    lock.withLock { unsafe self.demand += demand }
    replenish(drain())
  }

  /// Asks upstream for as many values as were delivered.
  @inlinable
  func replenish(_ count: Int) {
    guard prefetch == .keepFull, count > 0 else { return }
    lock.withLock { unsafe upstream }?.request(.max(count))
  }

  /// Delivers what is in the buffer and asked for, then the completion if it is its turn.
  ///
  /// - Returns: How many values were delivered; 0 if another caller is delivering, which then delivers for this one as well.
  @inlinable
  func drain() -> Int {
    var count = 0
    let isOurs = lock.withLock {
      guard unsafe isOpen, unsafe !isDelivering else { return false }
      unsafe isDelivering = true
      return true
    }
    guard isOurs else { return 0 }
    var more = Subscribers.Demand.none
    while true {
      var value: Input?
      var completion: Subscribers.Completion<Failure>?
      var downstream: Downstream?
      lock.withLock {
        unsafe demand += more
        if unsafe demand > .none, unsafe !values.isEmpty, unsafe self.downstream != nil {
          unsafe demand -= 1
          value = unsafe values.popFirst()
          downstream = unsafe self.downstream
          return
        }
        unsafe isDelivering = false
        switch unsafe terminal {
        case .finished where unsafe demand > .none, .failure where unsafe !isFailing || values.isEmpty:
          completion = unsafe terminal
          unsafe swap(&downstream, &self.downstream)
        default: break
        }
      }
      guard let downstream else { return count }
      if let completion {
        downstream.receive(completion: completion)
        cancel()
        return count
      }
      if let value {
        more = downstream.receive(value)
        count += 1
      }
    }
  }

  @inlinable
  func cancel() {
    let (upstream, downstream, values) = lock.withLock {
      unsafe isConnected = true
      return unsafe (self.upstream.take(), self.downstream.take(), exchange(&self.values, with: RingBuffer()))
    }
    upstream?.cancel()
    withExtendedLifetime((downstream, values)) {}
  }

  @usableFromInline var description: String { "Buffer" }

  @usableFromInline var customMirror: Mirror {
    let (values, upstream, demand, terminal) = lock.withLock {
      unsafe (self.values.elements, self.upstream, self.demand, self.terminal)
    }
    return mirror(
      ("values", values), ("state", upstream as Any), ("downstreamDemand", demand),
      ("terminal", terminal as Any))
  }
}

extension Publisher {
  /// Keeps values that downstream has not asked for yet.
  ///
  /// A finish from upstream waits until everything in the buffer has been delivered and downstream asks for more.
  ///
  /// - Parameters:
  ///   - size: How many values are kept.
  ///   - prefetch: When to request values from upstream.
  ///   - whenFull: How a value that does not fit is treated.
  @inlinable
  public func buffer(
    size: Int, prefetch: Publishers.PrefetchStrategy, whenFull: Publishers.BufferingStrategy<Failure>
  ) -> Publishers.Buffer<Self> {
    Publishers.Buffer(upstream: self, size: size, prefetch: prefetch, whenFull: whenFull)
  }
}
