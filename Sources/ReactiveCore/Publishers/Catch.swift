extension Publishers {
  /// Goes on with another publisher when upstream fails.
  public struct Catch<Upstream: Publisher, NewPublisher: Publisher>: Publisher
  where Upstream.Output == NewPublisher.Output {
    public typealias Output = Upstream.Output
    public typealias Failure = NewPublisher.Failure

    /// Where the values come from at first.
    public let upstream: Upstream
    /// Makes the publisher to go on with.
    public let handler: (Upstream.Failure) -> NewPublisher

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, handler: @escaping (Upstream.Failure) -> NewPublisher) {
      self.upstream = upstream
      self.handler = handler
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let handler = handler
      let inner = SuccessionSubscriber<Output, Upstream.Failure, NewPublisher, S>(
        "Catch", downstream: subscriber,
        successor: { completion, _ in
          switch completion {
          case .finished: .end(.finished)
          case .failure(let error): .next(handler(error))
          }
        })
      upstream.receive(subscriber: inner)
    }
  }
}

extension Publisher {
  /// Goes on with another publisher when this one fails.
  ///
  /// What was asked for and not delivered by then is asked of the other publisher. Cancelling cancels
  /// whichever of the two is under way. If the other one fails, the stream fails with its error. Unlike in Combine, a value that
  /// was not asked for does not stop the program.
  ///
  /// - Parameter handler: Makes the other publisher. Called once at most.
  @inlinable
  public func `catch`<P: Publisher>(
    _ handler: @escaping (Failure) -> P
  ) -> Publishers.Catch<Self, P> where P.Output == Output {
    Publishers.Catch(upstream: self, handler: handler)
  }
}
