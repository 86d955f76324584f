extension Publishers {
  /// Passes on the values that satisfy a predicate.
  public struct Filter<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether to pass a value on.
    public let isIncluded: (Upstream.Output) -> Bool

    /// Filters the values of a publisher.
    @inlinable
    public init(upstream: Upstream, isIncluded: @escaping (Upstream.Output) -> Bool) {
      self.upstream = upstream
      self.isIncluded = isIncluded
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(subscriber: FilterSubscriber<Output, Failure, S>(downstream: subscriber, isIncluded))
    }

    /// Passes on the values that satisfy this predicate as well.
    @inlinable
    public func filter(_ isIncluded: @escaping (Output) -> Bool) -> Publishers.Filter<Upstream> {
      let first = self.isIncluded
      return Publishers.Filter(upstream: upstream) { first($0) && isIncluded($0) }
    }

    /// Passes on the values that satisfy this predicate as well, which may throw.
    @inlinable
    public func tryFilter(_ isIncluded: @escaping (Output) throws -> Bool) -> Publishers.TryFilter<Upstream> {
      let first = self.isIncluded
      return Publishers.TryFilter(upstream: upstream) { try first($0) && isIncluded($0) }
    }
  }

  /// Passes on the values that satisfy a predicate, and fails if the predicate throws.
  public struct TryFilter<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether to pass a value on.
    public let isIncluded: (Upstream.Output) throws -> Bool

    /// Filters the values of a publisher.
    @inlinable
    public init(upstream: Upstream, isIncluded: @escaping (Upstream.Output) throws -> Bool) {
      self.upstream = upstream
      self.isIncluded = isIncluded
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach("TryFilter", TryFilterStage<Output, Upstream.Failure>(isIncluded), to: subscriber)
    }

    /// Passes on the values that satisfy this predicate as well.
    @inlinable
    public func filter(_ isIncluded: @escaping (Output) -> Bool) -> Publishers.TryFilter<Upstream> {
      tryFilter(isIncluded)
    }

    /// Passes on the values that satisfy this predicate as well, which may throw.
    @inlinable
    public func tryFilter(_ isIncluded: @escaping (Output) throws -> Bool) -> Publishers.TryFilter<Upstream> {
      let first = self.isIncluded
      return Publishers.TryFilter(upstream: upstream) { try first($0) && isIncluded($0) }
    }
  }
}

@usableFromInline
struct FilterSubscriber<Input, Failure, Downstream: Subscriber>: PassThroughSubscriber, OperatorPart
where Downstream.Input == Input, Downstream.Failure == Failure {
  @usableFromInline let isIncluded: (Input) -> Bool
  @usableFromInline let downstream: Downstream
  @usableFromInline let combineIdentifier = CombineIdentifier()

  @inlinable
  init(downstream: Downstream, _ isIncluded: @escaping (Input) -> Bool) {
    self.isIncluded = isIncluded
    self.downstream = downstream
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    isIncluded(input) ? downstream.receive(input) : .max(1)
  }

  @usableFromInline var description: String { "Filter" }
}

@usableFromInline
struct TryFilterStage<Input, UpstreamFailure: Error>: Stage {
  @usableFromInline typealias Errors = Trying<UpstreamFailure>

  @usableFromInline let isIncluded: (Input) throws -> Bool

  @inlinable
  init(_ isIncluded: @escaping (Input) throws -> Bool) { self.isIncluded = isIncluded }

  @inlinable
  func receive(_ input: Input) throws -> Verdict<Input> { try isIncluded(input) ? .pass(input) : .drop }
}

extension Publisher {
  /// Passes on the values that satisfy a predicate; asks for one more in place of each that does not.
  @inlinable
  public func filter(_ isIncluded: @escaping (Output) -> Bool) -> Publishers.Filter<Self> {
    Publishers.Filter(upstream: self, isIncluded: isIncluded)
  }

  /// Passes on the values that satisfy a predicate, and fails if the predicate throws.
  @inlinable
  public func tryFilter(_ isIncluded: @escaping (Output) throws -> Bool) -> Publishers.TryFilter<Self> {
    Publishers.TryFilter(upstream: self, isIncluded: isIncluded)
  }
}
