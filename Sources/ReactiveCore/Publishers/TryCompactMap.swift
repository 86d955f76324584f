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
        subscriber: StageSubscriber(
          "TryCompactMap", CompactMapStage<Upstream.Output, Output, Trying<Upstream.Failure>>(transform),
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

extension Publisher {
  /// Passes on what a function makes of each value, unless that is nil, and fails if the function throws.
  @inlinable
  public func tryCompactMap<T>(
    _ transform: @escaping (Output) throws -> T?
  ) -> Publishers.TryCompactMap<Self, T> {
    Publishers.TryCompactMap(upstream: self, transform: transform)
  }
}
