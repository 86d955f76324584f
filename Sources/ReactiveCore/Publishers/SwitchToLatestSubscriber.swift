/// Follows one publisher at a time.
///
/// Unmet demand is requested from each publisher in turn. A value that comes while another is being delivered waits, and
/// is dropped if its publisher is not the latest any more when its turn comes.
@usableFromInline
final class SwitchToLatestSubscriber<Input: Publisher, Failure, Downstream: Subscriber>: Subscriber,
  Subscription, SubscriptionAwaiting, OperatorPart
where Input.Failure == Failure, Downstream.Input == Input.Output, Downstream.Failure == Failure {
  @usableFromInline typealias Output = Input.Output

  @usableFromInline let demand = DemandCount()
  @usableFromInline let gate = DrainGate()
  /// Used by the caller that holds the gate.
  @usableFromInline @exclusivity(unchecked) var downstream: Downstream?

  @usableFromInline let lock = Lock()
  // Guarded by the lock.
  @usableFromInline @exclusivity(unchecked) var outer: (any Subscription)?
  @usableFromInline @exclusivity(unchecked) var isConnected = false
  @usableFromInline @exclusivity(unchecked) var isOuterDone = false
  @usableFromInline @exclusivity(unchecked) var nested: (any Subscription)?
  @usableFromInline @exclusivity(unchecked) var number: UInt64 = 0  // of the latest publisher
  @usableFromInline @exclusivity(unchecked) var isNestedConnected = false
  @usableFromInline @exclusivity(unchecked) var isNestedDone = true
  @usableFromInline @exclusivity(unchecked) var queue = RingBuffer<(value: Output, number: UInt64)>()
  @usableFromInline @exclusivity(unchecked) var terminal: Subscribers.Completion<Failure>?
  @usableFromInline @exclusivity(unchecked) var isOver = false

  @inlinable init(downstream: Downstream) { unsafe self.downstream = downstream }

  // The outer stream.

  @inlinable
  func receive(subscription: any Subscription) {
    let isAccepted = lock.withLock {
      guard unsafe !isOver, unsafe !isConnected else { return false }
      unsafe isConnected = true
      unsafe outer = subscription
      return true
    }
    subscription.start(requesting: isAccepted ? .unlimited : nil)
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    if let number = switchOver() {
      input.receive(subscriber: NestedSubscriber(parent: self, number: number))
    } else {
      ignoreIfEarly(.valueBeforeSubscription)
    }
    return .none
  }

  /// Whether the outer stream has yet to give its subscription.
  @usableFromInline var isAwaitingSubscription: Bool {
    lock.withLock { unsafe !isConnected && !isOver }
  }

  /// Cancels the publisher that was the latest.
  ///
  /// - Returns: The number of the latest publisher; nil if it has ended.
  @inlinable
  func switchOver() -> UInt64? {
    var old: (any Subscription)?
    let next: UInt64? = lock.withLock {
      guard unsafe isConnected, unsafe !isOver, unsafe terminal == nil, unsafe !isOuterDone else {
        return nil
      }
      unsafe swap(&old, &nested)
      unsafe number += 1
      unsafe isNestedConnected = false
      unsafe isNestedDone = false
      return unsafe number
    }
    old?.cancel()
    return next
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    if ignoreIfEarly(.completionBeforeSubscription) { return }
    var released: (any Subscription)?
    var cancelled: (any Subscription)?
    let isEnding = lock.withLock {
      guard unsafe !isOver, unsafe terminal == nil, unsafe !isOuterDone else { return false }
      unsafe isOuterDone = true
      unsafe swap(&released, &outer)
      if case .failure = completion {
        unsafe swap(&cancelled, &nested)
        unsafe terminal = completion
      } else if unsafe isNestedDone {
        unsafe terminal = .finished
      }
      return unsafe terminal != nil
    }
    cancelled?.cancel()
    if isEnding, gate.requestDrain() { drain() }
  }

  // The latest publisher.

  @inlinable
  func connect(_ subscription: any Subscription, number: UInt64) {
    var request: Subscribers.Demand?
    lock.withLock {
      guard unsafe !isOver, unsafe terminal == nil, unsafe number == self.number, unsafe !isNestedConnected
      else { return }
      unsafe isNestedConnected = true
      unsafe nested = subscription
      request = demand.value
    }
    subscription.start(requesting: request)
  }

  @inlinable
  func receive(_ value: Output, number: UInt64) -> Subscribers.Demand {
    var isHolder = false
    var ignored: Violation?
    let isTaken = lock.withLock {
      guard unsafe !isOver, unsafe terminal == nil, unsafe number == self.number, unsafe !isNestedDone else {
        return false
      }
      guard unsafe isNestedConnected else {
        ignored = .valueBeforeSubscription
        return false
      }
      isHolder = gate.enter()
      if isHolder {
        if !demand.take() { ignored = .valueWithoutDemand }
      } else {
        unsafe queue.append((value, number))
      }
      return true
    }
    ignored?.ignored(by: "SwitchToLatest")
    guard isTaken else { return .none }
    var more = Subscribers.Demand.none
    if isHolder {
      if ignored == nil { more = deliver(value, number) }
      if gate.leave() { return more }
    } else if !gate.requestDrain() {
      return .none
    }
    drain()
    return more
  }

  @inlinable
  func complete(_ completion: Subscribers.Completion<Failure>, number: UInt64) {
    var released: (any Subscription)?
    var cancelled: (any Subscription)?
    var isIgnored = false
    let isEnding = lock.withLock {
      guard unsafe !isOver, unsafe terminal == nil, unsafe number == self.number, unsafe !isNestedDone else {
        return false
      }
      guard unsafe isNestedConnected else {
        isIgnored = true
        return false
      }
      unsafe swap(&released, &nested)
      unsafe isNestedDone = true
      if case .failure = completion {
        unsafe swap(&cancelled, &outer)
        unsafe terminal = completion
      } else if unsafe isOuterDone {
        unsafe terminal = .finished
      }
      return unsafe terminal != nil
    }
    if isIgnored { Violation.completionBeforeSubscription.ignored(by: "SwitchToLatest") }
    cancelled?.cancel()
    if isEnding, gate.requestDrain() { drain() }
  }

  // While holding the gate.

  /// Delivers a value that has been counted under the lock, so that its demand isn't requested from another publisher
  /// as well.
  ///
  /// - Returns: How many more values are wanted from its publisher.
  @inlinable
  func deliver(_ value: Output, _ number: UInt64) -> Subscribers.Demand {
    let more = unsafe downstream.unsafelyUnwrapped.receive(value)
    guard more > .none else { return .none }
    // If another publisher has become the latest meanwhile, that one delivers them.
    var other: (any Subscription)?
    let isLatest = lock.withLock {
      demand.add(more)
      if unsafe number == self.number { return true }
      other = unsafe nested
      return false
    }
    other?.request(more)
    return isLatest ? more : .none
  }

  @inlinable
  func drain() {
    repeat {
      while true {
        guard gate.beginPass() else { return unsafe downstream = nil }
        guard let next = takeNext() else { break }
        let more = deliver(next.value, next.number)
        if more > .none { next.source?.request(more) }
      }
      if let completion = lock.withLock({ unsafe queue.isEmpty ? terminal : nil }) {
        return finish(completion)
      }
    } while !gate.leave()
  }

  /// Takes the next value that waits, of the latest publisher; drops those of earlier ones.
  @inlinable
  func takeNext() -> (value: Output, number: UInt64, source: (any Subscription)?)? {
    var stale: [Output] = []
    let next: (value: Output, number: UInt64, source: (any Subscription)?)? = lock.withLock {
      while let next = unsafe queue.popFirst() {
        if unsafe next.number == number, demand.take() { return unsafe (next.value, next.number, nested) }
        stale.append(next.value)
      }
      return nil
    }
    withExtendedLifetime(stale) {}
    return next
  }

  @inlinable
  func finish(_ completion: Subscribers.Completion<Failure>) {
    let target = unsafe downstream
    unsafe downstream = nil
    if case .holder = gate.end() {
      _ = takeAll()
      target?.receive(completion: completion)
    }
  }

  // From downstream.

  @inlinable
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    // Under the lock, so that the demand moves to the next publisher if this one has ended.
    let nested = lock.withLock {
      self.demand.add(demand)
      return unsafe self.nested
    }
    nested?.request(demand)
  }

  @inlinable
  func cancel() {
    let releaser = gate.end()
    let (nested, outer) = takeAll()
    nested?.cancel()
    outer?.cancel()
    if case .caller = releaser { unsafe downstream = nil }
  }

  /// Releases everything and returns the subscriptions.
  @inlinable
  func takeAll() -> (nested: (any Subscription)?, outer: (any Subscription)?) {
    let (nested, outer, queue) = lock.withLock {
      unsafe isOver = true
      return unsafe (self.nested.take(), self.outer.take(), exchange(&self.queue, with: RingBuffer()))
    }
    withExtendedLifetime(queue) {}
    return (nested, outer)
  }

  @usableFromInline var description: String { "SwitchToLatest" }
}
