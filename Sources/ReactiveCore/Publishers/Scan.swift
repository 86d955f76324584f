extension Publishers {
  /// Passes on the running result of a function over the values so far.
  public struct Scan<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
    public let upstream: Upstream
    /// What the first value is combined with.
    public let initialResult: Output
    /// Combines the result so far with a value.
    public let nextPartialResult: (Output, Upstream.Output) -> Output

    /// Builds the publisher from its parts.
    @inlinable
    public init(
      upstream: Upstream, initialResult: Output,
      nextPartialResult: @escaping (Output, Upstream.Output) -> Output
    ) {
      self.upstream = upstream
      self.initialResult = initialResult
      self.nextPartialResult = nextPartialResult
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: StageSubscriber(
          "Scan", ScanStage<Upstream.Output, Output, Passing<Failure>>(initialResult, nextPartialResult),
          downstream: subscriber))
    }
  }
}

@usableFromInline
struct ScanStage<Input, Output, Errors: ErrorRule>: Stage {
  @usableFromInline var result: Output
  @usableFromInline let combine: (Output, Input) throws -> Output

  @inlinable
  init(_ initial: Output, _ combine: @escaping (Output, Input) throws -> Output) {
    result = initial
    self.combine = combine
  }

  @inlinable
  mutating func receive(_ input: Input) throws -> Verdict<Output> {
    result = try combine(result, input)
    return .pass(result)
  }
}

extension Publisher {
  /// Passes on the running result of a function over the values so far.
  ///
  /// - Parameters:
  ///   - initialResult: What the first value is combined with; not passed on itself.
  ///   - nextPartialResult: Combines the result so far with a value.
  @inlinable
  public func scan<T>(
    _ initialResult: T, _ nextPartialResult: @escaping (T, Output) -> T
  ) -> Publishers.Scan<Self, T> {
    Publishers.Scan(upstream: self, initialResult: initialResult, nextPartialResult: nextPartialResult)
  }
}
