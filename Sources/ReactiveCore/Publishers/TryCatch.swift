extension Publishers {
  /// Goes on with another publisher when upstream fails, unless a function throws.
  public struct TryCatch<Upstream: Publisher, NewPublisher: Publisher>: Publisher
  where Upstream.Output == NewPublisher.Output {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// Where the values come from at first.
    public let upstream: Upstream
    /// Makes the publisher to go on with, or throws the error to fail with.
    public let handler: (Upstream.Failure) throws -> NewPublisher

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, handler: @escaping (Upstream.Failure) throws -> NewPublisher) {
      self.upstream = upstream
      self.handler = handler
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == any Error {
      let handler = handler
      let inner = SuccessionSubscriber<Output, Upstream.Failure, NewPublisher, S>(
        "TryCatch", downstream: subscriber,
        successor: { completion, _ in
          guard case .failure(let failure) = completion else { return .end(.finished) }
          do {
            return .next(try handler(failure))
          } catch {
            return .end(.failure(error))
          }
        }, convert: { $0 })
      upstream.receive(subscriber: inner)
    }
  }
}

extension Publisher {
  /// Goes on with another publisher when this one fails, or fails with another error.
  ///
  /// What was asked for and not delivered by then is asked of the other publisher. Cancelling cancels
  /// whichever of the two is under way.
  ///
  /// - Parameter handler: Makes the other publisher, or throws what to fail with. Called once at most.
  @inlinable
  public func tryCatch<P: Publisher>(
    _ handler: @escaping (Failure) throws -> P
  ) -> Publishers.TryCatch<Self, P> where P.Output == Output {
    Publishers.TryCatch(upstream: self, handler: handler)
  }
}
