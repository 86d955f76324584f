import Synchronization

/// One subscription to a current value subject.
///
/// Two callers may have a value for the subscriber: one sends to all subscribers of the subject, and one requests before the
/// subscriber has received the current value. The first of them delivers; the value of the other is kept for it. Once the
/// subscriber has asked for everything and has got a first value, only the sending caller delivers, without a lock.
@usableFromInline
@safe
final class CurrentValueConduit<Output, Failure: Error>: ListedSubscription, Subscription, OperatorPart {
  @usableFromInline typealias Parent = CurrentValueSubject<Output, Failure>

  /// Used by the caller that delivers, until released.
  @usableFromInline let downstream: Unmanaged<AnySubscriberBase<Output, Failure>>

  /// Whether only the sending caller delivers. Written under the lock.
  @usableFromInline let isSettled = Atomic<Bool>(false)

  /// The number of the last value delivered; written by the caller that delivers, read by the next.
  @usableFromInline @exclusivity(unchecked) var lastVersion: UInt64?

  private let lock = Lock()
  // Guarded by the lock.
  private var subject: Parent?
  private var demand = Subscribers.Demand.none
  private var isStale = true  // the current value is not delivered
  private var isDelivering = false
  private var waiting = RingBuffer<(value: Output, version: UInt64)>()  // within demand
  private var completion: Subscribers.Completion<Failure>?
  private var isCompletionDelivered = false
  private var isOpen = false
  private var isReleased = false
  private var mayRelease = false

  init(subject: Parent, downstream: AnySubscriber<Output, Failure>) {
    self.subject = subject
    unsafe self.downstream = unsafe .passRetained(downstream.box)
  }

  deinit {
    if !isReleased { unsafe downstream.release() }
  }

  /// Delivers the value if there is demand. Called by the sending caller.
  @inlinable @inline(__always)
  func offer(_ value: Output, version: UInt64) {
    if isSettled.load(ordering: .acquiring) {
      if let lastVersion = unsafe lastVersion, version <= lastVersion { return }
      _ = unsafe downstream._withUnsafeGuaranteedRef { $0.deliver($0, value) }
    } else {
      offerCounting(value, version: version)
    }
  }

  @usableFromInline
  func offerCounting(_ value: Output, version: UInt64) {
    let isOurs = lock.withLock {
      if subject == nil { return false }
      if let lastVersion = unsafe lastVersion, version <= lastVersion { return false }
      guard demand > .none else {
        isStale = true
        return false
      }
      demand -= 1
      if isDelivering {
        waiting.append((value, version))
        return false
      }
      isStale = false
      isDelivering = true
      return true
    }
    if isOurs { deliver(value, version: version) }
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    let subject: Parent? = lock.withLock {
      guard let subject = self.subject else { return nil }
      self.demand += demand
      if isDelivering || !isStale {
        lockedSettle()
        return nil
      }
      self.demand -= 1
      isStale = false
      isDelivering = true
      return subject
    }
    if let subject {
      let (value, version) = subject.snapshot()
      deliver(value, version: version)
    }
  }

  /// Delivers a value that is within demand, then what has come meanwhile.
  private func deliver(_ value: Output, version: UInt64) {
    var next: (value: Output, version: UInt64)? = (value, version)
    while let (value, version) = next {
      let isWanted = lock.withLock {
        if let lastVersion = unsafe lastVersion, version <= lastVersion {
          demand += 1
          return false
        }
        unsafe lastVersion = version
        return subject != nil
      }
      let more = unsafe isWanted ? downstream._withUnsafeGuaranteedRef { $0.deliver($0, value) } : .none
      next = nextAfterDelivery(more)
    }
  }

  /// Returns what to deliver after a value; when nothing is left, the caller stops delivering.
  private func nextAfterDelivery(_ more: Subscribers.Demand) -> (value: Output, version: UInt64)? {
    var isLatestWanted = false
    var next: (value: Output, version: UInt64)?
    var subject: Parent?
    var isReleasable = false
    var completion: Subscribers.Completion<Failure>?
    lock.withLock {
      demand += more
      subject = self.subject
      if subject != nil, let first = waiting.popFirst() {
        next = first
      } else if subject != nil, isStale, demand > .none {
        demand -= 1
        isStale = false
        isLatestWanted = true
      } else {
        isDelivering = false
        completion = lockedTakeCompletion()
        lockedSettle()
        isReleasable = lockedReleasable()
      }
    }
    if isLatestWanted { return subject?.snapshot() }
    if let completion {
      deliver(completion)
    } else if isReleasable {
      unsafe downstream.release()
    }
    return next
  }

  private func lockedSettle() {
    let settled = subject != nil && demand == .unlimited && !isStale && !isDelivering && completion == nil
    if settled != isSettled.load(ordering: .relaxed) { isSettled.store(settled, ordering: .releasing) }
  }

  /// Delivers the completion, after the subscription and the values that are being delivered. Called by the sending caller.
  func finish(_ completion: Subscribers.Completion<Failure>) {
    let ready: Subscribers.Completion<Failure>? = lock.withLock {
      self.completion = completion
      return lockedTakeCompletion()
    }
    if let ready { deliver(ready) }
  }

  /// Called once the subscriber knows its subscription.
  func open() {
    let ready: Subscribers.Completion<Failure>? = lock.withLock {
      isOpen = true
      return lockedTakeCompletion()
    }
    if let ready { deliver(ready) }
  }

  private func lockedTakeCompletion() -> Subscribers.Completion<Failure>? {
    guard isOpen, !isDelivering, subject != nil, !isCompletionDelivered, let completion else { return nil }
    isCompletionDelivered = true
    isDelivering = true
    return completion
  }

  private func deliver(_ completion: Subscribers.Completion<Failure>) {
    unsafe downstream._withUnsafeGuaranteedRef { $0.receive(completion: completion) }
    var subject: Parent?
    let isReleasable = lock.withLock {
      swap(&subject, &self.subject)
      isDelivering = false
      return lockedReleasable()
    }
    if isReleasable { unsafe downstream.release() }
  }

  @usableFromInline
  func cancel() {
    var subject: Parent?
    var waiting = RingBuffer<(value: Output, version: UInt64)>()
    lock.withLock {
      swap(&subject, &self.subject)
      swap(&waiting, &self.waiting)
      isSettled.store(false, ordering: .releasing)
    }
    subject?.subscribers.remove(self)
  }

  @usableFromInline
  override func releaseSubscriber() {
    let isReleasable = lock.withLock {
      mayRelease = true
      return lockedReleasable()
    }
    if isReleasable { unsafe downstream.release() }
  }

  /// The subscriber is released when the list has released it and no caller delivers or is about to.
  private func lockedReleasable() -> Bool {
    guard mayRelease, !isDelivering, !isReleased, subject == nil || completion == nil else { return false }
    isReleased = true
    return true
  }

  @usableFromInline var description: String { "CurrentValueSubject" }

  @usableFromInline var customMirror: Mirror {
    let (subject, downstream, demand): (Parent?, AnySubscriber<Output, Failure>?, Subscribers.Demand) =
      lock.withLock {
        unsafe (
          self.subject, isReleased ? nil : AnySubscriber(box: self.downstream.takeUnretainedValue()),
          self.demand
        )
      }
    return mirror(
      ("parent", subject as Any), ("downstream", downstream as Any), ("demand", demand),
      ("subject", subject as Any))
  }
}
