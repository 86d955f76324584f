extension Publishers {
  /// Passes on what a function makes of each value, unless that is nil, and fails if the function throws.
  public struct TryCompactMap<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream
    /// Turns a value into another, or nil.
    public let transform: (Upstream.Output) throws -> Output?

    /// Transforms the values of a publisher.
    @inlinable
    public init(upstream: Upstream, transform: @escaping (Upstream.Output) throws -> Output?) {
      self.upstream = upstream
      self.transform = transform
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.receive(
        subscriber:
          StageSubscriber(
            TryCompactMapStage<Upstream.Output, Output, Upstream.Failure>(transform: transform),
            downstream: subscriber))
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
struct TryCompactMapStage<Input, Output, UpstreamFailure: Error>: Stage {
  @usableFromInline typealias Failure = any Error

  @usableFromInline let transform: (Input) throws -> Output?

  @inlinable
  init(transform: @escaping (Input) throws -> Output?) {
    self.transform = transform
  }

  @inlinable static var name: StaticString { "TryCompactMap" }

  @inlinable
  func receive(_ input: Input) -> Verdict<Output, any Error> {
    do {
      return if let output = try transform(input) { .pass(output) } else { .drop }
    } catch {
      return .fail(error)
    }
  }

  @inlinable
  func convert(_ failure: UpstreamFailure) -> any Error { failure }
}

extension Publisher {
  /// Passes on what a function makes of each value, unless that is nil, and fails if the function throws.
  @inlinable
  public func tryCompactMap<T>(
    _ transform: @escaping (Output) throws -> T?
  ) -> Publishers.TryCompactMap<Self, T> {
    Publishers.TryCompactMap(upstream: self, transform: transform)
  }
}
