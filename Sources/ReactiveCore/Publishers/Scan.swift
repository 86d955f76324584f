extension Publishers {
  /// Passes on the running result of a function over the values so far.
  public struct Scan<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// The value to combine the first value with.
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

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: ScanSubscriber<Upstream.Output, Failure, S>(
          initialResult, nextPartialResult, downstream: subscriber))
    }
  }

  /// Passes on the running result of a function over the values so far, and fails if the function throws.
  public struct TryScan<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// The value to combine the first value with.
    public let initialResult: Output
    /// Combines the result so far with a value.
    public let nextPartialResult: (Output, Upstream.Output) throws -> Output

    /// Builds the publisher from its parts.
    @inlinable
    public init(
      upstream: Upstream, initialResult: Output,
      nextPartialResult: @escaping (Output, Upstream.Output) throws -> Output
    ) {
      self.upstream = upstream
      self.initialResult = initialResult
      self.nextPartialResult = nextPartialResult
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach(
        "TryScan", TryScanStage<Upstream.Output, Output, Upstream.Failure>(initialResult, nextPartialResult),
        to: subscriber)
    }
  }
}

@usableFromInline
final class ScanSubscriber<Input, Failure, Downstream: Subscriber>: PassThroughSubscriber, OperatorPart
where Downstream.Failure == Failure {
  @usableFromInline let downstream: Downstream
  @usableFromInline let combine: (Downstream.Input, Input) -> Downstream.Input
  @usableFromInline @exclusivity(unchecked) var result: Downstream.Input  // used by one value at a time

  @inlinable
  init(
    _ initial: Downstream.Input, _ combine: @escaping (Downstream.Input, Input) -> Downstream.Input,
    downstream: Downstream
  ) {
    unsafe result = initial
    self.combine = combine
    self.downstream = downstream
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    unsafe result = unsafe combine(result, input)
    return unsafe downstream.receive(result)
  }

  @usableFromInline var description: String { "Scan" }

  @usableFromInline var customMirror: Mirror {
    unsafe mirror(("downstream", downstream as Any), ("result", result as Any))
  }
}

@usableFromInline
struct TryScanStage<Input, Output, UpstreamFailure: Error>: Stage {
  @usableFromInline typealias Errors = Trying<UpstreamFailure>

  @usableFromInline var result: Output
  @usableFromInline let combine: (Output, Input) throws -> Output

  @inlinable static var isReflecting: Bool { false }

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
  ///   - initialResult: The value to combine the first value with; not passed on itself.
  ///   - nextPartialResult: Combines the result so far with a value.
  @inlinable
  public func scan<T>(
    _ initialResult: T, _ nextPartialResult: @escaping (T, Output) -> T
  ) -> Publishers.Scan<Self, T> {
    Publishers.Scan(upstream: self, initialResult: initialResult, nextPartialResult: nextPartialResult)
  }

  /// Passes on the running result of a function over the values so far, and fails if the function throws.
  ///
  /// - Parameters:
  ///   - initialResult: The value to combine the first value with; not passed on itself.
  ///   - nextPartialResult: Combines the result so far with a value.
  @inlinable
  public func tryScan<T>(
    _ initialResult: T, _ nextPartialResult: @escaping (T, Output) throws -> T
  ) -> Publishers.TryScan<Self, T> {
    Publishers.TryScan(upstream: self, initialResult: initialResult, nextPartialResult: nextPartialResult)
  }
}
