import Synchronization

/// The upstream half of an operator whose upstream changes, or comes after downstream knows of its
/// subscription.
///
/// It is what the operator hands downstream as subscription. Unmet demand of downstream is counted, and requested from
/// the next upstream when that is attached. Upstreams are numbered from 0. At the end, whichever side it came from,
/// everything is released, so a subscriber that keeps its subscription keeps nothing else alive.
@usableFromInline
final class SuccessionLink<Downstream>: Subscription, OperatorPart {
  /// Twice the number of the upstream that is expected; one more once it is attached; -1 after the end.
  /// Written under the lock.
  @usableFromInline let place = Atomic<Int>(0)

  /// The unmet demand, as `DemandWord` counts it. Grows under the lock.
  @usableFromInline let outstanding = Atomic<UInt64>(0)

  private let lock = Lock()
  private var upstream: (any Subscription)?  // guarded by the lock
  /// To another publisher; ends with the stream. Guarded by the lock.
  private var other: (any Subscription)?
  private var hasOther = false  // guarded by the lock
  private var downstream: Downstream?  // guarded by the lock; for the mirror alone
  private let name: StaticString
  private let isReflecting: Bool
  private let acceptsNone: Bool

  /// - Parameters:
  ///   - name: The description.
  ///   - downstream: The value for the mirror, beside the demand; if nil, the mirror is empty.
  ///   - acceptsNone: Whether a request for nothing is passed on; otherwise it stops the program.
  @usableFromInline
  init(_ name: StaticString, reflecting downstream: Downstream? = nil, acceptsNone: Bool = false) {
    self.name = name
    self.downstream = downstream
    isReflecting = downstream != nil
    self.acceptsNone = acceptsNone
  }

  @inlinable var isEnded: Bool { place.load(ordering: .acquiring) < 0 }

  /// Whether this upstream is attached, so that its values may be passed on.
  @inlinable
  func isOpen(_ number: Int) -> Bool { place.load(ordering: .acquiring) == 2 * number + 1 }

  /// Whether an upstream is attached.
  @inlinable var isAttached: Bool {
    let place = place.load(ordering: .acquiring)
    return place >= 0 && place % 2 == 1
  }

  /// Notes that a call of this upstream is ignored, if it comes before its subscription.
  ///
  /// - Returns: Whether it does.
  @usableFromInline @inline(never)
  @discardableResult
  func ignoreIfEarly(_ violation: Violation, from number: Int = 0) -> Bool {
    guard place.load(ordering: .acquiring) == 2 * number else { return false }
    violation.ignored(byOperator: description)
    return true
  }

  // Attaching.

  /// Attaches the upstream that is expected and asks it for what is outstanding; or cancels the subscription,
  /// if this is not the one expected or the stream has ended.
  @usableFromInline
  func connect(_ subscription: any Subscription, as number: Int? = nil) -> Bool {
    var asked: UInt64 = 0
    let isAccepted = lock.withLock {
      let place = place.load(ordering: .relaxed)
      guard place >= 0, place % 2 == 0, number == nil || place == 2 * number! else { return false }
      upstream = subscription
      asked = outstanding.load(ordering: .relaxed)
      self.place.store(place + 1, ordering: .releasing)
      return true
    }
    if !isAccepted {
      subscription.cancel()
    } else if asked > 0 {
      subscription.request(DemandWord.demand(asked))
    }
    return isAccepted
  }

  /// Attaches a subscription to another publisher, to be cancelled at the end; cancels it at once if there
  /// was one or the stream has ended.
  @usableFromInline
  func connectOther(_ subscription: any Subscription) -> Bool {
    let isAccepted = lock.withLock {
      guard !hasOther, place.load(ordering: .relaxed) >= 0 else { return false }
      hasOther = true
      other = subscription
      return true
    }
    if !isAccepted { subscription.cancel() }
    return isAccepted
  }

  /// Notes that a call of the other publisher is ignored, if it comes before its subscription.
  ///
  /// - Returns: Whether it does.
  @usableFromInline
  func ignoreIfOtherIsEarly(_ violation: Violation) -> Bool {
    if lock.withLock({ hasOther }) { return false }
    violation.ignored(byOperator: description)
    return true
  }

