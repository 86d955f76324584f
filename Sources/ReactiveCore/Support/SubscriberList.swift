import Synchronization

/// The subscribers of a subject, and the order in which they get signals.
///
/// One caller at a time sends to the members. A call that comes meanwhile, from another thread or from a member that is receiving,
/// is queued, and the sending caller drains the queue before it stops. So all members get all signals in the same order, one at a
/// time. The stack does not grow when a subscriber sends to its own subject, and no lock is held while a member runs.
@usableFromInline
final class SubscriberList<Member: ListedSubscription, Signal> {
  @usableFromInline
  enum Pending {
    case add(ListedSubscription)
    case remove(ListedSubscription)
    case signal(Signal)
  }

  @usableFromInline let lock = Lock()

  // Guarded by the lock.
  @usableFromInline @exclusivity(unchecked) var isSending = false
  @usableFromInline @exclusivity(unchecked) var pending: [Pending] = []

  // Used by the sending caller; without one, by the holder of the lock.
  @usableFromInline @exclusivity(unchecked) var members = SubscriberSlots()
  @exclusivity(unchecked) private var spare: [Pending] = []

  @usableFromInline init() {}

  deinit { unsafe members.deallocate() }
}

/// A subject's entry for each of its subscribers.
///
/// A class that isn't generic, so that adding and removing need no look-up of types at run time.
@usableFromInline
class ListedSubscription {
  /// The member's index in the list; -1 if it isn't in the list. Used by the list alone.
  @exclusivity(unchecked) fileprivate final var slot = -1

  @usableFromInline init() {}

  /// Releases the subscriber. Called once, after the last signal.
  @usableFromInline func releaseSubscriber() {}
}

// Adding and removing. Each may be called at any time, from any thread.
extension SubscriberList {
  /// Adds a member, which gets all later signals. Called with the lock held.
  func lockedAdd(_ member: ListedSubscription) {
    if unsafe isSending {
      lockedDefer(.add(member))
    } else {
      unsafe members.add(member)
    }
  }

  /// Removes a member and releases its subscriber.
  func remove(_ member: ListedSubscription) {
    let isRemoved = lock.withLock {
      if unsafe isSending {
        lockedDefer(.remove(member))
        return false
      }
      return unsafe members.remove(member)
    }
    if isRemoved { release(member) }
  }

  @inline(never)
  private func lockedDefer(_ change: Pending) { unsafe pending.append(change) }

  /// Releases a member's subscriber, and the reference that its slot had.
  private func release(_ member: ListedSubscription) {
    member.releaseSubscriber()
    unsafe Unmanaged.passUnretained(member).release()
  }
}

// Sending. The caller decides under the lock whether it may send, sends to the members, then drains the queue.
extension SubscriberList {
  /// Begins to send, or queues the signal if another caller is sending. Called with the lock held.
  ///
  /// - Returns: Whether the caller has to send.
  @inlinable @inline(__always)
  func lockedBeginSending(orQueue signal: @autoclosure () -> Signal) -> Bool {
    if unsafe isSending {
      unsafe pending.append(.signal(signal()))
      return false
    }
    unsafe isSending = true
    return true
  }

  /// Calls the body with each member. Called by the sending caller.
  @inlinable @inline(__always)
  func forEachMember(_ body: (Member) -> Void) {
    let slots = unsafe members.slots
    for index in unsafe 0..<members.count {
      if let member = unsafe slots[index] {
        unsafe member._withUnsafeGuaranteedRef { unsafe body(unsafeDowncast($0, to: Member.self)) }
      }
    }
  }

  /// Drains the queue, then stops sending.
  @inlinable @inline(__always)
  func endSending(_ deliver: (Signal) -> Void) {
    let isDone = lock.withLock {
      if unsafe pending.isEmpty { unsafe isSending = false }
      return unsafe !isSending
    }
    if !isDone { drain(deliver) }
  }

  @usableFromInline
  func drain(_ deliver: (Signal) -> Void) {
    while true {
      // Two arrays take turns, so that a subscriber that sends to its own subject causes no allocation for each value.
      var current = unsafe spare
      unsafe spare = []
      let isDone = lock.withLock {
        if unsafe pending.isEmpty {
          unsafe isSending = false
          return true
        }
        unsafe swap(&current, &pending)
        return false
      }
      if isDone { return }
      for change in current {
        switch change {
        case .add(let member): unsafe members.add(member)
        case .remove(let member): if unsafe members.remove(member) { release(member) }
        case .signal(let signal): deliver(signal)
        }
      }
      current.removeAll(keepingCapacity: true)
      unsafe spare = current
    }
  }

  /// Removes all members and releases their subscribers. Called by the sending caller.
  func removeAll() {
    let leaving = unsafe members.takeAll()
    for member in leaving {
      release(member)
    }
  }
}

/// The members of a subscriber list, in the order they came.
///
/// Removing is O(1): the slot is emptied, and the slots are compacted when half of them are empty. An occupied slot has a reference
/// to its member.
@usableFromInline
@safe
struct SubscriberSlots {
  @usableFromInline var slots = UnsafeMutablePointer<Unmanaged<ListedSubscription>?>.allocate(capacity: 1)
  @usableFromInline var count = 0
  private var capacity = 1
  private var emptySlots = 0

  init() {}

  func deallocate() {
    for index in 0..<count {
      unsafe slots[index]?.release()
    }
    unsafe slots.deallocate()
  }

  mutating func add(_ member: ListedSubscription) {
    if count == capacity {
      let larger = UnsafeMutablePointer<Unmanaged<ListedSubscription>?>.allocate(capacity: capacity * 2)
      unsafe larger.moveInitialize(from: slots, count: count)
      unsafe slots.deallocate()
      unsafe slots = unsafe larger
      capacity *= 2
    }
    unsafe (slots + count).initialize(to: .passRetained(member))
    unsafe member.slot = count
    count += 1
  }

  /// Empties the member's slot, keeping the reference the slot had.
  ///
  /// - Returns: Whether it had a slot.
  mutating func remove(_ member: ListedSubscription) -> Bool {
    guard unsafe member.slot >= 0 else { return false }
    unsafe slots[member.slot] = nil
    if unsafe member.slot == count - 1 {
      count -= 1
    } else {
      emptySlots += 1
    }
    unsafe member.slot = -1
    if emptySlots == count {
      count = 0
      emptySlots = 0
    } else if emptySlots > 16, emptySlots > count / 2 {
      compact()
    }
    return true
  }

  /// Empties all slots, keeping the references they had.
  mutating func takeAll() -> [ListedSubscription] {
    var taken: [ListedSubscription] = []
    taken.reserveCapacity(count - emptySlots)
    for index in 0..<count {
      guard let member = unsafe slots[index]?.takeUnretainedValue() else { continue }
      unsafe member.slot = -1
      taken.append(member)
    }
    count = 0
    emptySlots = 0
    return taken
  }

  private mutating func compact() {
    var next = 0
    for index in 0..<count {
      guard let member = unsafe slots[index] else { continue }
      unsafe slots[next] = unsafe member
      unsafe member._withUnsafeGuaranteedRef { unsafe $0.slot = next }
      next += 1
    }
    count = next
    emptySlots = 0
  }
}
