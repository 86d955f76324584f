extension Publishers {
  /// Continues with another publisher when upstream fails.
  public struct Catch<Upstream: Publisher, NewPublisher: Publisher>: Publisher
  where Upstream.Output == NewPublisher.Output {
    public typealias Output = Upstream.Output
    public typealias Failure = NewPublisher.Failure

    /// The upstream publisher, until it fails.
    public let upstream: Upstream
    /// Returns the publisher to continue with.
    public let handler: (Upstream.Failure) -> NewPublisher

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, handler: @escaping (Upstream.Failure) -> NewPublisher) {
      self.upstream = upstream
      self.handler = handler
    }

    @inlinable @inline(__always)
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

  /// Continues with another publisher when upstream fails, unless a function throws.
  public struct TryCatch<Upstream: Publisher, NewPublisher: Publisher>: Publisher
  where Upstream.Output == NewPublisher.Output {
    public typealias Output = Upstream.Output
    public typealias Failure = any Error

    /// The upstream publisher, until it fails.
    public let upstream: Upstream
    /// Returns the publisher to continue with, or throws the error to fail with.
    public let handler: (Upstream.Failure) throws -> NewPublisher

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, handler: @escaping (Upstream.Failure) throws -> NewPublisher) {
      self.upstream = upstream
      self.handler = handler
    }

    @inlinable @inline(__always)
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

  /// Delivers a value in place of an error, then finishes.
  public struct ReplaceError<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Never

    /// The value delivered in place of an error.
    public let output: Upstream.Output
    /// The upstream publisher.
    public let upstream: Upstream

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, output: Output) {
      self.upstream = upstream
      self.output = output
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Never {
      let output = output
      let inner = SuccessionSubscriber<Output, Upstream.Failure, Just<Output>, S>(
        "ReplaceError", downstream: subscriber, waitsForUpstream: false, isReflecting: false,
        successor: { completion, _ in
          switch completion {
          case .finished: .end(.finished)
          case .failure: .next(Just(output))
          }
        })
      upstream.receive(subscriber: inner)
      inner.attachDownstream()
    }
  }

  /// Delivers a value if upstream finishes without one.
  public struct ReplaceEmpty<Upstream: Publisher>: Publisher {
    public typealias Output = Upstream.Output
    public typealias Failure = Upstream.Failure

    /// The value delivered if there is no other.
    public let output: Upstream.Output
    /// The upstream publisher.
    public let upstream: Upstream

    /// Builds the publisher from its parts.
    @inlinable
    public init(upstream: Upstream, output: Output) {
      self.upstream = upstream
      self.output = output
    }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
      let output = output
      let inner = SuccessionSubscriber<Output, Failure, Result<Output, Failure>.Publisher, S>(
        "ReplaceEmpty", downstream: subscriber, isReflecting: false,
        successor: { completion, isEmpty in
          if case .finished = completion, isEmpty {
            .next(Result.Publisher(.success(output)))
          } else {
            .end(completion)
          }
        })
      upstream.receive(subscriber: inner)
    }
  }
}

extension Publishers.ReplaceError: Equatable where Upstream: Equatable, Upstream.Output: Equatable {}
extension Publishers.ReplaceError: Sendable where Upstream: Sendable, Upstream.Output: Sendable {}
extension Publishers.ReplaceEmpty: Equatable where Upstream: Equatable, Upstream.Output: Equatable {}
extension Publishers.ReplaceEmpty: Sendable where Upstream: Sendable, Upstream.Output: Sendable {}

extension Publisher {
  /// Continues with another publisher when this one fails.
  ///
  /// Demand that this publisher hasn't met is requested from the other publisher. Cancelling cancels the one of the two that is
  /// attached. If the other one fails, the stream fails with its error. Unlike in Combine, a value that was not asked for does not
  /// stop the program.
  ///
  /// - Parameter handler: Makes the other publisher. Called once at most.
  @inlinable
  public func `catch`<P: Publisher>(
    _ handler: @escaping (Failure) -> P
  ) -> Publishers.Catch<Self, P> where P.Output == Output {
    Publishers.Catch(upstream: self, handler: handler)
  }

  /// Continues with another publisher when this one fails, or fails with another error.
  ///
  /// Demand that this publisher hasn't met is requested from the other publisher. Cancelling cancels the one of the two
  /// that is attached.
  ///
  /// - Parameter handler: Makes the other publisher, or throws what to fail with. Called once at most.
  @inlinable
  public func tryCatch<P: Publisher>(
    _ handler: @escaping (Failure) throws -> P
  ) -> Publishers.TryCatch<Self, P> where P.Output == Output {
    Publishers.TryCatch(upstream: self, handler: handler)
  }

  /// Delivers a value in place of an error, then finishes.
  ///
  /// The value waits for demand, if there is none by the time of the error. Unlike Combine, a completion is delivered after the
  /// subscription only.
  @inlinable
  public func replaceError(with output: Output) -> Publishers.ReplaceError<Self> {
    Publishers.ReplaceError(upstream: self, output: output)
  }

  /// Delivers a value if this publisher finishes without one. The value waits for demand.
  ///
  /// Unlike Combine, which asks upstream for everything, this asks for exactly what downstream asks for.
  @inlinable
  public func replaceEmpty(with output: Output) -> Publishers.ReplaceEmpty<Self> {
    Publishers.ReplaceEmpty(upstream: self, output: output)
  }
}