  /// Releases the subscription to another publisher.
  @usableFromInline
  func takeOther() -> (any Subscription)? {
    lock.withLock { other.take() }
  }

  /// Releases the upstream attached, which has completed, and expects the next.
  ///
  /// - Parameters:
  ///   - number: The upstream; any if nil.
  /// - Returns: Whether it was attached, so that the caller is to bring the next.
  @usableFromInline
  func advance(from number: Int? = nil) -> Bool {
    var upstream: (any Subscription)?
    let isOurs = lock.withLock {
      let place = place.load(ordering: .relaxed)
      guard place >= 0, place % 2 == 1, number == nil || place / 2 == number!
      else { return false }
      swap(&upstream, &self.upstream)
      self.place.store(place + 1, ordering: .releasing)
      return true
    }
    withExtendedLifetime(upstream) {}
    return isOurs
  }

  // Demand.

  @inlinable var isUnlimited: Bool { outstanding.load(ordering: .relaxed) == DemandWord.unlimited }

  /// Counts one value as delivered.
  @inlinable
  func spend() {
    var current = outstanding.load(ordering: .relaxed)
    while current != 0, current != DemandWord.unlimited {
      let (isDone, actual) = outstanding.weakCompareExchange(
        expected: current, desired: current - 1, ordering: .relaxed)
      if isDone { return }
      current = actual
    }
  }

  /// Called with the lock held, which keeps it in step with `connect`; values are counted off meanwhile.
  private func lockedAdd(_ demand: Subscribers.Demand) {
    let more = DemandWord.count(demand)
    var current = outstanding.load(ordering: .relaxed)
    while true {
      let (isDone, actual) = outstanding.weakCompareExchange(
        expected: current, desired: DemandWord.sum(current, more), ordering: .relaxed)
      if isDone { return }
      current = actual
    }
  }

  /// Counts what downstream has asked for on receiving a value.
  ///
  /// - Returns: The demand to return to the upstream that delivered the value. If another has taken its place, that has been
  ///   asked.
  @usableFromInline
  func grant(_ demand: Subscribers.Demand, to number: Int) -> Subscribers.Demand {
    var other: (any Subscription)?
    let isCurrent = lock.withLock {
      let place = place.load(ordering: .relaxed)
      guard place >= 0 else { return false }
      lockedAdd(demand)
      if place == 2 * number + 1 { return true }
      other = upstream
      return false
    }
    other?.request(demand)
    return isCurrent ? demand : .none
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    if !acceptsNone { demand.assertNonZero() }
    var upstream: (any Subscription)?
    lock.withLock {
      if place.load(ordering: .relaxed) >= 0 {
        lockedAdd(demand)
        upstream = self.upstream
      }
    }
    upstream?.request(demand)
  }

  // Ending.

  /// Ends the stream and releases everything.
  ///
  /// - Returns: Whether it was under way, so that downstream must get the completion, and what to cancel.
  @usableFromInline
  func end() -> (wasOpen: Bool, upstream: (any Subscription)?, other: (any Subscription)?) {
    var upstream: (any Subscription)?
    var other: (any Subscription)?
    var downstream: Downstream?
    let wasOpen = lock.withLock {
      swap(&upstream, &self.upstream)
      swap(&other, &self.other)
      swap(&downstream, &self.downstream)
      return place.exchange(-1, ordering: .acquiringAndReleasing) >= 0
    }
    return (wasOpen, upstream, other)
  }

  @usableFromInline
  func cancel() {
    let (_, upstream, other) = end()
    upstream?.cancel()
    other?.cancel()
  }

  @usableFromInline var description: String { name.description }

  @usableFromInline var customMirror: Mirror {
    guard isReflecting else { return Mirror(self, children: EmptyCollection()) }
    let downstream = lock.withLock { self.downstream }
    let demand = DemandWord.demand(outstanding.load(ordering: .relaxed))
    return mirror(("downstream", downstream as Any), ("demand", demand))
  }
}

extension DemandWord {
  /// The demand that a count stands for.
  @usableFromInline
  static func demand(_ count: UInt64) -> Subscribers.Demand {
    count >= unlimited ? .unlimited : .max(Int(count))
  }
}
