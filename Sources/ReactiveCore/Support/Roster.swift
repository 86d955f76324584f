import Synchronization

/// The subscribers of a subject, and the order in which they are told things.
///
/// One caller at a time tells the members something; it is *inside*. A call that comes meanwhile, from another thread or from
/// a member being told, leaves a note, which the caller inside works off before it leaves. So every member is told everything
/// in the same order, one thing at a time, on a stack that does not grow when a subject feeds itself, and no lock is held
/// while a member runs.
///
/// Members are kept in the order they came. Leaving is O(1): the slot is emptied, and slots are closed up when half of
/// them are empty.
@usableFromInline
final class Roster<Member: RosterMember, Signal> {
  @usableFromInline
  enum Note {
    case add(Member)
    case remove(Member)
    case signal(Signal)
  }

  @usableFromInline let lock = Lock()

  // Guarded by the lock.
  @usableFromInline @exclusivity(unchecked) var isInside = false
  @usableFromInline @exclusivity(unchecked) var notes: [Note] = []

  // Belong to the caller inside; when nobody is inside, to the holder of the lock.
  @usableFromInline @exclusivity(unchecked) var slots = UnsafeMutablePointer<Unmanaged<Member>?>.allocate(
    capacity: 1)
  @usableFromInline @exclusivity(unchecked) var count = 0
  private var capacity = 1
  private var vacancies = 0
  private var spareNotes: [Note] = []

  @usableFromInline
  init() {}

  deinit {
    for index in 0..<count {
      slots[index]?.release()
    }
    slots.deallocate()
  }
}

/// What a subject keeps for each of its subscribers.
@usableFromInline
protocol RosterMember: AnyObject {
  /// Where the roster keeps the member; -1 if nowhere. Belongs to the roster.
  var slot: Int { get set }

  /// Lets go of the subscriber. Called once, when nothing more will be told.
  func retire()
}

// Coming and going. Each may be called at any time, from any thread.
extension Roster {
  /// Adds a member, to be told what is sent from now on. Called with the lock held.
  func lockedAdd(_ member: Member) {
    if isInside {
      notes.append(.add(member))
    } else {
      place(member)
    }
  }

  /// Removes a member and retires it.
  func remove(_ member: Member) {
    let isRemoved = lock.withLock {
      if isInside {
        notes.append(.remove(member))
        return false
      }
      return vacate(member)
    }
    if isRemoved {
      dismiss(member)
    }
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
    if isInside {
      notes.append(.signal(signal()))
      return false
    }
    isInside = true
    return true
  }

  /// Calls the body with each member. Called inside.
  @inlinable
  @inline(__always)
  func tellAll(_ body: (Member) -> Void) {
    let slots = slots
    for index in 0..<count {
      if let member = slots[index] {
        member._withUnsafeGuaranteedRef { body($0) }
      }
    }
  }

  /// Works off the notes, then leaves.
  @inlinable
  @inline(__always)
  func leave(_ tell: (Signal) -> Void) {
    let isOut = lock.withLock {
      if notes.isEmpty { isInside = false }
      return !isInside
    }
    if !isOut {
      workOff(tell)
    }
  }

  @usableFromInline
  func workOff(_ tell: (Signal) -> Void) {
    while true {
      // Two arrays take turns, so that a subject that feeds itself does not allocate for each value.
      var current = spareNotes
      spareNotes = []
      let isOut = lock.withLock {
        if notes.isEmpty {
          isInside = false
          return true
        }
        swap(&current, &notes)
        return false
      }
      if isOut { return }
      for note in current {
        switch note {
        case .add(let member): place(member)
        case .remove(let member): if vacate(member) { dismiss(member) }
        case .signal(let signal): tell(signal)
        }
      }
      current.removeAll(keepingCapacity: true)
      spareNotes = current
    }
  }

  /// Removes and retires all members. Called inside.
  func removeAll() {
    for index in 0..<count {
      if let member = slots[index]?.takeUnretainedValue() {
        member.slot = -1
        dismiss(member)
      }
    }
    count = 0
    vacancies = 0
  }
}

// The slots.
extension Roster {
  private func place(_ member: Member) {
    if count == capacity {
      let larger = UnsafeMutablePointer<Unmanaged<Member>?>.allocate(capacity: capacity * 2)
      larger.moveInitialize(from: slots, count: count)
      slots.deallocate()
      slots = larger
      capacity *= 2
    }
    (slots + count).initialize(to: .passRetained(member))
    member.slot = count
    count += 1
  }

  /// Empties the member's slot, keeping the reference the slot had.
  private func vacate(_ member: Member) -> Bool {
    guard member.slot >= 0 else { return false }
    slots[member.slot] = nil
    if member.slot == count - 1 {
      count -= 1
    } else {
      vacancies += 1
    }
    member.slot = -1
    if vacancies == count {
      count = 0
      vacancies = 0
    } else if vacancies > 16, vacancies > count / 2 {
      closeUp()
    }
    return true
  }

  private func closeUp() {
    var next = 0
    for index in 0..<count {
      guard let member = slots[index] else { continue }
      slots[next] = member
      member._withUnsafeGuaranteedRef { $0.slot = next }
      next += 1
    }
    count = next
    vacancies = 0
  }

  /// Retires a member and gives up the reference its slot had.
  private func dismiss(_ member: Member) {
    member.retire()
    Unmanaged.passUnretained(member).release()
  }
}
