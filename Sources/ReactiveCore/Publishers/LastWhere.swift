extension Publishers {
  /// Delivers the last value that satisfies a predicate, if there is one, when upstream finishes.
  public struct LastWhere<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
    public let upstream: Upstream
    /// What is asked of each value.
    public let predicate: (Output) -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output) -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: ReductionSubscriber(
          "LastWhere", SearchReduction<Output, Passing<Failure>>(.more, predicate), downstream: subscriber))
    }
  }
}

extension Publisher {
  /// Delivers the last value that satisfies a predicate, if there is one, when upstream finishes.
  ///
  /// Without a result the stream finishes at once. Unlike Combine, it does not wait for demand when upstream has sent values of
  /// which none is the result.
  @inlinable
  public func last(
    where predicate: @escaping (Output) -> Bool
  ) -> Publishers.LastWhere<Self> {
    Publishers.LastWhere(upstream: self, predicate: predicate)
  }
}
