import Synchronization

/// The subscribers of a subject, and the order in which they are told things.
///
/// One caller at a time tells the members something; it is *inside*. A call that comes meanwhile, from another thread or from
/// a member being told, leaves a note, which the caller inside works off before it leaves. So every member is told everything
/// in the same order, one thing at a time, on a stack that does not grow when a subject feeds itself, and no lock is held
/// while a member runs.
///
@usableFromInline
final class Roster<Member: RosterMember, Signal> {
  @usableFromInline
  enum Note {
    case add(RosterMember)
    case remove(RosterMember)
    case signal(Signal)
  }

  @usableFromInline let lock = Lock()

  // Guarded by the lock.
  @usableFromInline @exclusivity(unchecked) var isInside = false
  @usableFromInline @exclusivity(unchecked) var notes: [Note] = []

  // Belong to the caller inside; when nobody is inside, to the holder of the lock.
  @usableFromInline @exclusivity(unchecked) var members = RosterSlots()
  @exclusivity(unchecked) private var spareNotes: [Note] = []

  @usableFromInline
  init() {}

  deinit {
    unsafe members.deallocate()
  }
}

/// What a subject keeps for each of its subscribers.
///
/// A class that isn't generic, so that coming and going need no look-up of types at run time.
@usableFromInline
class RosterMember {
  /// Where the roster keeps the member; -1 if nowhere. Belongs to the roster.
  @exclusivity(unchecked) fileprivate final var slot = -1

  @usableFromInline
  init() {}

  /// Lets go of the subscriber. Called once, when nothing more will be told.
  @usableFromInline
  func retire() {}
}

// Coming and going. Each may be called at any time, from any thread.
extension Roster {
  /// Adds a member, to be told what is sent from now on. Called with the lock held.
  func lockedAdd(_ member: RosterMember) {
    if unsafe isInside {
      lockedNote(.add(member))
    } else {
      unsafe members.place(member)
    }
  }

  /// Removes a member and retires it.
  func remove(_ member: RosterMember) {
    let isRemoved = lock.withLock {
      if unsafe isInside {
        lockedNote(.remove(member))
        return false
      }
      return unsafe members.vacate(member)
    }
    if isRemoved {
      dismiss(member)
    }
  }

  @inline(never)
  private func lockedNote(_ note: Note) {
    unsafe notes.append(note)
  }

  /// Retires a member and gives up the reference its slot had.
  private func dismiss(_ member: RosterMember) {
    member.retire()
    unsafe Unmanaged.passUnretained(member).release()
  }
}

// Telling. The caller decides under the lock whether it may go in, tells the members, then leaves.
extension Roster {
  /// Goes in, or leaves a note if another caller is inside. Called with the lock held.
  ///
  /// - Returns: Whether the caller is inside and must tell the members itself.
  @inlinable
  @inline(__always)
  func lockedEnter(orNote signal: @autoclosure () -> Signal) -> Bool {
    if unsafe isInside {
      unsafe notes.append(.signal(signal()))
      return false
    }
    unsafe isInside = true
    return true
  }

  /// Calls the body with each member. Called inside.
  @inlinable
  @inline(__always)
  func tellAll(_ body: (Member) -> Void) {
    let slots = unsafe members.slots
    for index in unsafe 0..<members.count {
      if let member = unsafe slots[index] {
        unsafe member._withUnsafeGuaranteedRef { unsafe body(unsafeDowncast($0, to: Member.self)) }
      }
    }
  }

  /// Works off the notes, then leaves.
  @inlinable
  @inline(__always)
  func leave(_ tell: (Signal) -> Void) {
    let isOut = lock.withLock {
      if unsafe notes.isEmpty { unsafe isInside = false }
      return unsafe !isInside
    }
    if !isOut {
      workOff(tell)
    }
  }

  @usableFromInline
  func workOff(_ tell: (Signal) -> Void) {
    while true {
      // Two arrays take turns, so that a subject that feeds itself does not allocate for each value.
      var current = unsafe spareNotes
      unsafe spareNotes = []
      let isOut = lock.withLock {
        if unsafe notes.isEmpty {
          unsafe isInside = false
          return true
        }
        unsafe swap(&current, &notes)
        return false
      }
      if isOut { return }
      for note in current {
        switch note {
        case .add(let member): unsafe members.place(member)
        case .remove(let member): if unsafe members.vacate(member) { dismiss(member) }
        case .signal(let signal): tell(signal)
        }
      }
      current.removeAll(keepingCapacity: true)
      unsafe spareNotes = current
    }
  }

  /// Removes and retires all members. Called inside.
  func removeAll() {
    let leaving = unsafe members.takeAll()
    for member in leaving {
      dismiss(member)
    }
  }
}

/// The places of a roster's members, in the order they came.
///
/// Leaving is O(1): the slot is emptied, and slots are closed up when half of them are empty. An occupied slot has a reference
/// to its member.
@usableFromInline
@safe
struct RosterSlots {
  @usableFromInline var slots = UnsafeMutablePointer<Unmanaged<RosterMember>?>.allocate(capacity: 1)
  @usableFromInline var count = 0
  private var capacity = 1
  private var vacancies = 0

  init() {}

  func deallocate() {
    for index in 0..<count {
      unsafe slots[index]?.release()
    }
    unsafe slots.deallocate()
  }

  mutating func place(_ member: RosterMember) {
    if count == capacity {
      let larger = UnsafeMutablePointer<Unmanaged<RosterMember>?>.allocate(capacity: capacity * 2)
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
  mutating func vacate(_ member: RosterMember) -> Bool {
    guard unsafe member.slot >= 0 else { return false }
    unsafe slots[member.slot] = nil
    if unsafe member.slot == count - 1 {
      count -= 1
    } else {
      vacancies += 1
    }
    unsafe member.slot = -1
    if vacancies == count {
      count = 0
      vacancies = 0
    } else if vacancies > 16, vacancies > count / 2 {
      closeUp()
    }
    return true
  }

  /// Empties all slots, keeping the references they had.
  mutating func takeAll() -> [RosterMember] {
    var taken: [RosterMember] = []
    taken.reserveCapacity(count - vacancies)
    for index in 0..<count {
      guard let member = unsafe slots[index]?.takeUnretainedValue() else { continue }
      unsafe member.slot = -1
      taken.append(member)
    }
    count = 0
    vacancies = 0
    return taken
  }

  private mutating func closeUp() {
    var next = 0
    for index in 0..<count {
      guard let member = unsafe slots[index] else { continue }
      unsafe slots[next] = unsafe member
      unsafe member._withUnsafeGuaranteedRef { unsafe $0.slot = next }
      next += 1
    }
    count = next
    vacancies = 0
  }
}
