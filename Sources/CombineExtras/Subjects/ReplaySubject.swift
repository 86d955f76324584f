import PortableCombine

/// A subject that keeps its latest values for later subscribers.
///
/// A subscriber gets the values kept when it subscribed, then those that follow, as it asks for them: in
/// the order in which they were sent, none twice. The completion comes after the last value, also to
/// subscribers that come after it.
///
///     let scores = ReplaySubject<Int, Never>(bufferSize: 2)
///     scores.send(1)
///     scores.send(2)
///     scores.send(3)
///     let subscription = scores.sink { print($0) }  // 2, 3
///     scores.send(4)  // 4
///
/// All subscribers read from one buffer. A value sent while a subscriber wants more than it got will reach it, however
/// busy it is; the buffer holds more than its size for so long. A subscriber without demand has a backlog of at most
/// the buffer's size: if it falls farther behind, the oldest values are dropped, and it continues with the oldest value
/// in the buffer. That includes one that asks for a value at a time while it is busy with one.
///
/// The functions may be called from any thread. A subscriber gets one value at a time. A value sent while
/// it is busy with another, on another thread or from within, reaches it afterwards, by way of the thread
/// that is delivering.
public final class ReplaySubject<Output, Failure: Error>: Subject {
  /// How many values are kept.
  public let bufferSize: Int

  @usableFromInline let lock = Lock()
  // Guarded by the lock.
  @usableFromInline var buffer = ReplayBuffer<Output>()
  @usableFromInline var members = SlotList<ReplaySubscription<Output, Failure>>()
  @usableFromInline var completion: Subscribers.Completion<Failure>?
  @usableFromInline var sources: [any Subscription] = []
  @usableFromInline var isClosed = false
  @usableFromInline var hasCompleted = false  // the completion has arrived

  /// A subject without values.
  ///
  /// - Parameter bufferSize: How many values are kept, 0 or more; all of them unless given.
  @inlinable
  public init(bufferSize: Int = .max) {
    precondition(bufferSize >= 0, "the size of a buffer cannot be negative")
    self.bufferSize = bufferSize
  }

  @inlinable
  deinit {
    for source in sources { source.cancel() }
  }

  @inlinable
  public func receive<S: Subscriber>(subscriber: S) where S.Input == Output, S.Failure == Failure {
    attach(AnySubscriber(subscriber))
  }

  /// Attaches a subscriber.
  ///
  /// - Parameter onEnd: Called once, when the subscriber cancels or right before it gets the completion.
  @inlinable
  func attach(_ subscriber: AnySubscriber<Output, Failure>, onEnd: (() -> Void)? = nil) {
    let subscription = ReplaySubscription(subject: self, downstream: subscriber, onEnd: onEnd)
    lock.withLock {
      subscription.next = firstKept
      members.add(subscription)
    }
    subscriber.receive(subscription: subscription)
    let isIdle = lock.withLock {
      subscription.isAttached = true
      return lockedIsIdle(subscription)
    }
    if !isIdle { deliverOwed(subscription) }
  }

  /// Sends a value to the subscribers, and keeps it for later ones. Has no effect after the completion.
  @inlinable
  public func send(_ value: Output) {
    var slots: [ReplaySubscription<Output, Failure>?] = []
    let dropped: Output? = lock.withLock {
      guard completion == nil, !isClosed else { return nil }
      buffer.append(value)
      slots = members.slots
      return lockedDrop()
    }
    withExtendedLifetime(dropped) {}
    for case let subscription? in slots {
      deliverOwed(subscription)
    }
  }

  /// Ends the stream. A subscriber that has not had all its values yet gets the completion after them.
  @inlinable
  public func send(completion: Subscribers.Completion<Failure>) {
    var slots: [ReplaySubscription<Output, Failure>?] = []
    var sources: [any Subscription] = []
    lock.withLock {
      guard self.completion == nil, !isClosed else { return }
      self.completion = completion
      hasCompleted = true
      slots = members.slots
      swap(&sources, &self.sources)
    }
    for case let subscription? in slots {
      deliverOwed(subscription)
    }
  }

  /// Asks the source for everything, at once.
  @inlinable
  public func send(subscription: any Subscription) {
    let isOpen = lock.withLock {
      guard completion == nil, !isClosed else { return false }
      sources.append(subscription)
      return true
    }
    if isOpen {
      subscription.request(.unlimited)
    } else {
      subscription.cancel()
    }
  }

  /// Cancels the sources and drops the values, for good.
  @inlinable
  func close() {
    var sources: [any Subscription] = []
    var buffer = ReplayBuffer<Output>()
    lock.withLock {
      isClosed = true
      swap(&sources, &self.sources)
      swap(&buffer, &self.buffer)
    }
    for source in sources { source.cancel() }
  }
}

// The lock guards the state. Values cross threads, hence the condition.
extension ReplaySubject: @unchecked Sendable where Output: Sendable {}

// Delivering to a subscriber. The subject's lock protects the state of a subscription.
extension ReplaySubject {
  @usableFromInline typealias Member = ReplaySubscription<Output, Failure>

  @usableFromInline
  enum Step {
    case deliver(Output, AnySubscriber<Output, Failure>)
    case finish(Subscribers.Completion<Failure>, AnySubscriber<Output, Failure>, onEnd: (() -> Void)?)
    case rest(isOverfull: Bool)
  }

