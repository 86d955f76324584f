extension Publishers {
  /// Delivers whether some value is equal to a given one: true as soon as one is.
  public struct Contains<Upstream: Publisher>: Publisher where Upstream.Output: Equatable {
    public typealias Output = Bool
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// The value looked for.
    public let output: Upstream.Output

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, output: Upstream.Output) {
      self.upstream = upstream
      self.output = output
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let output = output
      upstream.attach(
        "Contains", QuestionReduction<Upstream.Output, Passing<Failure>>(decidedBy: true) { $0 == output },
        to: subscriber)
    }
  }

  /// Delivers whether some value satisfies a predicate: true as soon as one does.
  public struct ContainsWhere<Upstream: Publisher>: Publisher {
    public typealias Output = Bool
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether a value satisfies the predicate.
    public let predicate: (Upstream.Output) -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Upstream.Output) -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach(
        "ContainsWhere", QuestionReduction<Upstream.Output, Passing<Failure>>(decidedBy: true, predicate),
        to: subscriber)
    }
  }

  /// Delivers whether some value satisfies a predicate: true as soon as one does, and fails if the function throws.
  public struct TryContainsWhere<Upstream: Publisher>: Publisher {
    public typealias Output = Bool
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether a value satisfies the predicate.
    public let predicate: (Upstream.Output) throws -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Upstream.Output) throws -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach(
        "TryContainsWhere",
        QuestionReduction<Upstream.Output, Trying<Upstream.Failure>>(decidedBy: true, predicate),
        to: subscriber)
    }
  }

  /// Delivers whether all values satisfy a predicate: false as soon as one does not.
  public struct AllSatisfy<Upstream: Publisher>: Publisher {
    public typealias Output = Bool
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether a value satisfies the predicate.
    public let predicate: (Upstream.Output) -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Upstream.Output) -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach(
        "AllSatisfy", QuestionReduction<Upstream.Output, Passing<Failure>>(decidedBy: false, predicate),
        to: subscriber)
    }
  }

  /// Delivers whether all values satisfy a predicate: false as soon as one does not, and fails if the function throws.
  public struct TryAllSatisfy<Upstream: Publisher>: Publisher {
    public typealias Output = Bool
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether a value satisfies the predicate.
    public let predicate: (Upstream.Output) throws -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Upstream.Output) throws -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach(
        "TryAllSatisfy",
        QuestionReduction<Upstream.Output, Trying<Upstream.Failure>>(decidedBy: false, predicate),
        to: subscriber)
    }
  }
}

extension Publishers.Contains: Equatable where Upstream: Equatable {}
extension Publishers.Contains: Sendable where Upstream: Sendable, Upstream.Output: Sendable {}

/// Delivers whether the answer to a predicate was once, or was never, a certain one.
@usableFromInline
struct QuestionReduction<Input, Errors: ErrorRule>: Reduction {
  @usableFromInline let decisive: Bool
  @usableFromInline var result: Bool?
  @usableFromInline let predicate: (Input) throws -> Bool

  /// - Parameter decisive: The answer that decides, and is the result then. Without it the result is the other one.
  @inlinable
  init(decidedBy decisive: Bool, _ predicate: @escaping (Input) throws -> Bool) {
    self.decisive = decisive
    self.predicate = predicate
    result = !decisive
  }

  @inlinable
  mutating func receive(_ input: Input) throws -> ReductionStep {
    guard try predicate(input) == decisive else { return .more }
    result = decisive
    return .done
  }
}

extension Publisher where Output: Equatable {
  /// Delivers whether some value is equal to a given one: true as soon as one is, and cancels upstream then.
  @inlinable
  public func contains(_ output: Output) -> Publishers.Contains<Self> {
    Publishers.Contains(upstream: self, output: output)
  }
}

extension Publisher {
  /// Delivers whether some value satisfies a predicate: true as soon as one does, and cancels upstream then.
  @inlinable
  public func contains(where predicate: @escaping (Output) -> Bool) -> Publishers.ContainsWhere<Self> {
    Publishers.ContainsWhere(upstream: self, predicate: predicate)
  }

  /// Delivers whether some value satisfies a predicate: true as soon as one does, and cancels upstream then, and fails if the function throws.
  @inlinable
  public func tryContains(
    where predicate: @escaping (Output) throws -> Bool
  ) -> Publishers.TryContainsWhere<Self> {
    Publishers.TryContainsWhere(upstream: self, predicate: predicate)
  }

  /// Delivers whether all values satisfy a predicate: false as soon as one does not, and cancels upstream then.
  @inlinable
  public func allSatisfy(_ predicate: @escaping (Output) -> Bool) -> Publishers.AllSatisfy<Self> {
    Publishers.AllSatisfy(upstream: self, predicate: predicate)
  }

  /// Delivers whether all values satisfy a predicate: false as soon as one does not, and cancels upstream then, and fails if the function throws.
  @inlinable
  public func tryAllSatisfy(
    _ predicate: @escaping (Output) throws -> Bool
  ) -> Publishers.TryAllSatisfy<Self> {
    Publishers.TryAllSatisfy(upstream: self, predicate: predicate)
  }
}
