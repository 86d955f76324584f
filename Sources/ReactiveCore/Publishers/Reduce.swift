extension Publishers {
  /// Delivers what a function makes of all values, when upstream finishes.
  public struct Reduce<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
    public let upstream: Upstream
    /// What the first value is combined with.
    public let initial: Output
    /// Combines the result so far with a value.
    public let nextPartialResult: (Output, Upstream.Output) -> Output

    /// Builds the publisher from its parts.
    @inlinable
    public init(
      upstream: Upstream, initial: Output, nextPartialResult: @escaping (Output, Upstream.Output) -> Output
    ) {
      self.upstream = upstream
      self.initial = initial
      self.nextPartialResult = nextPartialResult
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: ReductionSubscriber(
          "Reduce", ReduceReduction<Upstream.Output, Output, Passing<Failure>>(initial, nextPartialResult),
          downstream: subscriber))
    }
  }
}

@usableFromInline
struct ReduceReduction<Input, Output, Errors: ErrorRule>: Reduction {
  @usableFromInline var value: Output
  @usableFromInline let combine: (Output, Input) throws -> Output

  @inlinable
  init(_ initial: Output, _ combine: @escaping (Output, Input) throws -> Output) {
    value = initial
    self.combine = combine
  }

  @inlinable var result: Output? { value }

  @inlinable
  mutating func receive(_ input: Input) throws -> ReductionStep {
    value = try combine(value, input)
    return .more
  }
}

extension Publisher {
  /// Delivers what a function makes of all values, when upstream finishes.
  ///
  /// - Parameters:
  ///   - initialResult: What the first value is combined with, and what is delivered for no values.
  ///   - nextPartialResult: Combines the result so far with a value.
  @inlinable
  public func reduce<T>(
    _ initialResult: T, _ nextPartialResult: @escaping (T, Output) -> T
  ) -> Publishers.Reduce<Self, T> {
    Publishers.Reduce(upstream: self, initial: initialResult, nextPartialResult: nextPartialResult)
  }
}
