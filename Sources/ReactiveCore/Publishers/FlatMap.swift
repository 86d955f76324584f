extension Publishers {
  /// Makes a publisher of each value and passes on what all of them deliver.
  public struct FlatMap<NewPublisher: Publisher, Upstream: Publisher>: Publisher
  where NewPublisher.Failure == Upstream.Failure {
    public typealias Output = NewPublisher.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// How many publishers may be under way at a time.
    public let maxPublishers: Subscribers.Demand
    /// Makes a publisher of a value.
    public let transform: (Upstream.Output) -> NewPublisher

    /// Builds the publisher from its parts.
    @inlinable
    public init(
      upstream: Upstream, maxPublishers: Subscribers.Demand,
      transform: @escaping (Upstream.Output) -> NewPublisher
    ) {
      self.upstream = upstream
      self.maxPublishers = maxPublishers
      self.transform = transform
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let inner = FlatMapSubscriber<Upstream.Output, Failure, NewPublisher, S>(
        maxPublishers: maxPublishers, transform: transform, downstream: subscriber)
      subscriber.receive(subscription: inner)
      upstream.receive(subscriber: inner)
    }
  }
}

/// The subscriber of a child.
@usableFromInline
struct FlatMapChildSubscriber<OuterInput, Input, Failure, Child: Publisher, Downstream: Subscriber>:
  Subscriber, OperatorPart
where
  Child.Output == Input, Child.Failure == Failure, Downstream.Input == Input, Downstream.Failure == Failure
{
  @usableFromInline typealias Parent = FlatMapSubscriber<OuterInput, Failure, Child, Downstream>

  @usableFromInline let parent: Parent
  @usableFromInline let key: ChildKey

  // The place belongs to one child at a time. A number drawn for each child would cost more than handing over its value.
  @usableFromInline var combineIdentifier: CombineIdentifier { unsafe CombineIdentifier(address: key.place) }

  @inlinable
  init(parent: Parent, key: ChildKey) {
    self.parent = parent
    self.key = key
  }

  @inlinable
  func receive(subscription: any Subscription) { parent.receive(subscription: subscription, from: key) }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand { parent.receive(input, from: key) }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    parent.receive(completion: completion, from: key)
  }

  @usableFromInline var description: String { "FlatMap" }

  @usableFromInline var customMirror: Mirror { mirror(("parentSubscription", parent.combineIdentifier)) }
}

// Forms of `flatMap` in which this publisher or those it is turned into cannot fail.

extension Publisher {
  /// Makes a publisher of each value and passes on what all of them deliver, in the order in which it comes.
  ///
  /// Finishes when upstream and all of them have finished; fails, and cancels the others and upstream, when one fails.
  ///
  /// - Parameters:
  ///   - maxPublishers: The maximum number of concurrent publishers. The operator requests as many values from upstream, and another one when
  ///     a publisher has finished and its values have been delivered.
  ///   - transform: Makes a publisher of a value.
  @inlinable
  public func flatMap<P: Publisher>(
    maxPublishers: Subscribers.Demand = .unlimited, _ transform: @escaping (Output) -> P
  ) -> Publishers.FlatMap<P, Self> where P.Failure == Failure {
    Publishers.FlatMap(upstream: self, maxPublishers: maxPublishers, transform: transform)
  }

  /// Makes a publisher, which cannot fail, of each value and passes on what all of them deliver.
  @inlinable
  public func flatMap<P: Publisher>(
    maxPublishers: Subscribers.Demand = .unlimited, _ transform: @escaping (Output) -> P
  ) -> Publishers.FlatMap<Publishers.SetFailureType<P, Failure>, Self> where P.Failure == Never {
    let failure = Failure.self
    return Publishers.FlatMap(upstream: self, maxPublishers: maxPublishers) {
      transform($0).setFailureType(to: failure)
    }
  }
}

extension Publisher where Failure == Never {
  /// Makes a publisher, which may fail, of each value and passes on what all of them deliver.
  @inlinable
  public func flatMap<P: Publisher>(
    maxPublishers: Subscribers.Demand = .unlimited, _ transform: @escaping (Output) -> P
  ) -> Publishers.FlatMap<P, Publishers.SetFailureType<Self, P.Failure>> {
    Publishers.FlatMap(
      upstream: setFailureType(to: P.Failure.self), maxPublishers: maxPublishers, transform: transform)
  }

  /// Makes a publisher, which cannot fail either, of each value and passes on what all of them deliver.
  @inlinable
  public func flatMap<P: Publisher>(
    maxPublishers: Subscribers.Demand = .unlimited, _ transform: @escaping (Output) -> P
  ) -> Publishers.FlatMap<P, Self> where P.Failure == Never {
    Publishers.FlatMap(upstream: self, maxPublishers: maxPublishers, transform: transform)
  }
}
