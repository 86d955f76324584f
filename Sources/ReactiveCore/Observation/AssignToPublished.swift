extension Publisher where Failure == Never {
  /// Sets a published property to each value: `publisher.assign(to: &object.$name)`.
  ///
  /// Asks for everything. The subscription lives as long as the property, and is cancelled when that is
  /// released; the object is not kept alive by it.
  public func assign(to published: inout Published<Output>.Publisher) {
    subscribe(AssignToPublished(published.store))
  }
}

/// Sets a property that it does not keep alive; kept by the property itself.
private final class AssignToPublished<Value>: Subscriber, Cancellable {
  typealias Input = Value
  typealias Failure = Never

  private let lock = Lock()
  private weak var store: PublishedStore<Value>?
  private var subscription: (any Subscription)?  // guarded by the lock
  private var isAttached = false  // guarded by the lock

  init(_ store: PublishedStore<Value>) {
    self.store = store
  }

  func receive(subscription: any Subscription) {
    let isAccepted = lock.withLock {
      if isAttached { return false }
      isAttached = true
      self.subscription = subscription
      return true
    }
    guard isAccepted, let store else { return subscription.cancel() }
    store.keep(self, as: combineIdentifier)
    subscription.request(.unlimited)
  }

  func receive(_ input: Value) -> Subscribers.Demand {
    if lock.withLock({ subscription != nil }) {
      store?.set(input)
    }
    return .none
  }

  func receive(completion: Subscribers.Completion<Never>) {
    _ = take()
    store?.forget(combineIdentifier)
  }

  func cancel() {
    take()?.cancel()
  }

  private func take() -> (any Subscription)? {
    var taken: (any Subscription)?
    lock.withLock { swap(&taken, &subscription) }
    return taken
  }
}
