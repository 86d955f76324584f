extension Publishers {
  /// Delivers the first value that satisfies a predicate, if there is one, and fails if the function throws.
  public struct TryFirstWhere<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream
    /// What is asked of each value.
    public let predicate: (Output) throws -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output) throws -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.receive(
        subscriber: ReductionSubscriber(
          "TryFirstWhere", SearchReduction<Output, Trying<Upstream.Failure>>(.done, predicate),
          downstream: subscriber))
    }
  }
}

extension Publisher {
  /// Delivers the first value that satisfies a predicate, if there is one, and fails if the function throws.
  ///
  /// Without a result the stream finishes at once. Unlike Combine, it does not wait for demand when upstream has sent values of
  /// which none is the result.
  @inlinable
  public func tryFirst(
    where predicate: @escaping (Output) throws -> Bool
  ) -> Publishers.TryFirstWhere<Self> {
    Publishers.TryFirstWhere(upstream: self, predicate: predicate)
  }
}
