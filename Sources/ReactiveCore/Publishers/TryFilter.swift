extension Publishers {
  /// Passes on the values that satisfy a predicate, and fails if the predicate throws.
  public struct TryFilter<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream
    /// Says whether to pass a value on.
    public let isIncluded: (Upstream.Output) throws -> Bool

    /// Filters the values of a publisher.
    @inlinable
    public init(upstream: Upstream, isIncluded: @escaping (Upstream.Output) throws -> Bool) {
      self.upstream = upstream
      self.isIncluded = isIncluded
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.receive(
        subscriber: StageSubscriber(
          "TryFilter", FilterStage<Output, Trying<Upstream.Failure>>(isIncluded), downstream: subscriber))
    }

    /// Passes on the values that satisfy this predicate as well.
    @inlinable
    public func filter(_ isIncluded: @escaping (Output) -> Bool) -> Publishers.TryFilter<Upstream> {
      tryFilter(isIncluded)
    }

    /// Passes on the values that satisfy this predicate as well, which may throw.
    @inlinable
    public func tryFilter(_ isIncluded: @escaping (Output) throws -> Bool) -> Publishers.TryFilter<Upstream> {
      let first = self.isIncluded
      return Publishers.TryFilter(upstream: upstream) { try first($0) && isIncluded($0) }
    }
  }
}

extension Publisher {
  /// Passes on the values that satisfy a predicate, and fails if the predicate throws.
  @inlinable
  public func tryFilter(_ isIncluded: @escaping (Output) throws -> Bool) -> Publishers.TryFilter<Self> {
    Publishers.TryFilter(upstream: self, isIncluded: isIncluded)
  }
}
