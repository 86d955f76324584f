import Synchronization

/// The subscriber of one upstream.
@usableFromInline
final class MergeSide<Input, Failure, Downstream: Subscriber>: Subscriber, SubscriptionAwaiting,
  OperatorPart
where Downstream.Input == Input, Downstream.Failure == Failure {
  @usableFromInline let coordinator: MergeCoordinator<Input, Failure, Downstream>
  @usableFromInline let index: Int
  @usableFromInline let downstream: Downstream
  /// Whether values may come. Used by upstream, which makes one call at a time.
  @usableFromInline @exclusivity(unchecked) var isOpen = false
  /// Whether upstream has given a subscription. Used likewise.
  @usableFromInline @exclusivity(unchecked) var isConnected = false

  @inlinable
  init(coordinator: MergeCoordinator<Input, Failure, Downstream>, index: Int, downstream: Downstream) {
    self.coordinator = coordinator
    self.index = index
    self.downstream = downstream
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
    guard coordinator.isUnlimited.load(ordering: .acquiring), coordinator.gate.enter() else {
      return coordinator.receiveCounting(input, from: index)
    }
    _ = downstream.receive(input)
    if !coordinator.gate.leave() { coordinator.drain() }
    return .none
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

  @usableFromInline var description: String { "Merge" }

  @usableFromInline var customMirror: Mirror { mirror(("parentSubscription", coordinator.combineIdentifier)) }
}
