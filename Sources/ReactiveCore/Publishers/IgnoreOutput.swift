extension Publishers {
  /// Passes on the completion and none of the values.
  public struct IgnoreOutput<Upstream: Publisher>: Publisher {
    public typealias Output = Never
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
          "IgnoreOutput", IgnoreOutputReduction<Upstream.Output, Passing<Failure>>(), downstream: subscriber))
    }
  }
}

extension Publishers.IgnoreOutput: Equatable where Upstream: Equatable {}

extension Publishers.IgnoreOutput: Sendable where Upstream: Sendable {}

@usableFromInline
struct IgnoreOutputReduction<Input, Errors: ErrorRule>: Reduction {
  @usableFromInline typealias Output = Never

  @inlinable
  init() {}

  @inlinable var result: Never? { nil }

  @inlinable
  func receive(_ input: Input) -> ReductionStep {
    .more
  }
}

extension Publisher {
  /// Passes on the completion and none of the values. Asks upstream for everything.
  @inlinable
  public func ignoreOutput() -> Publishers.IgnoreOutput<Self> {
    Publishers.IgnoreOutput(upstream: self)
  }
}
