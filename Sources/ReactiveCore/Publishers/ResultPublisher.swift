extension Result {
  /// A publisher of the value, or of the failure.
  @inlinable
  public var publisher: Result<Success, Failure>.Publisher {
    Publisher(self)
  }

  /// Delivers the value of a result and finishes, or fails at once.
  public struct Publisher: ReactiveCore.Publisher {
    public typealias Output = Success

    /// The value or the error.
    public let result: Result<Success, Failure>

    /// A publisher of a result.
    @inlinable
    public init(_ result: Result<Success, Failure>) {
      self.result = result
    }

    /// A publisher of a value.
    @inlinable
    public init(_ output: Success) {
      self.init(.success(output))
    }

    /// A publisher of an error.
    @inlinable
    public init(_ failure: Failure) {
      self.init(.failure(failure))
    }

    @inlinable
    @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Success, S.Failure == Failure {
      switch result {
      case .success(let output):
        subscriber.receive(subscription: SingleValueSubscription("Once", output, downstream: subscriber))
      case .failure(let error):
        subscriber.receive(subscription: Subscriptions.empty)
        subscriber.receive(completion: .failure(error))
      }
    }
  }
}

extension Result.Publisher: Equatable where Success: Equatable, Failure: Equatable {}

extension Result.Publisher: Sendable where Success: Sendable {}
