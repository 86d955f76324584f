import Synchronization

/// Delivers one value to each subscriber, then finishes.
public struct Just<Output>: Publisher {
  public typealias Failure = Never

  /// The value.
  public let output: Output

  /// A publisher of one value.
  @inlinable
  public init(_ output: Output) { self.output = output }

  @inlinable @inline(__always)
  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Never {
    subscriber.receive(subscription: SingleValueSubscription("Just", output, downstream: subscriber))
  }
}

extension Just: Equatable where Output: Equatable {}
extension Just: Sendable where Output: Sendable {}

extension Optional {
  /// A publisher of the value, if there is one.
  @inlinable
  public var publisher: Optional<Wrapped>.Publisher { Publisher(self) }

  /// Delivers the value of an optional if there is one, then finishes.
  public struct Publisher: ReactiveCore.Publisher {
    public typealias Output = Wrapped
    public typealias Failure = Never

    /// The value.
    public let output: Wrapped?

    /// A publisher of at most one value.
    @inlinable
    public init(_ output: Wrapped?) { self.output = output }

    @inlinable @inline(__always)
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Wrapped, S.Failure == Never {
      if let output {
        subscriber.receive(subscription: SingleValueSubscription("Optional", output, downstream: subscriber))
      } else {
        subscriber.receive(subscription: Subscriptions.empty)
        subscriber.receive(completion: .finished)
      }
    }
  }
}

extension Optional.Publisher: Equatable where Wrapped: Equatable {}
extension Optional.Publisher: Sendable where Wrapped: Sendable {}

extension Result {
  /// A publisher of the value, or of the failure.
  @inlinable
  public var publisher: Result<Success, Failure>.Publisher { Publisher(self) }

  /// Delivers the value of a result and finishes, or fails at once.
  public struct Publisher: ReactiveCore.Publisher {
    public typealias Output = Success

    /// The value or the error.
    public let result: Result<Success, Failure>

    /// A publisher of a result.
    @inlinable
    public init(_ result: Result<Success, Failure>) { self.result = result }

    /// A publisher of a value.
    @inlinable
    public init(_ output: Success) { self.init(.success(output)) }

    /// A publisher of an error.
    @inlinable
    public init(_ failure: Failure) { self.init(.failure(failure)) }

    @inlinable @inline(__always)
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

/// Delivers one value on demand, then finishes: the subscription of `Just` and related publishers.
///
/// `Held` is an optional of the subscriber's type. It is a parameter in its place so that nothing has to look up the type of
/// a field at run time, not even to release it, which would take longer than all the rest.
@usableFromInline
final class SingleValueSubscription<Value, Held>: Subscription, OperatorPart {
  /// Set by the first request or cancellation, whose caller then owns `downstream`.
  @usableFromInline let isTaken = Atomic<Bool>(false)

  /// Releases downstream, after delivering to it if the flag is set. Compiled where the types are known; captures nothing.
  @usableFromInline let finish: (SingleValueSubscription, _ delivers: Bool) -> Void

  @usableFromInline let name: StaticString
  @usableFromInline let value: Value
  @usableFromInline @exclusivity(unchecked) var downstream: Held  // used by the caller that sets `isTaken`

  @inlinable
  init<Downstream: Subscriber>(_ name: StaticString, _ value: Value, downstream: Downstream)
  where Held == Downstream?, Downstream.Input == Value {
    self.name = name
    self.value = value
    unsafe self.downstream = downstream
    finish = { subscription, delivers in
      guard let downstream = unsafe subscription.downstream.take(), delivers else { return }
      _ = downstream.receive(subscription.value)
      downstream.receive(completion: .finished)
    }
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    if !isTaken.exchange(true, ordering: .acquiringAndReleasing) { finish(self, true) }
  }

  @usableFromInline
  func cancel() {
    if !isTaken.exchange(true, ordering: .acquiringAndReleasing) { finish(self, false) }
  }

  @usableFromInline var description: String { name.description }

  @usableFromInline var customMirror: Mirror { Mirror(self, unlabeledChildren: CollectionOfOne(value)) }

  @usableFromInline var playgroundDescription: Any { value }
}
