extension Publishers {
  /// Passes on the values of the publisher that upstream has delivered last.
  public struct SwitchToLatest<P: Publisher, Upstream: Publisher>: Publisher
  where Upstream.Output == P, Upstream.Failure == P.Failure {
    public typealias Output = P.Output
    public typealias Failure = P.Failure

    /// The upstream publisher, which delivers publishers.
    public let upstream: Upstream

    /// Follows the latest of the publishers that come from a publisher.
    @inlinable
    public init(upstream: Upstream) { self.upstream = upstream }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let inner = SwitchToLatestSubscriber<P, Failure, S>(downstream: subscriber)
      subscriber.receive(subscription: inner)
      upstream.receive(subscriber: inner)
    }
  }
}

extension Publishers.SwitchToLatest: Equatable where Upstream: Equatable {}
extension Publishers.SwitchToLatest: Sendable where Upstream: Sendable {}

/// The subscriber of a publisher while it is the latest.
@usableFromInline
struct NestedSubscriber<Nested: Publisher, Input, Failure, Downstream: Subscriber>: Subscriber, OperatorPart
where
  Nested.Output == Input, Nested.Failure == Failure, Downstream.Input == Input, Downstream.Failure == Failure
{
  @usableFromInline typealias Parent = SwitchToLatestSubscriber<Nested, Failure, Downstream>

  @usableFromInline let parent: Parent
  @usableFromInline let number: UInt64
  @usableFromInline let combineIdentifier = CombineIdentifier()

  @inlinable
  init(parent: Parent, number: UInt64) {
    self.parent = parent
    self.number = number
  }

  @inlinable
  func receive(subscription: any Subscription) { parent.connect(subscription, number: number) }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand { parent.receive(input, number: number) }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) { parent.complete(completion, number: number) }

  @usableFromInline var description: String { "SwitchToLatest" }

  @usableFromInline var customMirror: Mirror { mirror(("parentSubscription", parent.combineIdentifier)) }
}

extension Publisher where Output: Publisher, Output.Failure == Failure {
  /// Passes on the values of the publisher that this one has delivered last; cancels the one before.
  ///
  /// Finishes when this publisher and the last of its publishers have finished; fails, and cancels what is under way, when either fails. Demand
  /// that isn't met when a new publisher arrives is requested from the new one. Values may come from several threads; downstream gets one at a
  /// time. Unlike in Combine, what downstream asks for while it gets a value of a publisher that has just been replaced is asked of the new one,
  /// and is not lost.
  @inlinable
  public func switchToLatest() -> Publishers.SwitchToLatest<Output, Self> {
    Publishers.SwitchToLatest(upstream: self)
  }
}

extension Publisher where Output: Publisher, Failure == Never {
  /// Passes on the values of the publisher that this one, which cannot fail, has delivered last.
  @inlinable
  public func switchToLatest()
    -> Publishers.SwitchToLatest<Output, Publishers.SetFailureType<Self, Output.Failure>>
  {
    Publishers.SwitchToLatest(upstream: setFailureType(to: Output.Failure.self))
  }
}

extension Publisher where Output: Publisher, Failure == Never, Output.Failure == Never {
  /// Passes on the values of the publisher that this one has delivered last. None can fail.
  @inlinable
  public func switchToLatest() -> Publishers.SwitchToLatest<Output, Self> {
    Publishers.SwitchToLatest(upstream: self)
  }
}

extension Publisher where Output: Publisher, Output.Failure == Never {
  /// Passes on the values of the publisher that this one has delivered last. The publishers that it delivers cannot fail.
  @inlinable
  public func switchToLatest()
    -> Publishers.SwitchToLatest<
      Publishers.SetFailureType<Output, Failure>,
      Publishers.Map<Self, Publishers.SetFailureType<Output, Failure>>
    >
  {
    let failure = Failure.self
    return Publishers.SwitchToLatest(
      upstream: Publishers.Map(upstream: self) { $0.setFailureType(to: failure) })
  }
}
