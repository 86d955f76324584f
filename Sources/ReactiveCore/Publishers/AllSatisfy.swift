extension Publishers {
  /// Delivers whether all values satisfy a predicate: false as soon as one does not.
  public struct AllSatisfy<Upstream: Publisher>: Publisher {
    public typealias Output = Bool
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
    public let upstream: Upstream
    /// What is asked of each value.
    public let predicate: (Upstream.Output) -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Upstream.Output) -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: ReductionSubscriber(
          "AllSatisfy", QuestionReduction<Upstream.Output, Passing<Failure>>(decidedBy: false, predicate),
          downstream: subscriber))
    }
  }
}

extension Publisher {
  /// Delivers whether all values satisfy a predicate: false as soon as one does not, and cancels upstream then.
  @inlinable
  public func allSatisfy(
    _ predicate: @escaping (Output) -> Bool
  ) -> Publishers.AllSatisfy<Self> {
    Publishers.AllSatisfy(upstream: self, predicate: predicate)
  }
}
