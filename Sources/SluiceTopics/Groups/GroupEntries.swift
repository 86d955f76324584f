import SluiceIO

/// A table of a group's records that were examined and aren't settled. Entries are found by offset and linked in the order of offsets; those that members
/// hold are also linked in the order of their deadlines.
///
/// One array with links: a record occupies an entry only while it is outstanding.
package struct GroupEntries: Sendable {
  package enum Place: UInt8 {
    /// A member holds it.
    case out
    /// To be delivered again.
    case due
    /// To be given out again at its ``Entry/deadline``.
    case delayed
    /// Behind another record with its key.
    case waiting
    /// To be appended to the dead-letter topic.
    case deadLetter
    /// The topic dropped it while it was waiting. Removed together with the record that it waits for.
    case lost
  }

  package struct Entry {
    package var offset: UInt64
    package var place: Place
    package var reason = GroupState.Reason.retried
    /// The member that it was given to last.
    package var member: Int32 = -1
    /// The number of deliveries so far.
    var deliveries: UInt32 = 0
    /// When time takes it back from its member, or ends its delay.
    package var deadline = MonotonicTime(nanoseconds: 0)
    /// The key's hash; nil for a record that waits for no other.
    package var key: UInt64?
    /// The next record with this key.
    var nextOfKey: Int32 = -1
    fileprivate var before: Int32 = -1
    fileprivate var after: Int32 = -1
    fileprivate var earlier: Int32 = -1
    fileprivate var later: Int32 = -1

    package init(offset: UInt64, place: Place) {
      self.offset = offset
      self.place = place
    }
  }

  private var entries: [Entry] = []
  private var free: [Int32] = []
  private var slots: [UInt64: Int32] = [:]
  /// The offsets of all records in ascending order, with some removed ones among them, to find the first record at or after an offset.
  private var order: [(offset: UInt64, slot: Int32)] = []
  private var first: Int32 = -1
  private var last: Int32 = -1
  private var earliest: Int32 = -1
  private var latest: Int32 = -1
  /// The number of records that members hold.
  private(set) var out = 0

  package var count: Int { slots.count }
  /// The number of entries for which memory is allocated.
  var reserved: Int { entries.count }
  package var isEmpty: Bool { slots.isEmpty }

  /// The record with the lowest offset; and, of those that members hold, the record with the earliest deadline.
  var firstSlot: Int32? { first < 0 ? nil : first }
  var earliestSlot: Int32? { earliest < 0 ? nil : earliest }

  package subscript(slot: Int32) -> Entry {
    get { entries[Int(slot)] }
    _modify { yield &entries[Int(slot)] }
  }

  func slot(of offset: UInt64) -> Int32? { slots[offset] }

  /// The next in the order of offsets.
  func slot(after slot: Int32) -> Int32? {
    let after = entries[Int(slot)].after
    return after < 0 ? nil : after
  }

  /// The place of the first record with that offset or a higher one, see ``entry(at:)``. Valid until a record is added.
  package func place(notBefore offset: UInt64) -> Int {
    var (low, high) = (0, order.count)
    while low < high {
      let middle = (low + high) / 2
      if order[middle].offset < offset { low = middle + 1 } else { high = middle }
    }
    return low
  }

  /// The record at a place; without a slot if it was removed. Nil beyond the last one.
  package func entry(at place: Int) -> (offset: UInt64, slot: Int32?)? {
    guard place < order.count else { return nil }
    let (offset, slot) = order[place]
    return (offset, entries[Int(slot)].offset == offset ? slot : nil)
  }

  /// Adds a record whose offset is above all others.
  package mutating func append(_ entry: Entry) -> Int32 {
    let slot: Int32
    if let reused = free.popLast() {
      slot = reused
      entries[Int(slot)] = entry
    } else {
      slot = Int32(entries.count)
      entries.append(entry)
    }
    slots[entry.offset] = slot
    if order.count > 2 * slots.count + 64 { order.removeAll { entries[Int($0.slot)].offset != $0.offset } }
    order.append((entry.offset, slot))
    entries[Int(slot)].before = last
    if last >= 0 { entries[Int(last)].after = slot } else { first = slot }
    last = slot
    return slot
  }

  /// Removes a record that no member holds.
  package mutating func remove(_ slot: Int32) {
    let entry = entries[Int(slot)]
    if entry.before >= 0 { entries[Int(entry.before)].after = entry.after } else { first = entry.after }
    if entry.after >= 0 { entries[Int(entry.after)].before = entry.before } else { last = entry.before }
    slots[entry.offset] = nil
    // No record has this offset, so the record in `order` is recognised as removed.
    entries[Int(slot)].offset = .max
    free.append(slot)
    // The memory that a burst needed isn't kept.
    if slots.isEmpty {
      order.removeAll(keepingCapacity: true)
      if entries.count > 4096 { self = GroupEntries() }
    }
  }

  /// Assigns a record to a member until a deadline, which becomes the latest of all.
  mutating func handOut(_ slot: Int32, to member: Int32, until deadline: MonotonicTime) {
    entries[Int(slot)].place = .out
    entries[Int(slot)].member = member
    entries[Int(slot)].deadline = max(deadline, latest < 0 ? deadline : entries[Int(latest)].deadline)
    entries[Int(slot)].earlier = latest
    entries[Int(slot)].later = -1
    if latest >= 0 { entries[Int(latest)].later = slot } else { earliest = slot }
    latest = slot
    out += 1
  }

  /// Takes a record back from its member.
  mutating func takeBack(_ slot: Int32, as place: Place) {
    let entry = entries[Int(slot)]
    entries[Int(slot)].place = place
    if entry.earlier >= 0 { entries[Int(entry.earlier)].later = entry.later } else { earliest = entry.later }
    if entry.later >= 0 { entries[Int(entry.later)].earlier = entry.earlier } else { latest = entry.earlier }
    out -= 1
  }

  // MARK: Invariants

  func checkInvariants(_ rules: GroupState.Rules, limit: Int, frontier: UInt64, isMember: (Int) -> Bool) {
    precondition(rules.isExplicit || isEmpty, "automatic acknowledgement has no entries")
    precondition(count <= limit)
    var offset: UInt64?
    var out = 0
    var next = firstSlot
    while let slot = next {
      let entry = self[slot]
      precondition(offset.map { $0 < entry.offset } ?? true, "entries are in the order of offsets")
      precondition(entry.offset < frontier)
      offset = entry.offset
      if entry.place == .out {
        out += 1
        precondition(isMember(Int(entry.member)), "an outstanding record belongs to a member")
        precondition(rules.deliveries == 0 || entry.deliveries <= rules.deliveries)
      }
      next = self.slot(after: slot)
    }
    precondition(out == self.out)
  }

  func count(at place: Place) -> Int {
    var (count, next) = (0, firstSlot)
    while let slot = next {
      if self[slot].place == place { count += 1 }
      next = self.slot(after: slot)
    }
    return count
  }
}
