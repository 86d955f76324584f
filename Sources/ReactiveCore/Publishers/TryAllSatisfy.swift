extension Publishers {
  /// Delivers whether all values satisfy a predicate: false as soon as one does not, and fails if the function throws.
  public struct TryAllSatisfy<Upstream: Publisher>: Publisher {
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
          "TryAllSatisfy",
          QuestionReduction<Upstream.Output, Trying<Upstream.Failure>>(decidedBy: false, predicate),
          downstream: subscriber))
    }
  }
}

extension Publisher {
  /// Delivers whether all values satisfy a predicate: false as soon as one does not, and cancels upstream then, and fails if the function throws.
  @inlinable
  public func tryAllSatisfy(
    _ predicate: @escaping (Output) throws -> Bool
  ) -> Publishers.TryAllSatisfy<Self> {
    Publishers.TryAllSatisfy(upstream: self, predicate: predicate)
  }
}
