import Synchronization

/// Delivers one value when it is asked for, then finishes: the subscription of `Just` and its relatives.
///
/// `Held` is an optional of the subscriber's type. It is a parameter in its place so that nothing has to look up the type of
/// a field at run time, not even to release it, which would take longer than all the rest.
@usableFromInline
final class SingleValueSubscription<Value, Held>: Subscription, OperatorPart {
  /// Set by the first request or cancellation, whose caller then owns `downstream`.
  @usableFromInline let isTaken = Atomic<Bool>(false)

  /// Lets go of downstream, after delivering to it if the flag is set. Compiled where the types are known; captures nothing.
  @usableFromInline let finish: (SingleValueSubscription, _ delivers: Bool) -> Void

  @usableFromInline let name: StaticString
  @usableFromInline let value: Value
  @usableFromInline @exclusivity(unchecked) var downstream: Held  // belongs to whoever sets `isTaken`

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
    if !isTaken.exchange(true, ordering: .acquiringAndReleasing) {
      finish(self, true)
    }
  }

  @usableFromInline
  func cancel() {
    if !isTaken.exchange(true, ordering: .acquiringAndReleasing) {
      finish(self, false)
    }
  }

  @usableFromInline var description: String { name.description }

  @usableFromInline var customMirror: Mirror { Mirror(self, unlabeledChildren: CollectionOfOne(value)) }

  @usableFromInline var playgroundDescription: Any { value }
}
