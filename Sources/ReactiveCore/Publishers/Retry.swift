extension Publishers {
  /// Subscribes to upstream again when it fails.
  public struct Retry<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// How often to subscribe again; nil, or a negative number, for as often as upstream fails.
    public let retries: Int?

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, retries: Int?) {
      self.upstream = upstream
      self.retries = retries
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: RetrySubscriber<Upstream, Output, Failure, S>(
          upstream, retries: retries, downstream: subscriber))
    }
  }
}

extension Publishers.Retry: Equatable where Upstream: Equatable {}
extension Publishers.Retry: Sendable where Upstream: Sendable {}

/// Subscribes again in a loop: a failure that comes while the loop runs is noted for it. So the stack does
/// not grow, however often upstream fails at once.
@usableFromInline
final class RetrySubscriber<Upstream: Publisher, Input, Failure, Downstream: Subscriber>: Subscriber,
  SubscriptionAwaiting, OperatorPart
where
  Upstream.Output == Input, Upstream.Failure == Failure, Downstream.Input == Input,
  Downstream.Failure == Failure
{
  @usableFromInline let downstream: Downstream
  @usableFromInline let link: SuccessionLink<Downstream>

  private let lock = Lock()
  private var upstream: Upstream?  // guarded by the lock; nil after the end
  private var remaining: Int?  // guarded by the lock
  private var isDownstreamAttached = false  // guarded by the lock
  private var isSubscribing = false  // guarded by the lock
  private var isSubscriptionDue = false  // guarded by the lock

  @usableFromInline
  init(_ upstream: Upstream, retries: Int?, downstream: Downstream) {
    self.upstream = upstream
    self.downstream = downstream
    if let retries, retries >= 0 { remaining = retries }
    link = SuccessionLink("Retry", acceptsNone: true)
  }

  @usableFromInline
  func receive(subscription: any Subscription) {
    guard link.connect(subscription) else { return }
    let isFirst = lock.withLock {
      defer { isDownstreamAttached = true }
      return !isDownstreamAttached
    }
    if isFirst { downstream.receive(subscription: link) }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard link.isAttached else {
      ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    link.spend()
    let more = downstream.receive(input)
    if more != .none { link.request(more) }
    return .none
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Failure>) {
    guard link.isAttached else {
      ignoreIfEarly(.completionBeforeSubscription)
      return
    }
    if case .failure = completion {
      guard link.advance() else { return }
      if takeRetry() {
        resubscribe()
        return
      }
    }
    _ = lock.withLock { upstream.take() }
    if link.end().wasOpen { downstream.receive(completion: completion) }
  }

  @usableFromInline var isAwaitingSubscription: Bool { !link.isAttached && !link.isEnded }

  private func takeRetry() -> Bool {
    lock.withLock {
      guard let remaining else { return true }
      self.remaining = Swift.max(0, remaining - 1)
      return remaining > 0
    }
  }

  private func resubscribe() {
    var next: Upstream?
    lock.withLock {
      if isSubscribing {
        isSubscriptionDue = true
      } else {
        isSubscribing = true
        next = upstream
      }
    }
    while let upstream = next {
      next = nil
      if !link.isEnded { upstream.subscribe(self) }
      var released: Upstream?
      lock.withLock {
        if link.isEnded { swap(&released, &self.upstream) }
        if isSubscriptionDue { next = self.upstream }
        isSubscriptionDue = false
        isSubscribing = next != nil
      }
      withExtendedLifetime(released) {}
    }
  }

  @usableFromInline var description: String { "Retry" }
}

extension Publisher {
  /// Subscribes to this publisher again when it fails.
  ///
  /// Demand that it hasn't met by then is requested again. When it fails once more after the last time, the stream fails with that
  /// error. However often it fails, the stack does not grow. Unlike in Combine, a value that was not asked for does not stop the
  /// program.
  ///
  /// - Parameter retries: How often to subscribe again; with 0, never; with a negative number, as often as it fails.
  @inlinable
  public func retry(_ retries: Int) -> Publishers.Retry<Self> {
    Publishers.Retry(upstream: self, retries: retries)
  }
}
