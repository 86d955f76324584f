extension Publishers {
  /// Turns the error of a publisher into another.
  public struct MapError<Upstream: Publisher, Failure: Error>: Publisher {
    public typealias Output = Upstream.Output

    /// The upstream publisher.
    public let upstream: Upstream
    /// Turns an error into another.
    public let transform: (Upstream.Failure) -> Failure

    /// Transforms the error of a publisher.
    @inlinable
    public init(upstream: Upstream, transform: @escaping (Upstream.Failure) -> Failure) {
      self.upstream = upstream
      self.transform = transform
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: MapErrorSubscriber<Output, Upstream.Failure, S>(
          "MapError", downstream: subscriber, transform: transform))
    }
  }

  /// Gives a publisher that cannot fail a failure type.
  public struct SetFailureType<Upstream: Publisher, Failure: Error>: Publisher
  where Upstream.Failure == Never {
    public typealias Output = Upstream.Output

    /// The upstream publisher.
    public let upstream: Upstream

    /// Changes the type of failure of a publisher.
    @inlinable
    public init(upstream: Upstream) { self.upstream = upstream }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: MapErrorSubscriber<Output, Never, S>(
          "SetFailureType", downstream: subscriber, transform: noError))
    }

    /// Changes the type of failure to another.
    @inlinable
    public func setFailureType<E: Error>(to failure: E.Type) -> Publishers.SetFailureType<Upstream, E> {
      Publishers.SetFailureType(upstream: upstream)
    }
  }
}

@usableFromInline
struct MapErrorSubscriber<Input, Failure: Error, Downstream: Subscriber>: PassThroughSubscriber, OperatorPart
where Downstream.Input == Input {
  @usableFromInline let name: StaticString
  @usableFromInline let transform: (Failure) -> Downstream.Failure
  @usableFromInline let downstream: Downstream
  @usableFromInline let combineIdentifier = CombineIdentifier()

  @inlinable
  init(_ name: StaticString, downstream: Downstream, transform: @escaping (Failure) -> Downstream.Failure) {
    self.name = name
    self.transform = transform
    self.downstream = downstream
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand { downstream.receive(input) }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    downstream.receive(completion: completion.mapError(transform))
  }

  @usableFromInline var description: String { name.description }
}

extension Publishers.SetFailureType: Equatable where Upstream: Equatable {}
extension Publishers.SetFailureType: Sendable where Upstream: Sendable {}

/// The transformation of an error that cannot be.
@usableFromInline
func noError<Failure>(_ error: Never) -> Failure {}

extension Publisher {
  /// Turns the error of this publisher into another.
  @inlinable
  public func mapError<E: Error>(_ transform: @escaping (Failure) -> E) -> Publishers.MapError<Self, E> {
    Publishers.MapError(upstream: self, transform: transform)
  }
}

extension Publisher where Failure == Never {
  /// Gives this publisher, which cannot fail, a failure type.
  @inlinable
  public func setFailureType<E: Error>(to failureType: E.Type) -> Publishers.SetFailureType<Self, E> {
    Publishers.SetFailureType(upstream: self)
  }
}
