import PortableCombine

/// A publisher that a scope can end by its id.
struct CancellableEffect<Output, Failure: Error>: Publisher {
  let upstream: AnyPublisher<Output, Failure>
  let scope: EffectScope
  let id: AnyHashable
  let cancelsInFlight: Bool

  func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    if cancelsInFlight { scope.stop(id) }
    let effect = CancellableEffectSubscriber(AnySubscriber(subscriber))
    effect.register(in: scope, id: id)
    upstream.subscribe(effect)
  }
}

/// One run of a cancellable effect: passes everything on until it is stopped.
private final class CancellableEffectSubscriber<Input, Failure: Error>: Subscriber, Subscription,
  EffectInFlight, CustomStringConvertible
{
  private typealias Downstream = AnySubscriber<Input, Failure>

  private enum Phase {
    case awaiting
    case open(any Subscription)
    case stopping  // Finishes when all calls have returned.
    case ended
  }

  private let lock = Lock()
  // Guarded by the lock.
  private var downstream: AnySubscriber<Input, Failure>?
  private var phase = Phase.awaiting
  private var calls = 0  // of downstream that have not returned
  private var registration: (scope: EffectScope, id: AnyHashable, ticket: Int)?

  init(_ downstream: AnySubscriber<Input, Failure>) { self.downstream = downstream }

  func register(in scope: EffectScope, id: AnyHashable) {
    let ticket = scope.add(self, id: id)
    lock.withLock {
      if downstream != nil { registration = (scope, id, ticket) }
    }
  }

  func receive(subscription: any Subscription) {
    let downstream: Downstream? = lock.withLock {
      guard case .awaiting = phase else { return nil }
      phase = .open(subscription)
      calls += 1
      return self.downstream
    }
    if let downstream {
      downstream.receive(subscription: self)
      leave()
    } else {
      subscription.cancel()
    }
  }

  func receive(_ input: Input) -> Subscribers.Demand {
    let downstream: Downstream? = lock.withLock {
      guard case .open = phase else { return nil }
      calls += 1
      return self.downstream
    }
    guard let downstream else { return .none }
    let more = downstream.receive(input)
    leave()
    return more
  }

  /// Finishes, if it was stopped during the last call of downstream.
  private func leave() {
    let isLast = lock.withLock {
      calls -= 1
      if calls == 0, case .stopping = phase { return true }
      return false
    }
    if isLast { end().downstream?.receive(completion: .finished) }
  }

  func receive(completion: Subscribers.Completion<Failure>) {
    let isOpen = lock.withLock {
      if case .open = phase { true } else { false }
    }
    if isOpen { end().downstream?.receive(completion: completion) }
  }

  func request(_ demand: Subscribers.Demand) {
    let subscription: (any Subscription)? = lock.withLock {
      if case .open(let subscription) = phase { subscription } else { nil }
    }
    subscription?.request(demand)
  }

  func cancel() { end().subscription?.cancel() }

  func stop() {
    var subscription: (any Subscription)?
    var isAttached = true
    let isQuiet = lock.withLock {
      switch phase {
      case .awaiting: isAttached = false
      case .open(let open): subscription = open
      case .stopping, .ended: return false
      }
      phase = .stopping
      return calls == 0
    }
    subscription?.cancel()
    guard isQuiet, let downstream = end().downstream else { return }
    if !isAttached { downstream.receive(subscription: Subscriptions.empty) }
    downstream.receive(completion: .finished)
  }

  private func end() -> (downstream: AnySubscriber<Input, Failure>?, subscription: (any Subscription)?) {
    var downstream: Downstream?
    var subscription: (any Subscription)?
    let registration = lock.withLock {
      if case .open(let open) = phase { subscription = open }
      phase = .ended
      swap(&downstream, &self.downstream)
      defer { self.registration = nil }
      return self.registration
    }
    if let registration { registration.scope.remove(id: registration.id, ticket: registration.ticket) }
    return (downstream, subscription)
  }

  var description: String { "CancellableEffect" }
}
