/// Delivers one value when it is asked for, then finishes: the subscription of `Just` and its relatives.
@usableFromInline
final class SingleValueSubscription<Downstream: Subscriber>: Subscription, CustomStringConvertible,
  CustomReflectable, CustomPlaygroundDisplayConvertible
{
  private let lock = Lock()
  private var downstream: Downstream?  // guarded by the lock
  private let value: Downstream.Input
  private let name: StaticString

  @usableFromInline
  init(_ name: StaticString, _ value: Downstream.Input, downstream: Downstream) {
    self.name = name
    self.value = value
    self.downstream = downstream
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    if let downstream = take() {
      _ = downstream.receive(value)
      downstream.receive(completion: .finished)
    }
  }

  @usableFromInline
  func cancel() {
    _ = take()
  }

  private func take() -> Downstream? {
    var taken: Downstream?
    lock.withLock { swap(&taken, &downstream) }
    return taken
  }

  @usableFromInline var description: String { name.description }

  @usableFromInline var customMirror: Mirror { Mirror(self, unlabeledChildren: CollectionOfOne(value)) }

  @usableFromInline var playgroundDescription: Any { value }
}
