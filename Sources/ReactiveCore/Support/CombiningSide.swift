/// A value of one of up to four upstreams. Places that are not used have the type `Never`.
@usableFromInline
enum OneOfFour<A, B, C, D> {
  case a(A)
  case b(B)
  case c(C)
  case d(D)
}

/// Combines values of two, three or four upstreams, and is the subscription for downstream.
@usableFromInline
protocol CombiningCoordinator<Entry, Failure>: Subscription {
  associatedtype Entry
  associatedtype Failure: Error
  associatedtype Downstream: Subscriber

  /// The operator's name in descriptions.
  static var name: StaticString { get }

  /// Takes an upstream's subscription, or cancels it if there has been one.
  func connect(_ subscription: any Subscription, from index: Int)

  /// Takes a value; returns how many more are wanted from the same upstream.
  func receive(_ entry: Entry, from index: Int, for downstream: Downstream) -> Subscribers.Demand

  /// Takes an upstream's end.
  func complete(_ completion: Subscribers.Completion<Failure>, from index: Int)
}

/// The subscriber of one of the upstreams that are combined.
@usableFromInline
final class CombiningSide<Input, Failure, Coordinator: CombiningCoordinator>: Subscriber,
  SubscriptionAwaiting,
  OperatorPart
where Coordinator.Failure == Failure {
  @usableFromInline let coordinator: Coordinator
  @usableFromInline let index: Int
  /// Kept here as well, since what does not change can be used without retaining it.
  @usableFromInline let downstream: Coordinator.Downstream
  /// Says which of the upstreams a value is from.
  @usableFromInline let wrap: (Input) -> Coordinator.Entry
  /// Whether values may come. Used by upstream, which makes one call at a time.
  @usableFromInline @exclusivity(unchecked) var isOpen = false
  /// Whether upstream has given a subscription. Used likewise.
  @usableFromInline @exclusivity(unchecked) var isConnected = false

  @inlinable
  init(
    _ coordinator: Coordinator, index: Int, downstream: Coordinator.Downstream,
    wrap: @escaping (Input) -> Coordinator.Entry
  ) {
    self.coordinator = coordinator
    self.index = index
    self.downstream = downstream
    self.wrap = wrap
  }

  @inlinable
  func receive(subscription: any Subscription) {
    guard unsafe !isConnected else { return subscription.cancel() }
    unsafe isConnected = true
    unsafe isOpen = true
    coordinator.connect(subscription, from: index)
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard unsafe isOpen else {
      ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    return coordinator.receive(wrap(input), from: index, for: downstream)
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    if unsafe isOpen {
      unsafe isOpen = false
      coordinator.complete(completion, from: index)
    } else {
      ignoreIfEarly(.completionBeforeSubscription)
    }
  }

  @usableFromInline var isAwaitingSubscription: Bool { unsafe !isConnected }

  @usableFromInline var description: String { Coordinator.name.description }

  @usableFromInline var customMirror: Mirror { mirror(("parentSubscription", coordinator.combineIdentifier)) }
}
