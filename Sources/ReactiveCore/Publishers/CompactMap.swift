extension Publishers {
  /// Passes on the result of a function of each value, unless that is nil.
  public struct CompactMap<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Turns a value into another, or nil.
    public let transform: (Upstream.Output) -> Output?

    /// Transforms the values of a publisher.
    @inlinable
    public init(upstream: Upstream, transform: @escaping (Upstream.Output) -> Output?) {
      self.upstream = upstream
      self.transform = transform
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: CompactMapSubscriber<Upstream.Output, Failure, S>(downstream: subscriber, transform))
    }

    /// Transforms further.
    @inlinable
    public func compactMap<T>(_ transform: @escaping (Output) -> T?) -> Publishers.CompactMap<Upstream, T> {
      let first = self.transform
      return Publishers.CompactMap<Upstream, T>(upstream: upstream) { first($0).flatMap(transform) }
    }

    /// Transforms further.
    @inlinable
    public func map<T>(_ transform: @escaping (Output) -> T) -> Publishers.CompactMap<Upstream, T> {
      let first = self.transform
      return Publishers.CompactMap<Upstream, T>(upstream: upstream) { first($0).map(transform) }
    }
  }

  /// Passes on the result of a function of each value, unless that is nil, and fails if the function throws.
  public struct TryCompactMap<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// Turns a value into another, or nil.
    public let transform: (Upstream.Output) throws -> Output?

    /// Transforms the values of a publisher.
    @inlinable
    public init(upstream: Upstream, transform: @escaping (Upstream.Output) throws -> Output?) {
      self.upstream = upstream
      self.transform = transform
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach(
        "TryCompactMap", TryCompactMapStage<Upstream.Output, Output, Upstream.Failure>(transform),
        to: subscriber)
    }

    /// Transforms further.
    @inlinable
    public func compactMap<T>(
      _ transform: @escaping (Output) throws -> T?
    ) -> Publishers.TryCompactMap<Upstream, T> {
      let first = self.transform
      return Publishers.TryCompactMap<Upstream, T>(upstream: upstream) { try first($0).flatMap(transform) }
    }
  }
}

@usableFromInline
struct CompactMapSubscriber<Input, Failure, Downstream: Subscriber>: PassThroughSubscriber, OperatorPart
where Downstream.Failure == Failure {
  @usableFromInline let transform: (Input) -> Downstream.Input?
  @usableFromInline let downstream: Downstream
  @usableFromInline let combineIdentifier = CombineIdentifier()

  @inlinable
  init(downstream: Downstream, _ transform: @escaping (Input) -> Downstream.Input?) {
    self.transform = transform
    self.downstream = downstream
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    if let output = transform(input) { downstream.receive(output) } else { .max(1) }
  }

  @usableFromInline var description: String { "CompactMap" }
}

@usableFromInline
struct TryCompactMapStage<Input, Output, UpstreamFailure: Error>: Stage {
  @usableFromInline typealias Errors = Trying<UpstreamFailure>

  @usableFromInline let transform: (Input) throws -> Output?

  @inlinable
  init(_ transform: @escaping (Input) throws -> Output?) { self.transform = transform }

  @inlinable
  func receive(_ input: Input) throws -> Verdict<Output> {
    if let output = try transform(input) { .pass(output) } else { .drop }
  }
}

extension Publisher {
  /// Passes on the result of a function of each value, unless that is nil; asks for one more value in place of each nil.
  @inlinable
  public func compactMap<T>(_ transform: @escaping (Output) -> T?) -> Publishers.CompactMap<Self, T> {
    Publishers.CompactMap(upstream: self, transform: transform)
  }

  /// Passes on the result of a function of each value, unless that is nil, and fails if the function throws.
  @inlinable
  public func tryCompactMap<T>(
    _ transform: @escaping (Output) throws -> T?
  ) -> Publishers.TryCompactMap<Self, T> {
    Publishers.TryCompactMap(upstream: self, transform: transform)
  }
}
