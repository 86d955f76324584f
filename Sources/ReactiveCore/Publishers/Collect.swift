extension Publishers {
  /// Delivers all values of a publisher as one array, when it finishes.
  public struct Collect<Upstream: Publisher>: Publisher {
    public typealias Output = [Upstream.Output]
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
    public let upstream: Upstream

    /// Collects the values of a publisher.
    @inlinable
    public init(upstream: Upstream) {
      self.upstream = upstream
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: ReductionSubscriber(
          "Collect", CollectReduction<Upstream.Output, Passing<Failure>>(), downstream: subscriber))
    }
  }
}

extension Publishers.Collect: Equatable where Upstream: Equatable {}

extension Publishers.Collect: Sendable where Upstream: Sendable {}

@usableFromInline
struct CollectReduction<Input, Errors: ErrorRule>: Reduction {
  @usableFromInline var values: [Input] = []

  @inlinable
  init() {}

  @inlinable var result: [Input]? { values }

  @inlinable
  mutating func receive(_ input: Input) -> ReductionStep {
    values.append(input)
    return .more
  }
}

extension Publisher {
  /// Delivers all values as one array when upstream finishes; nothing if it fails. Asks upstream for everything.
  @inlinable
  public func collect() -> Publishers.Collect<Self> {
    Publishers.Collect(upstream: self)
  }
}
