extension Publishers {
  /// Delivers the result of a function of all values, when upstream finishes.
  public struct Reduce<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// The value to combine the first value with.
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

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach(
        "Reduce", ReduceReduction<Upstream.Output, Output, Passing<Failure>>(initial, nextPartialResult),
        to: subscriber)
    }
  }

  /// Delivers the result of a function of all values, when upstream finishes, and fails if the function throws.
  public struct TryReduce<Upstream: Publisher, Output>: Publisher {
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// The value to combine the first value with.
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

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach(
        "TryReduce",
        ReduceReduction<Upstream.Output, Output, Trying<Upstream.Failure>>(initial, nextPartialResult),
        to: subscriber)
    }
  }

  /// Delivers all values of a publisher as one array, when it finishes.
  public struct Collect<Upstream: Publisher>: Publisher {
    public typealias Output = [Upstream.Output]
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream

    /// Collects the values of a publisher.
    @inlinable
    public init(upstream: Upstream) { self.upstream = upstream }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach("Collect", CollectReduction<Upstream.Output, Passing<Failure>>(), to: subscriber)
    }
  }

  /// Delivers the number of values when upstream finishes.
  public struct Count<Upstream: Publisher>: Publisher {
    public typealias Output = Int
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream) { self.upstream = upstream }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach("Count", CountReduction<Upstream.Output, Passing<Failure>>(), to: subscriber)
    }
  }

  /// Passes on the completion and none of the values.
  public struct IgnoreOutput<Upstream: Publisher>: Publisher {
    public typealias Output = Never
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream) { self.upstream = upstream }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: IgnoreOutputSubscriber<Upstream.Output, Failure, S>(downstream: subscriber))
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

extension Publishers.Collect: Equatable where Upstream: Equatable {}
extension Publishers.Collect: Sendable where Upstream: Sendable {}

@usableFromInline
struct CollectReduction<Input, Errors: ErrorRule>: Reduction {
  @usableFromInline var values: [Input] = []

  @inlinable init() {}

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
  public func collect() -> Publishers.Collect<Self> { Publishers.Collect(upstream: self) }
}

extension Publishers.Count: Equatable where Upstream: Equatable {}
extension Publishers.Count: Sendable where Upstream: Sendable {}

@usableFromInline
struct CountReduction<Input, Errors: ErrorRule>: Reduction {
  @usableFromInline var count = 0

  @inlinable init() {}

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
  public func count() -> Publishers.Count<Self> { Publishers.Count(upstream: self) }
}

extension Publishers.IgnoreOutput: Equatable where Upstream: Equatable {}
extension Publishers.IgnoreOutput: Sendable where Upstream: Sendable {}

@usableFromInline
struct IgnoreOutputSubscriber<Input, Failure, Downstream: Subscriber>: PassThroughSubscriber, OperatorPart
where Downstream.Failure == Failure {
  @usableFromInline let downstream: Downstream
  @usableFromInline let combineIdentifier = CombineIdentifier()

  @inlinable
  init(downstream: Downstream) { self.downstream = downstream }

  @inlinable
  func receive(subscription: any Subscription) {
    downstream.receive(subscription: subscription)
    subscription.request(.unlimited)
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand { .none }

  @usableFromInline var description: String { "IgnoreOutput" }
}

extension Publisher {

  /// Passes on the completion and none of the values. Asks upstream for everything.
  @inlinable
  public func ignoreOutput() -> Publishers.IgnoreOutput<Self> { Publishers.IgnoreOutput(upstream: self) }
}

extension Publisher {
  /// Delivers the result of a function of all values, when upstream finishes.
  ///
  /// - Parameters:
  ///   - initialResult: The value to combine the first value with, and the result if there are no values.
  ///   - nextPartialResult: Combines the result so far with a value.
  @inlinable
  public func reduce<T>(
    _ initialResult: T, _ nextPartialResult: @escaping (T, Output) -> T
  ) -> Publishers.Reduce<Self, T> {
    Publishers.Reduce(upstream: self, initial: initialResult, nextPartialResult: nextPartialResult)
  }

  /// Delivers the result of a function of all values, when upstream finishes, and fails if the function throws.
  ///
  /// - Parameters:
  ///   - initialResult: The value to combine the first value with, and the result if there are no values.
  ///   - nextPartialResult: Combines the result so far with a value.
  @inlinable
  public func tryReduce<T>(
    _ initialResult: T, _ nextPartialResult: @escaping (T, Output) throws -> T
  ) -> Publishers.TryReduce<Self, T> {
    Publishers.TryReduce(upstream: self, initial: initialResult, nextPartialResult: nextPartialResult)
  }
}
