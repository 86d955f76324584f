extension Publishers {
  /// Passes on values for as long as they satisfy a predicate, then finishes, and fails if the predicate throws.
  public struct TryPrefixWhile<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream
    /// Says whether to go on.
    public let predicate: (Output) throws -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output) throws -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.receive(
        subscriber: StageSubscriber(
          "TryPrefixWhile", PrefixWhileStage<Output, Trying<Upstream.Failure>>(predicate),
          downstream: subscriber))
    }
  }
}

extension Publisher {
  /// Passes on values for as long as they satisfy a predicate, then cancels upstream and finishes, and fails if the predicate throws.
  @inlinable
  public func tryPrefix(
    while predicate: @escaping (Output) throws -> Bool
  ) -> Publishers.TryPrefixWhile<Self> {
    Publishers.TryPrefixWhile(upstream: self, predicate: predicate)
  }
}
