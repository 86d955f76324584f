extension Publishers {
  /// Passes on what a function makes of each value, and fails if the function throws.
  public struct TryMap<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream
    /// Turns a value into another.
    public let transform: (Upstream.Output) throws -> Output

    /// Transforms the values of a publisher.
    @inlinable
    public init(upstream: Upstream, transform: @escaping (Upstream.Output) throws -> Output) {
      self.upstream = upstream
      self.transform = transform
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.receive(
        subscriber: StageSubscriber(
          "TryMap", TryMapStage<Upstream.Output, Output, Upstream.Failure>(transform), downstream: subscriber)
      )
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
struct TryMapStage<Input, Output, UpstreamFailure: Error>: Stage {
  @usableFromInline typealias Errors = Trying<UpstreamFailure>

  @usableFromInline let transform: (Input) throws -> Output

  @inlinable static var isReflecting: Bool { false }

  @inlinable
  init(_ transform: @escaping (Input) throws -> Output) {
    self.transform = transform
  }

  @inlinable
  func receive(_ input: Input) throws -> Verdict<Output> {
    .pass(try transform(input))
  }
}

extension Publisher {
  /// Passes on what a function makes of each value, and fails if the function throws.
  @inlinable
  public func tryMap<T>(_ transform: @escaping (Output) throws -> T) -> Publishers.TryMap<Self, T> {
    Publishers.TryMap(upstream: self, transform: transform)
  }
}
