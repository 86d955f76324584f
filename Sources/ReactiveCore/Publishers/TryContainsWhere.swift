extension Publishers {
  /// Delivers whether some value satisfies a predicate: true as soon as one does, and fails if the function throws.
  public struct TryContainsWhere<Upstream: Publisher>: Publisher {
    public typealias Output = Bool
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream
    /// What is asked of each value.
    public let predicate: (Upstream.Output) throws -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Upstream.Output) throws -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.receive(
        subscriber: ReductionSubscriber(
          "TryContainsWhere",
          QuestionReduction<Upstream.Output, Trying<Upstream.Failure>>(decidedBy: true, predicate),
          downstream: subscriber))
    }
  }
}

extension Publisher {
  /// Delivers whether some value satisfies a predicate: true as soon as one does, and cancels upstream then, and fails if the function throws.
  @inlinable
  public func tryContains(
    where predicate: @escaping (Output) throws -> Bool
  ) -> Publishers.TryContainsWhere<Self> {
    Publishers.TryContainsWhere(upstream: self, predicate: predicate)
  }
}
