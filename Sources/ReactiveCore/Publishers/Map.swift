extension Publishers {
  /// Passes on the result of a function of each value.
  public struct Map<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Turns a value into another.
    public let transform: (Upstream.Output) -> Output

    /// Transforms the values of a publisher.
    @inlinable
    public init(upstream: Upstream, transform: @escaping (Upstream.Output) -> Output) {
      self.upstream = upstream
      self.transform = transform
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: MapSubscriber<Upstream.Output, Failure, S>(
          "Map", downstream: subscriber, transform: transform))
    }

    /// Transforms further.
    @inlinable
    public func map<T>(_ transform: @escaping (Output) -> T) -> Publishers.Map<Upstream, T> {
      let first = self.transform
      return Publishers.Map<Upstream, T>(upstream: upstream) { transform(first($0)) }
    }

    /// Transforms further, with a function that may throw.
    @inlinable
    public func tryMap<T>(_ transform: @escaping (Output) throws -> T) -> Publishers.TryMap<Upstream, T> {
      let first = self.transform
      return Publishers.TryMap<Upstream, T>(upstream: upstream) { try transform(first($0)) }
    }
  }

  /// Passes on the result of a function of each value, and fails if the function throws.
  public struct TryMap<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// Turns a value into another.
    public let transform: (Upstream.Output) throws -> Output

    /// Transforms the values of a publisher.
    @inlinable
    public init(upstream: Upstream, transform: @escaping (Upstream.Output) throws -> Output) {
      self.upstream = upstream
      self.transform = transform
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach(
        "TryMap", TryMapStage<Upstream.Output, Output, Upstream.Failure>(transform), to: subscriber)
    }

    /// Transforms further.
    @inlinable
    public func map<T>(_ transform: @escaping (Output) -> T) -> Publishers.TryMap<Upstream, T> {
      tryMap(transform)
    }

    /// Transforms further, with a function that may throw.
    @inlinable
    public func tryMap<T>(_ transform: @escaping (Output) throws -> T) -> Publishers.TryMap<Upstream, T> {
      let first = self.transform
      return Publishers.TryMap<Upstream, T>(upstream: upstream) { try transform(first($0)) }
    }
  }
}

@usableFromInline
struct MapSubscriber<Input, Failure, Downstream: Subscriber>: PassThroughSubscriber, OperatorPart
where Downstream.Failure == Failure {
  @usableFromInline let name: StaticString
  @usableFromInline let transform: (Input) -> Downstream.Input
  @usableFromInline let downstream: Downstream
  @usableFromInline let combineIdentifier = CombineIdentifier()

  @inlinable
  init(_ name: StaticString, downstream: Downstream, transform: @escaping (Input) -> Downstream.Input) {
    self.name = name
    self.transform = transform
    self.downstream = downstream
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand { downstream.receive(transform(input)) }

  @usableFromInline var description: String { name.description }
}

@usableFromInline
struct TryMapStage<Input, Output, UpstreamFailure: Error>: Stage {
  @usableFromInline typealias Errors = Trying<UpstreamFailure>

  @usableFromInline let transform: (Input) throws -> Output

  @inlinable static var isReflecting: Bool { false }

  @inlinable
  init(_ transform: @escaping (Input) throws -> Output) { self.transform = transform }

  @inlinable
  func receive(_ input: Input) throws -> Verdict<Output> {
    .pass(try transform(input))
  }
}

extension Publisher {
  /// Passes on the result of a function of each value.
  @inlinable
  public func map<T>(_ transform: @escaping (Output) -> T) -> Publishers.Map<Self, T> {
    Publishers.Map(upstream: self, transform: transform)
  }

  /// Passes on the result of a function of each value, and fails if the function throws.
  @inlinable
  public func tryMap<T>(_ transform: @escaping (Output) throws -> T) -> Publishers.TryMap<Self, T> {
    Publishers.TryMap(upstream: self, transform: transform)
  }

  /// Passes on a value in place of each nil.
  @inlinable
  public func replaceNil<T>(with output: T) -> Publishers.Map<Self, T> where Output == T? {
    Publishers.Map(upstream: self) { $0 ?? output }
  }
}
