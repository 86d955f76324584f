extension Publishers {
  /// Passes on the values that differ from the one before.
  public struct RemoveDuplicates<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether the second of two values repeats the first.
    public let predicate: (Output, Output) -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output, Output) -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach(
        "RemoveDuplicates", RemoveDuplicatesStage<Output, Passing<Failure>>(predicate), to: subscriber)
    }
  }

  /// Passes on the values that differ from the one before, and fails if the predicate throws.
  public struct TryRemoveDuplicates<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether the second of two values repeats the first.
    public let predicate: (Output, Output) throws -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output, Output) throws -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.attach(
        "TryRemoveDuplicates", RemoveDuplicatesStage<Output, Trying<Upstream.Failure>>(predicate),
        to: subscriber)
    }
  }
}

@usableFromInline
struct RemoveDuplicatesStage<Input, Errors: ErrorRule>: Stage {
  @usableFromInline var last: Input?
  @usableFromInline let isDuplicate: (Input, Input) throws -> Bool

  @inlinable
  init(_ isDuplicate: @escaping (Input, Input) throws -> Bool) { self.isDuplicate = isDuplicate }

  @inlinable
  mutating func receive(_ input: Input) throws -> Verdict<Input> {
    if let last, try isDuplicate(last, input) { return .drop }
    last = input
    return .pass(input)
  }
}

extension Publisher where Output: Equatable {
  /// Passes on the values that are not equal to the one before; asks for one more in place of each that is.
  @inlinable
  public func removeDuplicates() -> Publishers.RemoveDuplicates<Self> { removeDuplicates(by: ==) }
}

extension Publisher {
  /// Passes on the values that do not repeat the last one passed on.
  ///
  /// - Parameter predicate: Returns whether the second of two values repeats the first.
  @inlinable
  public func removeDuplicates(
    by predicate: @escaping (Output, Output) -> Bool
  ) -> Publishers.RemoveDuplicates<Self> {
    Publishers.RemoveDuplicates(upstream: self, predicate: predicate)
  }

  /// Passes on the values that do not repeat the last one passed on, and fails if the predicate throws.
  ///
  /// - Parameter predicate: Returns whether the second of two values repeats the first.
  @inlinable
  public func tryRemoveDuplicates(
    by predicate: @escaping (Output, Output) throws -> Bool
  ) -> Publishers.TryRemoveDuplicates<Self> {
    Publishers.TryRemoveDuplicates(upstream: self, predicate: predicate)
  }
}
