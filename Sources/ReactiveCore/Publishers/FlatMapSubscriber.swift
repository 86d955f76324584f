import Synchronization

/// Merges the streams of the publishers that are under way.
///
/// Requests one value at a time from each child, unless downstream has unlimited demand. A value that comes while there is no
/// demand, or while another is being delivered, waits in a queue; the caller that delivers drains it. So downstream gets one
/// thing at a time and the stack does not grow. A child that has ended keeps its slot until its values have left the queue. Only
/// then another one is requested from upstream, so the number of allowed publishers bounds the queue.
@usableFromInline
@safe
final class FlatMapSubscriber<Input, Failure, Child: Publisher, Downstream: Subscriber>: Subscriber,
  Subscription, SubscriptionAwaiting, OperatorPart
where Child.Failure == Failure, Downstream.Input == Child.Output, Downstream.Failure == Failure {
  @usableFromInline typealias Output = Child.Output

  @usableFromInline let maxPublishers: Subscribers.Demand
  @usableFromInline let transform: (Input) -> Child

  /// Whether values from the outer stream are wanted. Written under the lock.
  @usableFromInline let isOpen = Atomic<Bool>(false)

  @usableFromInline let gate = DrainGate()
  /// Whether demand is unlimited, so that values need not be counted. Set by the holder of the gate, when nothing
  /// waits.
  @usableFromInline let isUnlimited = Atomic<Bool>(false)
  /// The place of a child that has ended, left for the next, which then needs no lock to get one; the table counts it as taken.
  /// Put here under the lock, taken by the outer stream, which makes one call at a time.
  @usableFromInline let spare = unsafe Atomic<UnsafeMutablePointer<ChildPlace>?>(nil)

  /// Used by the caller that holds the gate.
  @usableFromInline @exclusivity(unchecked) var downstream: Downstream?

  @usableFromInline let lock = Lock()
  // Guarded by the lock.
  @usableFromInline @exclusivity(unchecked) var outer: (any Subscription)?
  @usableFromInline @exclusivity(unchecked) var isConnected = false
  @usableFromInline @exclusivity(unchecked) var isOuterDone = false
  @usableFromInline @exclusivity(unchecked) var demand = Subscribers.Demand.none
  @usableFromInline @exclusivity(unchecked) var children = ChildTable()
  @usableFromInline @exclusivity(unchecked) var queue = RingBuffer<(value: Output, key: ChildKey)>()
  /// Values in the queue whose children have ended, if the number of publishers is limited.
  @usableFromInline @exclusivity(unchecked) var leftovers = 0
  /// Publishers that upstream will be asked for when leftovers have been delivered; never more than there are leftovers.
  @usableFromInline @exclusivity(unchecked) var postponed = 0
  /// How it ends, as soon as that is known.
  @usableFromInline @exclusivity(unchecked) var terminal: Subscribers.Completion<Failure>?
  /// Whether it has ended or been cancelled.
  @usableFromInline @exclusivity(unchecked) var isOver = false

  @inlinable
  init(maxPublishers: Subscribers.Demand, transform: @escaping (Input) -> Child, downstream: Downstream) {
    self.maxPublishers = maxPublishers
    self.transform = transform
    unsafe self.downstream = downstream
  }

  /// Whether there is no end in sight. Called with the lock held.
  @inlinable var lockedIsGoingOn: Bool { unsafe !isOver && terminal == nil }

  // The outer stream.

  @inlinable
  func receive(subscription: any Subscription) {
    let isAccepted = lock.withLock {
      guard unsafe !isConnected, lockedIsGoingOn else { return false }
      unsafe isConnected = true
      unsafe outer = subscription
      isOpen.store(true, ordering: .releasing)
      return true
    }
    if isAccepted {
      subscription.request(maxPublishers)
    } else {
      subscription.cancel()
    }
  }

  @inlinable
  func receive(_ input: Input) -> Subscribers.Demand {
    guard isOpen.load(ordering: .acquiring) else {
      ignoreIfEarly(.valueBeforeSubscription)
      return .none
    }
    let child = transform(input)
    if let key = addChild() { child.receive(subscriber: FlatMapChildSubscriber(parent: self, key: key)) }
    return .none
  }

  /// Whether the outer stream has yet to give its subscription.
  @usableFromInline var isAwaitingSubscription: Bool {
    lock.withLock { unsafe !isConnected && !isOver }
  }

  /// Makes room for a child, unless all has ended meanwhile.
  @inlinable
  func addChild() -> ChildKey? {
    guard isOpen.load(ordering: .acquiring) else { return nil }
    if let place = unsafe spare.load(ordering: .acquiring) {
      unsafe spare.store(nil, ordering: .releasing)
      return unsafe ChildKey(place)
    }
    return lock.withLock { unsafe lockedIsGoingOn ? children.add() : nil }
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>) {
    if ignoreIfEarly(.completionBeforeSubscription) { return }
    guard case .finished = completion else { return fail(completion, cancellingOuter: false) }
    var outer: (any Subscription)?
    let isLast = lock.withLock {
      unsafe isOuterDone = true
      isOpen.store(false, ordering: .releasing)
      unsafe swap(&outer, &self.outer)
      return lockedFinish()
    }
    if isLast, gate.requestDrain() { drain() }
  }

  /// Notes that it finishes if upstream and all children have finished. Called with the lock held.
  @inlinable
  func lockedFinish() -> Bool {
    guard unsafe isOuterDone, lockedIsGoingOn,
      unsafe children.count == (spare.load(ordering: .relaxed) == nil ? 0 : 1)
    else { return false }
    unsafe terminal = .finished
    return true
  }

  @usableFromInline
  func fail(_ completion: Subscribers.Completion<Failure>, of key: ChildKey? = nil, cancellingOuter: Bool) {
    var outer: (any Subscription)?
    var failed: (any Subscription)?
    var children: [any Subscription] = []
    let isFirst = lock.withLock {
      guard lockedIsGoingOn, key?.isOpen ?? true else { return false }
      unsafe terminal = completion
      isOpen.store(false, ordering: .releasing)
      unsafe swap(&outer, &self.outer)
      failed = key.flatMap { unsafe self.children.takeSubscription($0) }
      children = unsafe self.children.removeAll()
      return true
    }
    guard isFirst else { return }
    if cancellingOuter { outer?.cancel() }
    for child in children { child.cancel() }
    withExtendedLifetime(failed) {}
    if gate.requestDrain() { drain() }
  }

  // The children.

  @inlinable
  func receive(subscription: any Subscription, from key: ChildKey) {
    guard isUnlimited.load(ordering: .acquiring) else {
      return receiveCounting(subscription: subscription, from: key)
    }
    guard key.open() else { return subscription.cancel() }
    unsafe withUnsafePointer(to: subscription) { lent in
      unsafe key.lend(lent)
      subscription.request(.unlimited)
      // Many children have ended by now. The subscription of one that hasn't is kept.
      if key.needsSubscription { keep(subscription, from: key) }
    }
  }

  /// Keeps the subscription of a child that has been asked for everything; cancels it if that is still to be done.
  @usableFromInline @inline(never)
  func keep(_ subscription: any Subscription, from key: ChildKey) {
    if lock.withLock({ unsafe children.keepIfOpen(subscription, for: key) }) { return }
    cancelLent(key)
  }

  /// Cancels the subscription of a child that was open when all was cancelled, and not yet within reach.
  @usableFromInline @inline(never)
  func cancelLent(_ key: ChildKey) {
    let lent = lock.withLock { unsafe children.takeLent(key.place) }
    lent?.cancel()
  }

  @usableFromInline @inline(never)
  func receiveCounting(subscription: any Subscription, from key: ChildKey) {
    var request = Subscribers.Demand.none
    lock.withLock {
      guard lockedIsGoingOn, unsafe children.accept(subscription, for: key, isUnlimited: demand == .unlimited)
      else { return }
      request = unsafe demand == .unlimited ? .unlimited : .max(1)
    }
    if request != .none {
      subscription.request(request)
    } else {
      subscription.cancel()
    }
  }

  @inlinable
  func receive(_ value: Output, from key: ChildKey) -> Subscribers.Demand {
    guard isUnlimited.load(ordering: .acquiring), key.isOpen, gate.enter() else {
      return receiveCounting(value, from: key)
    }
    _ = unsafe downstream.unsafelyUnwrapped.receive(value)
    if !gate.leave() { drain() }
    return .none
  }

  @usableFromInline
  func receiveCounting(_ value: Output, from key: ChildKey) -> Subscribers.Demand {
    var isHolder = false
    var isQueued = false
    var isCounted = false
    if key.isAwaitingSubscription { return ignore(.valueBeforeSubscription) }
    if key.isClosedTooEarly { cancelLent(key) }
    lock.withLock {
      guard lockedIsGoingOn, key.isOpen else { return }
      if unsafe demand > .none, unsafe queue.isEmpty, gate.enter() {
        unsafe demand -= 1
        isHolder = true
        isCounted = unsafe children.isCounted(key)
      } else {
        unsafe queue.append((value, key))
        unsafe children.countWaiting(key, 1)
        isQueued = true
      }
    }
    guard isHolder else {
      if isQueued, gate.requestDrain() { drain() }
      return .none
    }
    unsafe add(downstream.unsafelyUnwrapped.receive(value))
    if !gate.leave() { drain() }
    return isCounted ? .max(1) : .none
  }

  @inlinable
  func receive(completion: Subscribers.Completion<Failure>, from key: ChildKey) {
    if key.isAwaitingSubscription {
      _ = ignore(.completionBeforeSubscription)
      return
    }
    guard case .finished = completion else { return fail(completion, of: key, cancellingOuter: true) }
    // The subscription is released outside the lock.
    unsafe withUnsafeTemporaryAllocation(of: (any Subscription).self, capacity: 1) { memory in
      let subscription = unsafe memory.baseAddress.unsafelyUnwrapped
      var isReleasable = false
      var isLast = false
      var asksForAnother = false
      lock.withLock {
        guard lockedIsGoingOn, key.isOpen else { return }
        isReleasable = unsafe children.remove(key, to: subscription)
        let waiting = unsafe children.takeWaiting(key)
        if unsafe spare.load(ordering: .relaxed) == nil {
          unsafe spare.store(key.place, ordering: .releasing)
        } else {
          unsafe children.vacate(key.place)
        }
        isLast = lockedFinish()
        guard !isLast, maxPublishers != .unlimited else { return }
        asksForAnother = waiting == 0
        unsafe leftovers += waiting
        unsafe postponed += asksForAnother ? 0 : 1
      }
      if isLast {
        if gate.requestDrain() { drain() }
      } else if asksForAnother {
        requestAnother()
      }
      if isReleasable { unsafe subscription.deinitialize(count: 1) }
    }
  }

  /// Ignores a call of a child that has not given its subscription.
  @usableFromInline @inline(never)
  func ignore(_ violation: Violation) -> Subscribers.Demand {
    violation.ignored(by: "FlatMap")
    return .none
  }

  @usableFromInline
  func requestAnother() {
    lock.withLock { unsafe outer }?.request(.max(1))
  }

  // While holding the gate.

  @usableFromInline
  func add(_ more: Subscribers.Demand) {
    if more > .none {
      lock.withLock { unsafe demand += more }
    }
  }

  /// Delivers queued values within the demand, then the completion if it has arrived, then releases the gate.
  @usableFromInline
  func drain() {
    repeat {
      guard gate.beginPass() else { return unsafe downstream = nil }
      while let (value, key) = takeNext() {
        unsafe add(downstream.unsafelyUnwrapped.receive(value))
        guard !gate.isEnded else { return unsafe downstream = nil }
        requestNext(key)
      }
      if let completion = takeEnd() { return finish(completion) }
    } while !gate.leave()
  }

  private func takeNext() -> (value: Output, key: ChildKey)? {
    lock.withLock {
      guard unsafe demand > .none, let next = unsafe queue.popFirst() else {
        if unsafe demand == .unlimited { isUnlimited.store(true, ordering: .releasing) }
        return nil
      }
      unsafe demand -= 1
      if next.key.isOpen {
        unsafe children.countWaiting(next.key, -1)
      } else if unsafe leftovers > 0 {
        unsafe leftovers -= 1
      }
      return next
    }
  }

  /// Asks for what may follow a value of the queue that has been delivered: another value of its child, or another publisher.
  private func requestNext(_ key: ChildKey) {
    var publishers = 0
    let (child, outer) = lock.withLock {
      publishers = unsafe postponed - Swift.min(postponed, leftovers)
      unsafe postponed -= publishers
      return unsafe (children.countedSubscription(key), self.outer)
    }
    child?.request(.max(1))
    if publishers > 0 { outer?.request(.max(publishers)) }
  }

  private func takeEnd() -> Subscribers.Completion<Failure>? {
    lock.withLock {
      // Queued values have no demand. A failure does not wait for demand.
      guard let terminal = unsafe terminal else { return nil }
      if case .finished = terminal, unsafe !queue.isEmpty { return nil }
      return terminal
    }
  }

  private func finish(_ completion: Subscribers.Completion<Failure>) {
    let target = unsafe downstream
    unsafe downstream = nil
    if case .holder = gate.end() {
      _ = takeAll()
      target?.receive(completion: completion)
    }
  }

  // From downstream.

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    var unbounded: [any Subscription] = []
    lock.withLock {
      guard unsafe !isOver else { return }
      unsafe self.demand += demand
      if unsafe self.demand == .unlimited { unbounded = unsafe children.makeUnlimited() }
    }
    if gate.requestDrain() { drain() }
    for subscription in unbounded {
      subscription.request(.unlimited)
    }
  }

  @usableFromInline
  func cancel() {
    let releaser = gate.end()
    let (outer, children) = takeAll()
    for child in children { child.cancel() }
    outer?.cancel()
    if case .caller = releaser { unsafe downstream = nil }
  }

  /// Releases everything but downstream and returns what is to be cancelled.
  private func takeAll() -> ((any Subscription)?, [any Subscription]) {
    var outer: (any Subscription)?
    var children: [any Subscription] = []
    var queue = RingBuffer<(value: Output, key: ChildKey)>()
    lock.withLock {
      unsafe isOver = true
      isOpen.store(false, ordering: .releasing)
      unsafe swap(&outer, &self.outer)
      children = unsafe self.children.removeAll()
      unsafe swap(&queue, &self.queue)
    }
    return (outer, children)
  }

  @usableFromInline var description: String { "FlatMap" }
}
