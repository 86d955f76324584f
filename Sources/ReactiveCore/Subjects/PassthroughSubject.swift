import Synchronization

/// A subject that passes on what it is sent to the subscribers it has at that moment.
///
/// A value goes to those subscribers that have asked for more than they got; the others miss it. The functions may be
/// called from any thread. Each subscriber gets its values one at a time, in the order in which they were sent, all
/// subscribers in the same order. A value sent while another is being delivered, by another thread or by a subscriber, is
/// delivered right after it by the caller that delivers, so `send` may return before that has happened. Unlike in Combine, where it
/// is delivered from within `send`, a subscriber that sends to its own subject does not make the stack grow.
public final class PassthroughSubject<Output, Failure: Error>: Subject {
  @usableFromInline typealias Conduit = PassthroughConduit<Output, Failure>

  @usableFromInline let subscribers = SubscriberList<Conduit, SubjectSignal<Output, Failure>>()

  // Guarded by the list's lock.
  @usableFromInline @exclusivity(unchecked) var isClosed = false
  @exclusivity(unchecked) private var completion: Subscribers.Completion<Failure>?
  @exclusivity(unchecked) private var sources = SubjectSources()
  @exclusivity(unchecked) private var hasDemand = false

  /// A subject without subscribers.
  public init() {}

  deinit {
    for source in unsafe sources.all {
      source.cancel()
    }
  }

  public func send(subscription: any Subscription) {
    var released: [any Subscription] = []
    let hasDemand = subscribers.lock.withLock {
      released = unsafe sources.append(subscription)
      return unsafe self.hasDemand
    }
    withExtendedLifetime(released) {}
    if hasDemand { subscription.request(.unlimited) }
  }

  @inlinable
  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    let subscriber = AnySubscriber(subscriber)
    let conduit = Conduit(subject: self, downstream: subscriber)
    if admit(conduit) {
      subscriber.receive(subscription: conduit)
      conduit.open()
    } else {
      subscriber.receive(subscription: Subscriptions.empty)
      subscriber.receive(completion: end)
    }
  }

  /// Adds a conduit, unless the subject has completed.
  @usableFromInline
  func admit(_ conduit: Conduit) -> Bool {
    subscribers.lock.withLock {
      if unsafe isClosed { return false }
      subscribers.lockedAdd(conduit)
      return true
    }
  }

  /// The completion of a subject that has completed.
  @usableFromInline var end: Subscribers.Completion<Failure> {
    subscribers.lock.withLock { unsafe completion.unsafelyUnwrapped }
  }

  @inlinable
  public func send(_ value: Output) {
    let isSender = subscribers.lock.withLock {
      unsafe !isClosed && subscribers.lockedBeginSending(orQueue: .value(value))
    }
    if isSender {
      subscribers.forEachMember { $0.offer(value) }
      subscribers.endSending { deliver($0) }
    }
  }

  public func send(completion: Subscribers.Completion<Failure>) {
    let isSender = subscribers.lock.withLock {
      if unsafe isClosed { return false }
      unsafe isClosed = true
      unsafe self.completion = completion
      return subscribers.lockedBeginSending(orQueue: .completion(completion))
    }
    if isSender {
      deliver(.completion(completion))
      subscribers.endSending { deliver($0) }
    }
  }

  @usableFromInline
  func deliver(_ signal: SubjectSignal<Output, Failure>) {
    switch signal {
    case .value(let value):
      subscribers.forEachMember { $0.offer(value) }
    case .completion(let completion):
      subscribers.forEachMember { $0.finish(completion) }
      subscribers.removeAll()
      var sources = SubjectSources()
      subscribers.lock.withLock { unsafe swap(&sources, &self.sources) }
    }
  }

  /// Called when a subscriber requests values: from the first time on, the demand on the sources is unlimited.
  func acknowledgeDemand() {
    let sources: [any Subscription] = subscribers.lock.withLock {
      if unsafe hasDemand { return [] }
      unsafe hasDemand = true
      return unsafe self.sources.all
    }
    for source in sources {
      source.request(.unlimited)
    }
  }
}

// `SubscriberList` says how the state is guarded. Values cross threads, hence the condition.
extension PassthroughSubject: @unchecked Sendable where Output: Sendable {}

/// A signal from a subject to its subscribers.
@usableFromInline
enum SubjectSignal<Output, Failure: Error> {
  case value(Output)
  case completion(Subscribers.Completion<Failure>)
}

/// One subscription to a passthrough subject.
@usableFromInline
@safe
final class PassthroughConduit<Output, Failure: Error>: ListedSubscription, Subscription, OperatorPart {
  @usableFromInline typealias Parent = PassthroughSubject<Output, Failure>

  /// Used by the sending caller, until released.
  @usableFromInline let downstream: Unmanaged<AnySubscriberBase<Output, Failure>>

