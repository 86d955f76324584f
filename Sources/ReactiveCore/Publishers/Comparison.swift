extension Publishers {
  /// Delivers the one value that is before all others in some order, when upstream finishes.
  public struct Comparison<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether the second of two values is to take the place of the first.
    public let areInIncreasingOrder: (Upstream.Output, Upstream.Output) -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(
      upstream: Upstream, areInIncreasingOrder: @escaping (Upstream.Output, Upstream.Output) -> Bool
    ) {
      self.upstream = upstream
      self.areInIncreasingOrder = areInIncreasingOrder
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach(
        "Comparison", ComparisonReduction<Output, Passing<Failure>>(areInIncreasingOrder), to: subscriber)
    }
  }

  /// Delivers the one value that is before all others in some order, when upstream finishes, and fails if the function throws.
  public struct TryComparison<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether the second of two values is to take the place of the first.
    public let areInIncreasingOrder: (Upstream.Output, Upstream.Output) throws -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(
      upstream: Upstream, areInIncreasingOrder: @escaping (Upstream.Output, Upstream.Output) throws -> Bool
    ) {
      self.upstream = upstream
      self.areInIncreasingOrder = areInIncreasingOrder
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach(
        "TryComparison", ComparisonReduction<Output, Trying<Upstream.Failure>>(areInIncreasingOrder),
        to: subscriber)
    }
  }
}

@usableFromInline
struct ComparisonReduction<Input, Errors: ErrorRule>: Reduction {
  @usableFromInline var result: Input?
  @usableFromInline let isInOrder: (Input, Input) throws -> Bool

  @inlinable
  init(_ isInOrder: @escaping (Input, Input) throws -> Bool) { self.isInOrder = isInOrder }

  @inlinable
  mutating func receive(_ input: Input) throws -> ReductionStep {
    if let best = result, try !isInOrder(best, input) { return .more }
    result = input
    return .more
  }
}

extension Publisher where Output: Comparable {
  /// Delivers the greatest value when upstream finishes; the first of those that are equal.
  @inlinable
  public func max() -> Publishers.Comparison<Self> { max(by: <) }

  /// Delivers the least value when upstream finishes; the first of those that are equal.
  @inlinable
  public func min() -> Publishers.Comparison<Self> { min(by: <) }
}

extension Publisher {
  /// Delivers the greatest value when upstream finishes; the first of those that are equal.
  @inlinable
  public func max(
    by areInIncreasingOrder: @escaping (Output, Output) -> Bool
  ) -> Publishers.Comparison<Self> {
    Publishers.Comparison(upstream: self, areInIncreasingOrder: areInIncreasingOrder)
  }

  /// Delivers the least value when upstream finishes; the first of those that are equal.
  @inlinable
  public func min(
    by areInIncreasingOrder: @escaping (Output, Output) -> Bool
  ) -> Publishers.Comparison<Self> {
    Publishers.Comparison(upstream: self) { areInIncreasingOrder($1, $0) }
  }

  /// Delivers the greatest value when upstream finishes, and fails if the function throws; the first of those that are equal.
  @inlinable
  public func tryMax(
    by areInIncreasingOrder: @escaping (Output, Output) throws -> Bool
  ) -> Publishers.TryComparison<Self> {
    Publishers.TryComparison(upstream: self, areInIncreasingOrder: areInIncreasingOrder)
  }

  /// Delivers the least value when upstream finishes, and fails if the function throws; the first of those that are equal.
  @inlinable
  public func tryMin(
    by areInIncreasingOrder: @escaping (Output, Output) throws -> Bool
  ) -> Publishers.TryComparison<Self> {
    Publishers.TryComparison(upstream: self) { try areInIncreasingOrder($1, $0) }
  }
}
