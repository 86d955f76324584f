extension Publishers {
  /// Delivers the last value, if there is one, when upstream finishes.
  public struct Last<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
    public let upstream: Upstream

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream) {
      self.upstream = upstream
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: ReductionSubscriber(LastReduction<Output, Failure>(), downstream: subscriber))
    }
  }
}

extension Publishers.Last: Equatable where Upstream: Equatable {}

@usableFromInline
struct LastReduction<Input, Failure: Error>: Reduction {
  @usableFromInline typealias Output = Input
  @usableFromInline typealias UpstreamFailure = Failure

  @usableFromInline var result: Input?

  @inlinable
  init() {}

  @inlinable static var name: StaticString { "Last" }

  @inlinable
  mutating func receive(_ input: Input) -> ReductionStep {
    result = input
    return .more
  }
}

extension Publisher {
  /// Delivers the last value, if there is one, when upstream finishes.
  @inlinable
  public func last() -> Publishers.Last<Self> {
    Publishers.Last(upstream: self)
  }
}
