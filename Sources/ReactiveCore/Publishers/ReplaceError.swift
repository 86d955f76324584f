extension Publishers {
  /// Delivers a value in place of an error, then finishes.
  public struct ReplaceError<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Never

    /// The value delivered in place of an error.
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
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Never {
      let output = output
      let inner = SuccessionSubscriber<Output, Upstream.Failure, Just<Output>, S>(
        "ReplaceError", downstream: subscriber, waitsForUpstream: false, isReflecting: false,
        successor: { completion, _ in
          switch completion {
          case .finished: .end(.finished)
          case .failure: .next(Just(output))
          }
        })
      upstream.receive(subscriber: inner)
      inner.announce()
    }
  }
}

extension Publishers.ReplaceError: Equatable where Upstream: Equatable, Upstream.Output: Equatable {}

extension Publishers.ReplaceError: Sendable where Upstream: Sendable, Upstream.Output: Sendable {}

extension Publisher {
  /// Delivers a value in place of an error, then finishes.
  ///
  /// The value waits until it is asked for, if no values are by the time of the error. Unlike Combine, a completion is delivered
  /// after the subscription only.
  @inlinable
  public func replaceError(with output: Output) -> Publishers.ReplaceError<Self> {
    Publishers.ReplaceError(upstream: self, output: output)
  }
}
