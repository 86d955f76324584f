extension Publishers {
  /// Drops the first values.
  public struct Drop<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// How many are dropped.
    public let count: Int

    /// Drops the first values of a publisher.
    ///
    /// - Parameters:
    ///   - upstream: The upstream publisher.
    ///   - count: How many are dropped; not negative.
    @inlinable
    public init(upstream: Upstream, count: Int) {
      self.upstream = upstream
      self.count = count
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let inner = DropSubscriber<Output, Failure, S>(count, downstream: subscriber)
      subscriber.receive(subscription: inner.link)
      upstream.receive(subscriber: inner)
    }
  }
}

extension Publishers.Drop: Equatable where Upstream: Equatable {}
extension Publishers.Drop: Sendable where Upstream: Sendable {}

/// Known downstream before upstream: demand requested in between is added to the count of values to drop.
@usableFromInline
final class DropSubscriber<Input, Failure, Downstream: Subscriber>: Subscriber, OperatorPart
where Downstream.Input == Input, Downstream.Failure == Failure {
  @usableFromInline let downstream: Downstream
  @usableFromInline let link: UpstreamLink<Downstream>
  @usableFromInline @exclusivity(unchecked) var remaining: Int  // used by one value at a time

  @usableFromInline
  init(_ count: Int, downstream: Downstream) {
    precondition(count >= 0, "count must not be negative")
    unsafe remaining = count
    self.downstream = downstream
    link = UpstreamLink("Drop", downstream: downstream, isReflecting: false)
  }

  @usableFromInline
  func receive(subscription: any Subscription) {
    _ = unsafe link.connect(subscription, requesting: .max(remaining))
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard link.isOpen else { return .none }
    if unsafe remaining > 0 {
      unsafe remaining -= 1
      return .none
    }
    return downstream.receive(input)
  }

  @usableFromInline
  func receive(completion: Subscribers.Completion<Failure>) {
    if link.complete() { downstream.receive(completion: completion) }
  }

  @usableFromInline var description: String { "Drop" }
}

extension Publisher {
  /// Drops the first values. Asks upstream for them by itself.
  ///
  /// - Parameter count: How many are dropped; not negative.
  @inlinable
  public func dropFirst(_ count: Int = 1) -> Publishers.Drop<Self> {
    Publishers.Drop(upstream: self, count: count)
  }
}
