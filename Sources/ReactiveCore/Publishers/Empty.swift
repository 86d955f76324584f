/// Delivers nothing, and finishes at once or never.
public struct Empty<Output, Failure: Error>: Publisher, Equatable, Sendable {
  /// Whether subscribers get a finish at once.
  public let completeImmediately: Bool

  /// A publisher of no values.
  ///
  /// - Parameter completeImmediately: Whether it finishes at once; otherwise it never does.
  @inlinable
  public init(completeImmediately: Bool = true) { self.completeImmediately = completeImmediately }

  /// The same, with explicit types if they cannot be inferred.
  @inlinable
  public init(completeImmediately: Bool = true, outputType: Output.Type, failureType: Failure.Type) {
    self.init(completeImmediately: completeImmediately)
  }

  @inlinable @inline(__always)
  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    subscriber.receive(subscription: Subscriptions.empty)
    if completeImmediately { subscriber.receive(completion: .finished) }
  }
}

/// Fails at once.
public struct Fail<Output, Failure: Error>: Publisher {
  /// The error.
  public let error: Failure

  /// A publisher that fails with an error.
  @inlinable
  public init(error: Failure) { self.error = error }

  /// The same, with an explicit type of values if it cannot be inferred.
  @inlinable
  public init(outputType: Output.Type, failure: Failure) { error = failure }

  @inlinable @inline(__always)
  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    subscriber.receive(subscription: Subscriptions.empty)
    subscriber.receive(completion: .failure(error))
  }
}

extension Fail: Equatable where Failure: Equatable {}
extension Fail: Sendable {}

/// Makes a publisher for each subscriber, when it subscribes.
public struct Deferred<DeferredPublisher: Publisher>: Publisher {
  public typealias Output = DeferredPublisher.Output
  public typealias Failure = DeferredPublisher.Failure

  /// Makes the publisher.
  public let createPublisher: () -> DeferredPublisher

  /// A publisher made on demand.
  @inlinable
  public init(createPublisher: @escaping () -> DeferredPublisher) { self.createPublisher = createPublisher }

  @inlinable @inline(__always)
  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    createPublisher().subscribe(subscriber)
  }
}

/// Ready-made subscriptions.
public enum Subscriptions {}

extension Subscriptions {
  /// A subscription that never delivers anything; requests and cancellation have no effect.
  public static var empty: any Subscription { EmptySubscription.shared }
}

/// The one subscription that does nothing.
private final class EmptySubscription: Subscription, OperatorPart, Sendable {
  static let shared = EmptySubscription()

  func request(_ demand: Subscribers.Demand) {}

  func cancel() {}

  var description: String { "Empty" }
}
