extension Publishers {
  /// Passes on values for as long as they satisfy a predicate, then finishes.
  public struct PrefixWhile<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// Where the values come from.
    public let upstream: Upstream
    /// Says whether to go on.
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
          "PrefixWhile", PrefixWhileStage<Output, Passing<Failure>>(predicate), downstream: subscriber))
    }
  }
}

@usableFromInline
struct PrefixWhileStage<Input, Errors: ErrorRule>: Stage {
  @usableFromInline let predicate: (Input) throws -> Bool

  @inlinable
  init(_ predicate: @escaping (Input) throws -> Bool) {
    self.predicate = predicate
  }

  @inlinable
  func receive(_ input: Input) throws -> Verdict<Input> {
    try predicate(input) ? .pass(input) : .finish
  }
}

extension Publisher {
  /// Passes on values for as long as they satisfy a predicate, then cancels upstream and finishes.
  @inlinable
  public func prefix(
    while predicate: @escaping (Output) -> Bool
  ) -> Publishers.PrefixWhile<Self> {
    Publishers.PrefixWhile(upstream: self, predicate: predicate)
  }
}