  /// The first value that is kept for a subscriber that has asked for nothing so far. Called with the lock held.
  @inlinable var firstKept: Int { buffer.count > bufferSize ? buffer.end - bufferSize : buffer.start }

  @inlinable
  func request(_ demand: Subscribers.Demand, by member: Member) {
    let isIdle = lock.withLock {
      member.isAttached = true
      lockedAdd(demand, to: member)
      return lockedIsIdle(member)
    }
    if !isIdle { deliverOwed(member) }
  }

  /// Whether there is nothing to deliver to a member and nothing to drop. Called with the lock held.
  ///
  /// Spares a new subscriber, which usually finds nothing, the look at the values.
  @inlinable
  func lockedIsIdle(_ member: Member) -> Bool {
    !hasCompleted && member.next >= buffer.end && buffer.count <= bufferSize
  }

  @inlinable
  func lockedAdd(_ demand: Subscribers.Demand, to member: Member) {
    guard demand > 0, member.downstream != nil else { return }
    if member.demand == .none { member.next = Swift.max(member.next, firstKept) }
    member.demand += demand
  }

  /// Delivers the subscriber's backlog within its demand, unless another caller is delivering already.
  @inlinable
  func deliverOwed(_ member: Member) {
    let isFree = lock.withLock {
      if member.isDelivering { return false }
      member.isDelivering = true
      return true
    }
    guard isFree else { return }
    var more = Subscribers.Demand.none
    while true {
      let step = lock.withLock {
        lockedAdd(more, to: member)
        return lockedStep(member)
      }
      switch step {
      case .deliver(let value, let downstream): more = downstream.receive(value)
      case .finish(let completion, let downstream, let onEnd):
        onEnd?()
        downstream.receive(completion: completion)
        return
      case .rest(let isOverfull):
        if isOverfull { trim() }
        return
      }
    }
  }

  @inlinable
  func lockedStep(_ member: Member) -> Step {
    if let downstream = member.downstream {
      if member.demand == .none { member.next = Swift.max(member.next, firstKept) }
      if member.next < buffer.end {
        if member.demand > 0 {
          member.demand -= 1
          member.next += 1
          return .deliver(buffer[member.next - 1], downstream)
        }
      } else if let completion, member.isAttached {
        members.remove(member)
        let (_, onEnd) = member.lockedEnd()
        return .finish(completion, downstream, onEnd: onEnd)
      }
    }
    member.isDelivering = false
    return .rest(isOverfull: buffer.count > bufferSize)
  }

  @inlinable
  func remove(_ member: Member) {
    let (downstream, onEnd) = lock.withLock {
      members.remove(member)
      return member.lockedEnd()
    }
    withExtendedLifetime(downstream) {}
    onEnd?()
    trim()
  }

  /// Removes the oldest value if the buffer exceeds its size and no subscriber needs it. Called with the lock held.
  @inlinable
  func lockedDrop() -> Output? {
    guard buffer.count > bufferSize else { return nil }
    for case let member? in members.slots where member.demand > 0 && member.next <= buffer.start {
      return nil
    }
    return buffer.removeFirst()
  }

  @inlinable
  func trim() {
    // One by one, so that values are released outside the lock.
    while true {
      let dropped = lock.withLock { lockedDrop() }
      if dropped == nil { return }
    }
  }
}

/// One subscriber's place in the buffer. Fields are guarded by the subject's lock unless said otherwise.
@usableFromInline
final class ReplaySubscription<Output, Failure: Error>: Subscription, SlotMember, CustomStringConvertible,
  CustomReflectable, CustomPlaygroundDisplayConvertible
{
  @usableFromInline var slot = -1

  /// The number of the next value to deliver.
  @usableFromInline var next = 0
  @usableFromInline var demand = Subscribers.Demand.none
  /// Whether a thread is delivering.
  @usableFromInline var isDelivering = false
  /// Whether the subscriber knows its subscription.
  @usableFromInline var isAttached = false
  @usableFromInline var downstream: AnySubscriber<Output, Failure>?
  @usableFromInline var onEnd: (() -> Void)?

  @usableFromInline let lock = Lock()
  @usableFromInline var subject: ReplaySubject<Output, Failure>?  // guarded by the lock here

  @inlinable
  init(
    subject: ReplaySubject<Output, Failure>, downstream: AnySubscriber<Output, Failure>,
    onEnd: (() -> Void)?
  ) {
    self.subject = subject
    self.downstream = downstream
    self.onEnd = onEnd
  }

  /// Releases the subscriber and the subject. Called with the subject's lock held, by a caller that keeps
  /// the subject alive.
  @inlinable
  func lockedEnd() -> (AnySubscriber<Output, Failure>?, onEnd: (() -> Void)?) {
    defer {
      downstream = nil
      onEnd = nil
      demand = .none
    }
    _ = takeSubject()
    return (downstream, onEnd)
  }

  @inlinable
  func takeSubject() -> ReplaySubject<Output, Failure>? {
    lock.withLock { subject.take() }
  }

  @inlinable
  func request(_ demand: Subscribers.Demand) {
    demand.assertNonZero()
    lock.withLock { subject }?.request(demand, by: self)
  }

  @inlinable func cancel() { takeSubject()?.remove(self) }

  @usableFromInline var description: String { "ReplaySubject" }

  @usableFromInline var customMirror: Mirror {
    Mirror(self, children: [("subject", lock.withLock { subject } as Any)])
  }

  @usableFromInline var playgroundDescription: Any { description }
}
