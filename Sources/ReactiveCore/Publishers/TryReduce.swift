extension Publishers {
  /// Delivers what a function makes of all values, when upstream finishes, and fails if the function throws.
  public struct TryReduce<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream
    /// What the first value is combined with.
    public let initial: Output
    /// Combines the result so far with a value.
    public let nextPartialResult: (Output, Upstream.Output) throws -> Output

    /// Builds the publisher from its parts.
    @inlinable
    public init(
      upstream: Upstream, initial: Output,
      nextPartialResult: @escaping (Output, Upstream.Output) throws -> Output
    ) {
      self.upstream = upstream
      self.initial = initial
      self.nextPartialResult = nextPartialResult
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.receive(
        subscriber: ReductionSubscriber(
          "TryReduce",
          ReduceReduction<Upstream.Output, Output, Trying<Upstream.Failure>>(initial, nextPartialResult),
          downstream: subscriber))
    }
  }
}

extension Publisher {
  /// Delivers what a function makes of all values, when upstream finishes, and fails if the function throws.
  ///
  /// - Parameters:
  ///   - initialResult: What the first value is combined with, and what is delivered for no values.
  ///   - nextPartialResult: Combines the result so far with a value.
  @inlinable
  public func tryReduce<T>(
    _ initialResult: T, _ nextPartialResult: @escaping (T, Output) throws -> T
  ) -> Publishers.TryReduce<Self, T> {
    Publishers.TryReduce(upstream: self, initial: initialResult, nextPartialResult: nextPartialResult)
  }
}
