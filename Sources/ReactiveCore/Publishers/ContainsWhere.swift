extension Publishers {
  /// Delivers whether some value satisfies a predicate: true as soon as one does.
  public struct ContainsWhere<Upstream: Publisher>: Publisher {
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
          ContainsWhereReduction<Upstream.Output, Failure>(predicate), downstream: subscriber))
    }
  }
}

@usableFromInline
struct ContainsWhereReduction<Input, Failure: Error>: Reduction {
  @usableFromInline typealias UpstreamFailure = Failure

  @usableFromInline var isSo = false
  @usableFromInline let predicate: (Input) -> Bool

  @inlinable
  init(_ predicate: @escaping (Input) -> Bool) {
    self.predicate = predicate
  }

  @inlinable var result: Bool? { isSo }

  @inlinable static var name: StaticString { "ContainsWhere" }

  @inlinable
  mutating func receive(_ input: Input) -> ReductionStep {
    guard predicate(input) else { return .more }
    isSo = true
    return .done
  }
}

extension Publisher {
  /// Delivers whether some value satisfies a predicate: true as soon as one does, and cancels upstream then.
  @inlinable
  public func contains(
    where predicate: @escaping (Output) -> Bool
  ) -> Publishers.ContainsWhere<Self> {
    Publishers.ContainsWhere(upstream: self, predicate: predicate)
  }
}
