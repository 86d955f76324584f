extension Publishers {
  /// Turns the error of a publisher into another.
  public struct MapError<Upstream: Publisher, Failure: Error>: Publisher {
    public typealias Output = Upstream.Output

    /// Where the values come from.
    public let upstream: Upstream
    /// Turns an error into another.
    public let transform: (Upstream.Failure) -> Failure

    /// Transforms the error of a publisher.
    @inlinable
    public init(upstream: Upstream, transform: @escaping (Upstream.Failure) -> Failure) {
      self.upstream = upstream
      self.transform = transform
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: MapErrorSubscriber<Output, Upstream.Failure, S>(transform, downstream: subscriber))
    }
  }
}

@usableFromInline
struct MapErrorSubscriber<Input, Failure: Error, Downstream: Subscriber>: Subscriber, OperatorPart
where Downstream.Input == Input {
  @usableFromInline let transform: (Failure) -> Downstream.Failure
  @usableFromInline let downstream: Downstream
  @usableFromInline let combineIdentifier = CombineIdentifier()

  @inlinable
  init(_ transform: @escaping (Failure) -> Downstream.Failure, downstream: Downstream) {
    self.transform = transform
    self.downstream = downstream
  }

  @inlinable
  func receive(subscription: any Subscription) {
    downstream.receive(subscription: subscription)
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    downstream.receive(input)
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    downstream.receive(completion: completion.mapError(transform))
  }

  @usableFromInline var description: String { "MapError" }
}

extension Publisher {
  /// Turns the error of this publisher into another.
  @inlinable
  public func mapError<E: Error>(_ transform: @escaping (Failure) -> E) -> Publishers.MapError<Self, E> {
    Publishers.MapError(upstream: self, transform: transform)
  }
}
