extension Publishers {
  /// Delivers the number of values when upstream finishes.
  public struct Count<Upstream: Publisher>: Publisher {
    public typealias Output = Int
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
        subscriber: ReductionSubscriber(
          "Count", CountReduction<Upstream.Output, Passing<Failure>>(), downstream: subscriber))
    }
  }
}

extension Publishers.Count: Equatable where Upstream: Equatable {}

extension Publishers.Count: Sendable where Upstream: Sendable {}

@usableFromInline
struct CountReduction<Input, Errors: ErrorRule>: Reduction {
  @usableFromInline var count = 0

  @inlinable
  init() {}

  @inlinable var result: Int? { count }

  @inlinable
  mutating func receive(_ input: Input) -> ReductionStep {
    count += 1
    return .more
  }
}

extension Publisher {
  /// Delivers the number of values when upstream finishes. Asks upstream for everything.
  @inlinable
  public func count() -> Publishers.Count<Self> {
    Publishers.Count(upstream: self)
  }
}
