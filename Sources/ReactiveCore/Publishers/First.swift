extension Publishers {
  /// Delivers the first value, if there is one, and cancels upstream then.
  public struct First<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream) { self.upstream = upstream }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach("First", EdgeReduction<Output, Passing<Failure>>(.done), to: subscriber)
    }
  }

  /// Delivers the first value that satisfies a predicate, if there is one.
  public struct FirstWhere<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether a value satisfies the predicate.
    public let predicate: (Output) -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output) -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach("TryFirst", SearchReduction<Output, Passing<Failure>>(.done, predicate), to: subscriber)
    }
  }

  /// Delivers the first value that satisfies a predicate, if there is one, and fails if the function throws.
  public struct TryFirstWhere<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether a value satisfies the predicate.
    public let predicate: (Output) throws -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output) throws -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach(
        "TryFirstWhere", SearchReduction<Output, Trying<Upstream.Failure>>(.done, predicate), to: subscriber)
    }
  }

  /// Delivers the last value, if there is one, when upstream finishes.
  public struct Last<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream) { self.upstream = upstream }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach("Last", EdgeReduction<Output, Passing<Failure>>(.more), to: subscriber)
    }
  }

  /// Delivers the last value that satisfies a predicate, if there is one, when upstream finishes.
  public struct LastWhere<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether a value satisfies the predicate.
    public let predicate: (Output) -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output) -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach(
        "LastWhere", SearchReduction<Output, Passing<Failure>>(.more, predicate), to: subscriber)
    }
  }

  /// Delivers the last value that satisfies a predicate, if there is one, when upstream finishes, and fails if the function throws.
  public struct TryLastWhere<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether a value satisfies the predicate.
    public let predicate: (Output) throws -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output) throws -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach(
        "TryLastWhere", SearchReduction<Output, Trying<Upstream.Failure>>(.more, predicate), to: subscriber)
    }
  }
}

extension Publishers.First: Equatable where Upstream: Equatable {}
extension Publishers.First: Sendable where Upstream: Sendable {}
extension Publishers.Last: Equatable where Upstream: Equatable {}
extension Publishers.Last: Sendable where Upstream: Sendable {}

/// Keeps the value at one edge of a stream: the first, or the last.
@usableFromInline
struct EdgeReduction<Input, Errors: ErrorRule>: Reduction {
  @usableFromInline var result: Input?
  @usableFromInline let step: ReductionStep

  /// - Parameter step: `.done` for the first value, `.more` for the last.
  @inlinable init(_ step: ReductionStep) { self.step = step }

  @inlinable
  mutating func receive(_ input: Input) -> ReductionStep {
    result = input
    return step
  }
}

/// Looks for a value that satisfies a predicate.
@usableFromInline
struct SearchReduction<Input, Errors: ErrorRule>: Reduction {
  @usableFromInline var result: Input?
  @usableFromInline let step: ReductionStep
  @usableFromInline let predicate: (Input) throws -> Bool

  /// - Parameter step: What follows a match: `.done` for the first, `.more` for the last.
  @inlinable
  init(_ step: ReductionStep, _ predicate: @escaping (Input) throws -> Bool) {
    self.step = step
    self.predicate = predicate
  }

  @inlinable
  mutating func receive(_ input: Input) throws -> ReductionStep {
    guard try predicate(input) else { return .more }
    result = input
    return step
  }
}

extension Publisher {
  /// Delivers the first value, if there is one, and cancels upstream then.
  ///
  /// When upstream finishes without a value, so does the stream, without waiting for demand.
  @inlinable
  public func first() -> Publishers.First<Self> { Publishers.First(upstream: self) }

  /// Delivers the first value that satisfies a predicate, if there is one.
  ///
  /// Without a result the stream finishes at once. Unlike Combine, it does not wait for demand when upstream has sent values of
  /// which none is the result.
  @inlinable
  public func first(where predicate: @escaping (Output) -> Bool) -> Publishers.FirstWhere<Self> {
    Publishers.FirstWhere(upstream: self, predicate: predicate)
  }

  /// Delivers the first value that satisfies a predicate, if there is one, and fails if the function throws.
  ///
  /// Without a result the stream finishes at once. Unlike Combine, it does not wait for demand when upstream has sent values of
  /// which none is the result.
  @inlinable
  public func tryFirst(where predicate: @escaping (Output) throws -> Bool) -> Publishers.TryFirstWhere<Self> {
    Publishers.TryFirstWhere(upstream: self, predicate: predicate)
  }

  /// Delivers the last value, if there is one, when upstream finishes.
  ///
  /// When upstream finishes without a value, so does the stream, without waiting for demand.
  @inlinable
  public func last() -> Publishers.Last<Self> { Publishers.Last(upstream: self) }

  /// Delivers the last value that satisfies a predicate, if there is one, when upstream finishes.
  ///
  /// Without a result the stream finishes at once. Unlike Combine, it does not wait for demand when upstream has sent values of
  /// which none is the result.
  @inlinable
  public func last(where predicate: @escaping (Output) -> Bool) -> Publishers.LastWhere<Self> {
    Publishers.LastWhere(upstream: self, predicate: predicate)
  }

  /// Delivers the last value that satisfies a predicate, if there is one, when upstream finishes, and fails if the function throws.
  ///
  /// Without a result the stream finishes at once. Unlike Combine, it does not wait for demand when upstream has sent values of
  /// which none is the result.
  @inlinable
  public func tryLast(where predicate: @escaping (Output) throws -> Bool) -> Publishers.TryLastWhere<Self> {
    Publishers.TryLastWhere(upstream: self, predicate: predicate)
  }
}
