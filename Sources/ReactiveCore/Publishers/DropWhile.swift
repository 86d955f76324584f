extension Publishers {
  /// Passes on the values from the first that does not satisfy a predicate.
  public struct DropWhile<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether to continue dropping.
    public let predicate: (Output) -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output) -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach("DropWhile", DropWhileStage<Output, Passing<Failure>>(predicate), to: subscriber)
    }
  }

  /// Passes on the values from the first that does not satisfy a predicate, and fails if the predicate throws.
  public struct TryDropWhile<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether to continue dropping.
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
        "TryDropWhile", DropWhileStage<Output, Trying<Upstream.Failure>>(predicate), to: subscriber)
    }
  }

  /// Passes on values for as long as they satisfy a predicate, then finishes.
  public struct PrefixWhile<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether to continue.
    public let predicate: (Output) -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output) -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.attach("PrefixWhile", PrefixWhileStage<Output, Passing<Failure>>(predicate), to: subscriber)
    }
  }

  /// Passes on values for as long as they satisfy a predicate, then finishes, and fails if the predicate throws.
  public struct TryPrefixWhile<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// The upstream publisher.
    public let upstream: Upstream
    /// Returns whether to continue.
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
        "TryPrefixWhile", PrefixWhileStage<Output, Trying<Upstream.Failure>>(predicate), to: subscriber)
    }
  }
}

@usableFromInline
struct DropWhileStage<Input, Errors: ErrorRule>: Stage {
  @usableFromInline var isDropping = true
  @usableFromInline let predicate: (Input) throws -> Bool

  @inlinable static var isReflecting: Bool { false }

  @inlinable
  init(_ predicate: @escaping (Input) throws -> Bool) { self.predicate = predicate }

  @inlinable
  mutating func receive(_ input: Input) throws -> Verdict<Input> {
    if isDropping {
      if try predicate(input) { return .drop }
      isDropping = false
    }
    return .pass(input)
  }
}

@usableFromInline
struct PrefixWhileStage<Input, Errors: ErrorRule>: Stage {
  @usableFromInline let predicate: (Input) throws -> Bool

  @inlinable
  init(_ predicate: @escaping (Input) throws -> Bool) { self.predicate = predicate }

  @inlinable
  func receive(_ input: Input) throws -> Verdict<Input> { try predicate(input) ? .pass(input) : .finish }
}

extension Publisher {
  /// Drops values for as long as they satisfy a predicate, which is not asked again after that.
  @inlinable
  public func drop(while predicate: @escaping (Output) -> Bool) -> Publishers.DropWhile<Self> {
    Publishers.DropWhile(upstream: self, predicate: predicate)
  }

  /// Drops values for as long as they satisfy a predicate, which is not asked again after that, and fails if the predicate throws.
  @inlinable
  public func tryDrop(while predicate: @escaping (Output) throws -> Bool) -> Publishers.TryDropWhile<Self> {
    Publishers.TryDropWhile(upstream: self, predicate: predicate)
  }

  /// Passes on values for as long as they satisfy a predicate, then cancels upstream and finishes.
  @inlinable
  public func prefix(while predicate: @escaping (Output) -> Bool) -> Publishers.PrefixWhile<Self> {
    Publishers.PrefixWhile(upstream: self, predicate: predicate)
  }

  /// Passes on values for as long as they satisfy a predicate, then cancels upstream and finishes, and fails if the predicate throws.
  @inlinable
  public func tryPrefix(
    while predicate: @escaping (Output) throws -> Bool
  ) -> Publishers.TryPrefixWhile<Self> {
    Publishers.TryPrefixWhile(upstream: self, predicate: predicate)
  }
}
