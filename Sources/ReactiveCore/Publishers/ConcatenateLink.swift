import Synchronization

/// The subscription to a chain of publishers: knows which part is being subscribed to and which are still to come.
///
/// Parts that deliver at once finish within the call that subscribes to them. The next part is then subscribed to by the
/// loop that made that call, when it returns; and a part that is itself a chain puts its own parts in its place. So neither the length nor
/// the nesting of a chain makes the stack grow, and a value passes through one subscriber however long the chain.
@usableFromInline
final class ConcatenateLink<Target: Subscriber>: Subscription, SubscriptionAwaiting, OperatorPart {
  /// Subscribes to a part of the chain.
  @usableFromInline typealias Part = (Target) -> Void

  /// Whether values may be passed on. Written under the lock.
  @usableFromInline let isOpen = Atomic<Bool>(true)
  /// Whether the part under way has given its subscription, so that its values may be passed on. Written under the lock.
  @usableFromInline let isAttached = Atomic<Bool>(false)
  @usableFromInline let demand = DemandCount()

  private let lock = Lock()
  // Guarded by the lock.
  private var upstream: (any Subscription)?
  private var parts: [Part] = []  // last to first
  private var isAwaiting = false  // subscribed to a part, no subscription yet
  private var isDone = false  // the part has finished
  private var isRunning = false  // a caller is subscribing to the parts

  @usableFromInline init() {}

  /// Adds a part before the existing ones.
  @usableFromInline
  func push(_ part: @escaping Part) {
    lock.withLock { parts.append(part) }
  }

  /// Subscribes to a part, and to those after it while they finish at once.
  ///
  /// - Returns: Whether all have finished, here and below, so that downstream must get the completion.
  @usableFromInline
  func run(_ target: Target, _ part: @escaping Part) -> Bool {
    let mayRun = lock.withLock {
      guard isOpen.load(ordering: .relaxed) else { return false }
      parts.append(part)
      isDone = true
      defer { isRunning = true }
      return !isRunning
    }
    return mayRun && runParts(target)
  }

  /// Continues with the next part after one has finished.
  @usableFromInline
  func next(_ target: Target) -> Bool {
    var released: (any Subscription)?
    let mayRun = lock.withLock {
      guard isAttached.load(ordering: .relaxed), !isDone else { return false }
      isDone = true
      isAttached.store(false, ordering: .relaxed)
      swap(&released, &upstream)
      defer { isRunning = true }
      return !isRunning
    }
    return mayRun && runParts(target)
  }

  /// Takes two parts in place of the part that is being subscribed to. Returns nil if none is.
  @usableFromInline
  func splice(_ target: Target, _ prefix: @escaping Part, _ suffix: @escaping Part) -> Bool? {
    var mayRun = false
    let isTaken = lock.withLock {
      guard isOpen.load(ordering: .relaxed), isAwaiting, !isDone else { return false }
      parts.append(suffix)
      parts.append(prefix)
      isDone = true
      mayRun = !isRunning
      isRunning = true
      return true
    }
    return isTaken ? mayRun && runParts(target) : nil
  }

  private func runParts(_ target: Target) -> Bool {
    while true {
      var part: Part?
      var isFinished = false
      lock.withLock {
        if isDone, isOpen.load(ordering: .relaxed) {
          isDone = false
          part = parts.popLast()
          isFinished = part == nil
          isAwaiting = part != nil
        }
        isRunning = part != nil
      }
      if let part {
        part(target)
      } else {
        return isFinished && end()
      }
    }
  }

  // From the part under way.

  @usableFromInline
  func connect(_ subscription: any Subscription) {
    var request: Subscribers.Demand?
    lock.withLock {
      guard isOpen.load(ordering: .relaxed), isAwaiting, !isDone else { return }
      isAwaiting = false
      isAttached.store(true, ordering: .releasing)
      upstream = subscription
      request = demand.value
    }
    subscription.start(requesting: request)
  }

  /// Whether the part under way has yet to give its subscription.
  @usableFromInline var isAwaitingSubscription: Bool {
    lock.withLock { isAwaiting && isOpen.load(ordering: .relaxed) }
  }

  /// Ends it.
  ///
  /// - Returns: Whether it had not ended before.
  @usableFromInline func end() -> Bool { take().isOurs }

  // From downstream.

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    // Under the lock, so that the demand moves to the next part if this one has ended.
    let upstream = lock.withLock {
      self.demand.add(demand)
      return self.upstream
    }
    upstream?.request(demand)
  }

  @usableFromInline func cancel() { take().upstream?.cancel() }

  private func take() -> (isOurs: Bool, upstream: (any Subscription)?) {
    var upstream: (any Subscription)?
    var parts: [Part] = []
    let isOurs = lock.withLock {
      swap(&upstream, &self.upstream)
      swap(&parts, &self.parts)
      isAttached.store(false, ordering: .relaxed)
      return isOpen.exchange(false, ordering: .acquiringAndReleasing)
    }
    return (isOurs, upstream)
  }

  @usableFromInline var description: String { "Concatenate" }

  @usableFromInline var customMirror: Mirror {
    let upstream = lock.withLock { self.upstream }
    return mirror(("upstreamSubscription", upstream as Any), ("demand", demand.value))
  }
}
