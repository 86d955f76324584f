extension Publishers {
  /// Delivers a value if upstream finishes without one.
  public struct ReplaceEmpty<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The value delivered if there is no other.
    public let output: Upstream.Output
    /// Where the values come from.
    public let upstream: Upstream

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, output: Output) {
      self.upstream = upstream
      self.output = output
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let output = output
      let inner = SuccessionSubscriber<Output, Failure, Result<Output, Failure>.Publisher, S>(
        "ReplaceEmpty", downstream: subscriber, isReflecting: false,
        successor: { completion, isEmpty in
          if case .finished = completion, isEmpty {
            .next(Result.Publisher(.success(output)))
          } else {
            .end(completion)
          }
        })
      upstream.receive(subscriber: inner)
    }
  }
}

extension Publishers.ReplaceEmpty: Equatable where Upstream: Equatable, Upstream.Output: Equatable {}

extension Publishers.ReplaceEmpty: Sendable where Upstream: Sendable, Upstream.Output: Sendable {}

extension Publisher {
  /// Delivers a value if this publisher finishes without one. The value waits until it is asked for.
  ///
  /// Unlike Combine, which asks upstream for everything, this asks for exactly what downstream asks for.
  @inlinable
  public func replaceEmpty(with output: Output) -> Publishers.ReplaceEmpty<Self> {
    Publishers.ReplaceEmpty(upstream: self, output: output)
  }
}
