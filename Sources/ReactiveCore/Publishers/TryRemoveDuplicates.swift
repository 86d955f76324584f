extension Publishers {
  /// Passes on the values that differ from the one before, and fails if the predicate throws.
  public struct TryRemoveDuplicates<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// Where the values come from.
    public let upstream: Upstream
    /// Says whether the second of two values repeats the first.
    public let predicate: (Output, Output) throws -> Bool

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, predicate: @escaping (Output, Output) throws -> Bool) {
      self.upstream = upstream
      self.predicate = predicate
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      upstream.receive(
        subscriber: StageSubscriber(
          "TryRemoveDuplicates", RemoveDuplicatesStage<Output, Trying<Upstream.Failure>>(predicate),
          downstream: subscriber))
    }
  }
}

extension Publisher {
  /// Passes on the values that do not repeat the last one passed on, and fails if the predicate throws.
  ///
  /// - Parameter predicate: Says whether the second of two values repeats the first.
  @inlinable
  public func tryRemoveDuplicates(
    by predicate: @escaping (Output, Output) throws -> Bool
  ) -> Publishers.TryRemoveDuplicates<Self> {
    Publishers.TryRemoveDuplicates(upstream: self, predicate: predicate)
  }
}
