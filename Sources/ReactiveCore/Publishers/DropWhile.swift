extension Publishers {
  /// Passes on the values from the first that does not satisfy a predicate.
  public struct DropWhile<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
    public let upstream: Upstream
    /// Says whether to go on dropping.
    public let predicate: (Output) -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output) -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      upstream.receive(
        subscriber: StageSubscriber(
          "DropWhile", DropWhileStage<Output, Passing<Failure>>(predicate), downstream: subscriber))
    }
  }
}

@usableFromInline
struct DropWhileStage<Input, Errors: ErrorRule>: Stage {
  @usableFromInline var isDropping = true
  @usableFromInline let predicate: (Input) throws -> Bool

  @inlinable static var isReflecting: Bool { false }

  @inlinable
  init(_ predicate: @escaping (Input) throws -> Bool) {
    self.predicate = predicate
  }

  @inlinable
  mutating func receive(_ input: Input) throws -> Verdict<Input> {
    if isDropping {
      if try predicate(input) { return .drop }
      isDropping = false
    }
    return .pass(input)
  }
}

extension Publisher {
  /// Drops values for as long as they satisfy a predicate, which is not asked again after that.
  @inlinable
  public func drop(
    while predicate: @escaping (Output) -> Bool
  ) -> Publishers.DropWhile<Self> {
    Publishers.DropWhile(upstream: self, predicate: predicate)
  }
}
