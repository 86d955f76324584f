/// Fails at once.
public struct Fail<Output, Failure: Error>: Publisher {
  /// The error.
  public let error: Failure

  /// A publisher that fails with an error.
  @inlinable
  public init(error: Failure) {
    self.error = error
  }

  /// The same, with the type of values named where it cannot be inferred.
  @inlinable
  public init(outputType: Output.Type, failure: Failure) {
    error = failure
  }

  @inlinable
  @inline(__always)
  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    subscriber.receive(subscription: Subscriptions.empty)
    subscriber.receive(completion: .failure(error))
  }
}

extension Fail: Equatable where Failure: Equatable {}

extension Fail: Sendable {}