  /// The demand that isn't met yet; `closed` after cancellation or completion.
  @usableFromInline let demand = Atomic<UInt>(0)

  @usableFromInline let lock = Lock()
  // Guarded by the lock.
  @usableFromInline @exclusivity(unchecked) var subject: Parent?
  @usableFromInline @exclusivity(unchecked) var isReleased = false
  @usableFromInline @exclusivity(unchecked) var isOpen = false
  @usableFromInline @exclusivity(unchecked) var isCompletionDue = false  // once it is open

  @inlinable static var closed: UInt { .max }

  @inlinable
  init(subject: Parent, downstream: AnySubscriber<Output, Failure>) {
    unsafe self.subject = subject
    unsafe self.downstream = unsafe .passRetained(downstream.box)
  }

  deinit {
    if unsafe !isReleased { unsafe downstream.release() }
  }

  /// Delivers the value if there is demand. Called by the sending caller.
  @inlinable @inline(__always)
  func offer(_ value: Output) {
    if demand.load(ordering: .acquiring) == Subscribers.Demand.unlimited.rawValue {
      _ = unsafe downstream._withUnsafeGuaranteedRef { $0.deliver($0, value) }
    } else {
      offerCounting(value)
    }
  }

  @inlinable
  func offerCounting(_ value: Output) {
    var current = demand.load(ordering: .acquiring)
    while true {
      if current == 0 || current == Self.closed { return }
      if current == Subscribers.Demand.unlimited.rawValue { break }
      let (isOurs, actual) = demand.weakCompareExchange(
        expected: current, desired: current - 1, ordering: .acquiringAndReleasing)
      if isOurs { break }
      current = actual
    }
    let more = unsafe downstream._withUnsafeGuaranteedRef { $0.deliver($0, value) }
    if more != .none { add(more) }
  }

  /// Delivers the completion, after the subscription if that is still being delivered. Called by the sending caller.
  func finish(_ completion: Subscribers.Completion<Failure>) {
    let isReady = lock.withLock {
      if unsafe !isOpen { unsafe isCompletionDue = true }
      return unsafe isOpen
    }
    if isReady { deliver(completion) }
  }

  /// Called once the subscriber knows its subscription.
  @usableFromInline
  func open() {
    let isDue = lock.withLock {
      unsafe isOpen = true
      return unsafe isCompletionDue
    }
    if isDue { finishLate() }
  }

  @inline(never)
  private func finishLate() {
    if let subject = lock.withLock({ unsafe subject }) { deliver(subject.end) }
    releaseSubscriber()
  }

  private func deliver(_ completion: Subscribers.Completion<Failure>) {
    if demand.exchange(Self.closed, ordering: .acquiringAndReleasing) != Self.closed {
      unsafe downstream._withUnsafeGuaranteedRef { $0.receive(completion: completion) }
      _ = takeSubject()
    }
  }

  @usableFromInline
  override func releaseSubscriber() {
    let isOurs = lock.withLock {
      // If the completion came before `open()`, that releases the subscriber.
      if unsafe isReleased || (!isOpen && isCompletionDue) { return false }
      unsafe isReleased = true
      return true
    }
    if isOurs { unsafe downstream.release() }
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    guard let subject = lock.withLock({ unsafe subject }) else { return }
    add(demand)
    subject.acknowledgeDemand()
  }

  @usableFromInline
  func cancel() {
    if demand.exchange(Self.closed, ordering: .acquiringAndReleasing) != Self.closed {
      takeSubject()?.subscribers.remove(self)
    }
  }

  @usableFromInline
  func add(_ more: Subscribers.Demand) {
    var current = demand.load(ordering: .relaxed)
    while current != Self.closed {
      let sum = Subscribers.Demand(rawValue: current) + more
      let (isOurs, actual) = demand.weakCompareExchange(
        expected: current, desired: sum.rawValue, ordering: .acquiringAndReleasing)
      if isOurs { return }
      current = actual
    }
  }

  private func takeSubject() -> Parent? {
    lock.withLock {
      defer { unsafe subject = nil }
      return unsafe subject
    }
  }

  @usableFromInline var description: String { "PassthroughSubject" }

  @usableFromInline var customMirror: Mirror {
    let (subject, downstream): (Parent?, AnySubscriber<Output, Failure>?) = lock.withLock {
      unsafe (self.subject, isReleased ? nil : AnySubscriber(box: self.downstream.takeUnretainedValue()))
    }
    let demand = demand.load(ordering: .relaxed)
    return mirror(
      ("parent", subject as Any), ("downstream", downstream as Any),
      ("demand", Subscribers.Demand(rawValue: demand == Self.closed ? 0 : demand)),
      ("subject", subject as Any))
  }
}
