extension Publishers {
  /// Delivers whether some value is equal to a given one: true as soon as one is.
  public struct Contains<Upstream: Publisher>: Publisher where Upstream.Output: Equatable {
    public typealias Output = Bool
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
    public let upstream: Upstream
    /// The value looked for.
    public let output: Upstream.Output

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, output: Upstream.Output) {
      self.upstream = upstream
      self.output = output
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let output = output
      upstream.receive(
        subscriber: ReductionSubscriber(
          "Contains", QuestionReduction<Upstream.Output, Passing<Failure>>(decidedBy: true) { $0 == output },
          downstream: subscriber))
    }
  }
}

extension Publishers.Contains: Equatable where Upstream: Equatable {}

extension Publishers.Contains: Sendable where Upstream: Sendable, Upstream.Output: Sendable {}

extension Publisher where Output: Equatable {
  /// Delivers whether some value is equal to a given one: true as soon as one is, and cancels upstream then.
  @inlinable
  public func contains(_ output: Output) -> Publishers.Contains<Self> {
    Publishers.Contains(upstream: self, output: output)
  }
}
