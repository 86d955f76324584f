extension Publishers {
  /// Passes on the values from the first that does not satisfy a predicate, and fails if the predicate throws.
  public struct TryDropWhile<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream
    /// Says whether to go on dropping.
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
          "TryDropWhile", DropWhileStage<Output, Trying<Upstream.Failure>>(predicate), downstream: subscriber)
      )
    }
  }
}

extension Publisher {
  /// Drops values for as long as they satisfy a predicate, which is not asked again after that, and fails if the predicate throws.
  @inlinable
  public func tryDrop(
    while predicate: @escaping (Output) throws -> Bool
  ) -> Publishers.TryDropWhile<Self> {
    Publishers.TryDropWhile(upstream: self, predicate: predicate)
  }
}
