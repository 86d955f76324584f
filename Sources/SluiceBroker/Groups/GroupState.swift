import SluiceIO
import SluiceWire

/// Who of a group gets which record, what became of it, and what must be given out again.
///
/// A value without I/O and without a clock: who comes, goes and asks, how far the topic is, what was settled and what time it is come in; who
/// gets what comes out, in ``assignments``. It sees offsets, and what keys come to, never a record.
///
/// Each record goes to the member with demand that has waited longest; what is given out again goes first, lowest offset first. A group
/// with automatic acknowledgement remembers nothing of single records. One with explicit acknowledgement has an entry for each that was
/// looked at and isn't done with, and looks at no more than `limit` beyond those that are done.
struct GroupState: Sendable {
  /// What has to be known of a group's settings.
  struct Rules: Hashable, Sendable {
    var isExplicit = false
    /// Of records with one key, only one is with a member at a time.
    var isOrdered = false
    /// How long a record may be with a member; nil for ever.
    var deadline: Duration?
    /// How often a record is given out at the most; 0 for no limit.
    var deliveries: UInt32 = 0
    var hasDeadLetters = false
    /// Whether each record must be looked at before it is given out: for its key, or a filter.
    var looksAtRecords = false
  }

  /// Records that a member gets: not all need still be there.
  struct Assignment: Hashable, Sendable {
    var member: Int
    var first: UInt64
    var count: UInt32
    /// Which time these are given out, from 1 on.
    var delivery: UInt32
  }

  /// Why a record came back. The number is the one that is stored.
  enum Reason: UInt8 {
    case refused = 0
    case rejected = 1
    case deadline = 2
    case memberLeft = 3
  }

  /// How many records came to such an end.
  struct Counts: Hashable, Sendable {
    /// Handed to the dead letters.
    var buried: UInt64 = 0
    /// Given up without dead letters to go to.
    var dropped: UInt64 = 0
    /// No longer in the topic when somebody could have had them.
    var lost: UInt64 = 0
  }

  private struct Member {
    /// How many more records it may be given now.
    var room: UInt64 = 0
    /// Given out and not known to be sent; of use with automatic acknowledgement.
    var unsent: UInt64 = 0
    /// The lowest of those, or one below it.
    var firstUnsent = UInt64.max
  }

  let rules: Rules
  /// The most entries.
  let limit: Int
  /// The most entries for now, if that is fewer. Those that are there stay.
  var allowed = Int.max
  /// The lowest offset that wasn't looked at.
  private(set) var frontier: UInt64
  /// What was given out since it was taken last, in order.
  private(set) var assignments: [Assignment] = []
  private(set) var counts = Counts()
  /// Counts how often something that was given out was taken back: whoever still has it to send should ask ``holds(_:_:_:)``.
  private(set) var revocations: UInt64 = 0

  private var members: [Member?] = []
  private var line = ReadyMembers()
  // Seen by what takes and restores snapshots.
  var entries = GroupEntries()
  var due = DueRuns()
  /// The last record of each key that has any under way.
  var lastOfKey: [UInt64: Int32] = [:]
  /// Offsets on their way to the dead letters; some of these may have been done with meanwhile.
  var dying = ReadyQueue<UInt64>()
  private var unsent: UInt64 = 0

  init(_ rules: Rules, from frontier: UInt64, limit: Int) {
    self.rules = rules
    self.frontier = frontier
    self.limit = limit
  }

  // MARK: What it looks like

  /// The lowest offset that isn't done with.
  var floor: UInt64 {
    if rules.isExplicit { return entries.firstSlot.map { entries[$0].offset } ?? frontier }
    var floor = min(frontier, due.first?.first ?? .max)
    if unsent > 0 { for case let member? in members { floor = min(floor, member.firstUnsent) } }
    return floor
  }

  /// About how many bytes its records under way take, in whole KiB: so that it doesn't change with each.
  var memory: Int { (entries.reserved * KeptMemory.groupRecord + due.count * 16) & ~1023 }

  /// Records that are with members.
  var outstanding: Int { rules.isExplicit ? entries.out : Int(clamping: unsent) }

  /// How many more records members could be given now.
  var room: UInt64 {
    members.reduce(0) { sum, member in
      let sum = sum.addingReportingOverflow(member?.room ?? 0)
      return sum.overflow ? .max : sum.partialValue
    }
  }

  /// Whether everything before `head` is done with.
  func isDone(through head: UInt64) -> Bool {
    frontier >= head && entries.isEmpty && due.isEmpty && unsent == 0
  }

  /// Whether there is something that a member with demand would get, as far as is known.
  func hasMore(before head: UInt64) -> Bool {
    !due.isEmpty || (frontier < head && entries.count < limit)
  }

  /// When time takes something back; nil for never.
  var nextDeadline: MonotonicTime? {
    rules.deadline == nil ? nil : entries.earliestSlot.map { entries[$0].deadline }
  }

  /// Whether a member still has what it was given.
  func holds(_ member: Int, _ offset: UInt64, delivery: UInt32) -> Bool {
    guard rules.isExplicit else { return true }
    guard let slot = entries.slot(of: offset) else { return false }
    let entry = entries[slot]
    return entry.place == .out && entry.member == member && entry.deliveries == delivery
  }

  // MARK: Who comes and goes

  /// Somebody comes, without demand. Returns its number, which is reused when it has left.
  mutating func join() -> Int {
    if let free = members.firstIndex(where: { $0 == nil }) {
      members[free] = Member()
      return free
    }
    members.append(Member())
    return members.count - 1
  }

  /// A member is gone.
  ///
  /// - Parameter unsent: what of its assignments was never sent; those don't count as delivered.
  mutating func leave(_ member: Int, unsent: [Assignment]) {
    line.remove(member)
    if let left = members[member] { self.unsent -= left.unsent }
    members[member] = nil
    for run in unsent { takeBackUnsent(run) }
    guard rules.isExplicit, entries.out > 0 else { return }
    var next = entries.firstSlot
    while let slot = next {
      next = presentSlot(after: slot)
      let entry = entries[slot]
      if entry.place == .out, entry.member == member { takeBack(slot, .memberLeft) }
    }
  }

  private mutating func takeBackUnsent(_ run: Assignment) {
    guard rules.isExplicit else {
      return due.insert(DueRuns.Run(first: run.first, count: UInt64(run.count)))
    }
    for offset in run.first..<run.first + UInt64(run.count)
    where holds(run.member, offset, delivery: run.delivery) {
      guard let slot = entries.slot(of: offset) else { continue }
      entries.takeBack(slot, as: .due)
      entries[slot].deliveries -= 1
      due.insert(DueRuns.Run(first: offset, count: 1))
    }
  }

  /// How many more records a member may be given now. Begins to wait when that was none.
  mutating func setRoom(_ room: UInt64, of member: Int) {
    members[member]?.room = room
    if room > 0 { line.append(member) } else { line.remove(member) }
  }

  /// A member was sent so many of its records. Only of use with automatic acknowledgement: they are done.
  ///
  /// - Parameter next: the first of its assignments that it hasn't been sent; nil when it has all.
  mutating func sent(_ count: UInt64, by member: Int, next: UInt64?) {
    guard !rules.isExplicit, members[member] != nil else { return }
    members[member]!.unsent -= count
    unsent -= count
    members[member]!.firstUnsent = next ?? .max
  }

  // MARK: Giving out

  /// Takes what was given out.
  mutating func takeAssignments() -> [Assignment] {
    defer { assignments.removeAll(keepingCapacity: true) }
    return assignments
  }

  /// Gives out what there is to those who wait, up to `head`. Where records must be looked at, only what has been: see ``wantsRecord(before:)``.
  mutating func distribute(before head: UInt64, now: MonotonicTime) {
    defer { dropStale() }
    while let member = line.first {
      if !due.isEmpty {
        giveDue(to: member, now: now)
        continue
      }
      guard !rules.looksAtRecords, frontier < head else { return }
      var count = line.count > 1 ? 1 : min(members[member]?.room ?? 0, head - frontier, UInt64(UInt32.max))
      if rules.isExplicit {
        count = min(count, UInt64(max(min(limit, allowed) - entries.count, 0)))
        guard count > 0 else { return }
        for offset in frontier..<frontier + count { add(offset, key: nil, to: member, now: now) }
      } else {
        assign(frontier, UInt32(count), delivery: 1, to: member)
      }
      frontier += count
    }
  }

  /// Whether the record at the frontier should be looked at: then it goes to ``offer(key:now:)`` or ``pass()``.
  func wantsRecord(before head: UInt64) -> Bool {
    rules.looksAtRecords && frontier < head && entries.count < min(limit, allowed) && line.first != nil
      && due.isEmpty
  }

  /// Whether the record at the frontier may be looked at only to see if it can be passed by.
  func mayPass(before head: UInt64) -> Bool {
    rules.looksAtRecords && frontier < head
  }

  /// The record at the frontier isn't for this group.
  mutating func pass() {
    frontier += 1
  }

  /// The record at the frontier is for whoever waits longest, or has to wait for another one with its key. Somebody must be waiting.
  ///
  /// - Parameter key: what its key comes to; nil without one. Keys that come to the same wait for each other, though they may differ: that
  ///   costs time, not order.
  mutating func offer(key: UInt64?, now: MonotonicTime) {
    guard let member = line.first else { return }
    if rules.isExplicit {
      add(frontier, key: rules.isOrdered ? key : nil, to: member, now: now)
    } else {
      assign(frontier, 1, delivery: 1, to: member)
    }
    frontier += 1
  }

  /// A record's first time.
  private mutating func add(_ offset: UInt64, key: UInt64?, to member: Int, now: MonotonicTime) {
    var entry = GroupEntries.Entry(offset: offset, place: .parked)
    entry.key = key
    let slot = entries.append(entry)
    if let key {
      let before = lastOfKey.updateValue(slot, forKey: key)
      if let before {
        entries[before].nextOfKey = slot
        return
      }
    }
    handOut(slot, to: member, now: now)
  }

  private mutating func giveDue(to member: Int, now: MonotonicTime) {
    guard rules.isExplicit else {
      let most = line.count > 1 ? 1 : min(members[member]?.room ?? 0, UInt64(UInt32.max))
      guard let run = due.take(most) else { return }
      return assign(run.first, UInt32(run.count), delivery: 1, to: member)
    }
    // One that was settled after it came back is still in the list.
    guard let run = due.popFirst(), let slot = dueSlot(run.first) else { return }
    handOut(slot, to: member, now: now)
  }

  private func dueSlot(_ offset: UInt64) -> Int32? {
    entries.slot(of: offset).flatMap { entries[$0].place == .due ? $0 : nil }
  }

  /// Whether there is anything due must be known also while nobody is there to take it.
  mutating func dropStale() {
    guard rules.isExplicit else { return }
    while let run = due.first, dueSlot(run.first) == nil { _ = due.popFirst() }
  }

  private mutating func handOut(_ slot: Int32, to member: Int, now: MonotonicTime) {
    let deadline = rules.deadline.map { now + $0 } ?? MonotonicTime(nanoseconds: .max)
    entries.handOut(slot, to: Int32(member), until: deadline)
    if entries[slot].deliveries < .max { entries[slot].deliveries += 1 }
    assign(entries[slot].offset, 1, delivery: entries[slot].deliveries, to: member)
  }

  private mutating func assign(_ first: UInt64, _ count: UInt32, delivery: UInt32, to member: Int) {
    members[member]!.room -= UInt64(count)
    if !rules.isExplicit {
      members[member]!.unsent += UInt64(count)
      members[member]!.firstUnsent = min(members[member]!.firstUnsent, first)
      unsent += UInt64(count)
    }
    if members[member]!.room == 0 { line.remove(member) } else { line.moveToEnd(member) }
    if let last = assignments.last, last.member == member, last.delivery == delivery,
      last.first + UInt64(last.count) == first
    {
      assignments[assignments.count - 1].count += count
    } else {
      assignments.append(Assignment(member: member, first: first, count: count, delivery: delivery))
    }
  }

  // MARK: What becomes of records

  /// A member says what became of records. Those to which that doesn't apply any more are passed over.
  ///
  /// - Parameter most: how many records are looked at. Of those that the frame names, only records under way are.
  /// - Returns: how many were looked at, and the part of the frame that is left to be done; nil when none is.
  @discardableResult
  mutating func settle(
    _ frame: Settle, atMost most: Int = .max, now: MonotonicTime
  ) -> (looked: Int, rest: Settle?) {
    defer { dropStale() }
    // Delivery 0 is none at all.
    guard rules.isExplicit, frame.delivery > 0 else { return (0, nil) }
    let end = frame.firstOffset + UInt64(frame.count)
    var place = entries.place(notBefore: frame.firstOffset)
    var looked = 0
    while let (offset, slot) = entries.entry(at: place), offset < end {
      guard looked < most else {
        var rest = frame
        rest.firstOffset = offset
        rest.count = UInt32(end - offset)
        return (looked, rest)
      }
      looked += 1
      place += 1
      if let slot { settle(slot, frame, now) }
    }
    return (looked, nil)
  }

  private mutating func settle(_ slot: Int32, _ frame: Settle, _ now: MonotonicTime) {
    let entry = entries[slot]
    guard entry.deliveries == frame.delivery else { return }
    switch (entry.place, frame.verdict) {
    case (.out, .done), (.due, .done), (.dying, .done): finish(slot)
    case (.out, .again): takeBack(slot, .refused)
    case (.out, .dead), (.due, .dead): bury(slot, .rejected)
    case (.out, .working):
      guard let deadline = rules.deadline else { return }
      entries.takeBack(slot, as: .out)
      entries.handOut(slot, to: entry.member, until: now + deadline)
    case (.due, .again), (.due, .working), (.dying, _), (.parked, _), (.lost, _): break
    }
  }

  /// Time has passed.
  mutating func expire(now: MonotonicTime) {
    guard rules.deadline != nil else { return }
    while let slot = entries.earliestSlot, entries[slot].deadline <= now {
      revocations += 1
      takeBack(slot, .deadline)
    }
  }

  /// A record that was with a member is to be given out again, or has been given out often enough.
  private mutating func takeBack(_ slot: Int32, _ reason: Reason) {
    if rules.deliveries > 0, entries[slot].deliveries >= rules.deliveries { return bury(slot, reason) }
    entries.takeBack(slot, as: .due)
    due.insert(DueRuns.Run(first: entries[slot].offset, count: 1))
  }

  mutating func bury(_ slot: Int32, _ reason: Reason) {
    guard rules.hasDeadLetters else {
      counts.dropped += 1
      return finish(slot)
    }
    entries[slot].reason = reason
    dying.append(entries[slot].offset)
    if entries[slot].place == .out {
      entries.takeBack(slot, as: .dying)
    } else {
      entries[slot].place = .dying
    }
  }

  /// A record is done with: the next one with its key may go.
  private mutating func finish(_ slot: Int32) {
    let entry = entries[slot]
    if entry.place == .out { entries.takeBack(slot, as: .due) }
    entries.remove(slot)
    guard let key = entry.key else { return }
    var next = entry.nextOfKey
    while next >= 0 {
      let follower = entries[next]
      if follower.place != .lost {
        entries[next].place = .due
        return due.insert(DueRuns.Run(first: follower.offset, count: 1))
      }
      entries.remove(next)
      next = follower.nextOfKey
    }
    lastOfKey[key] = nil
  }

  // MARK: Dead letters

  /// The next record for the dead letters, how often it was given out, and why it came back the last time.
  mutating func nextDying() -> (offset: UInt64, deliveries: UInt32, reason: Reason)? {
    while let offset = dying.first {
      if let slot = entries.slot(of: offset), entries[slot].place == .dying {
        return (offset, entries[slot].deliveries, entries[slot].reason)
      }
      _ = dying.popFirst()
    }
    return nil
  }

  /// The record that ``nextDying()`` told of is among the dead letters, or gone altogether.
  mutating func buried(_ offset: UInt64, isKept: Bool) {
    guard let slot = entries.slot(of: offset), entries[slot].place == .dying else { return }
    if isKept { counts.buried += 1 } else { counts.dropped += 1 }
    finish(slot)
  }

  // MARK: What the topic has dropped

  /// The topic has no record any more before `oldest`. Those that weren't given out are done with; what members have they may still settle.
  ///
  /// - Returns: how many these are.
  mutating func lost(before oldest: UInt64) -> UInt64 {
    defer { dropStale() }
    var lost: UInt64 = 0
    if rules.isExplicit {
      var next = entries.firstSlot
      while let slot = next, entries[slot].offset < oldest {
        next = presentSlot(after: slot)
        switch entries[slot].place {
        case .due:
          lost += 1
          // The one behind it with its key becomes due, and is still to come.
          finish(slot)
        case .parked:
          lost += 1
          entries[slot].place = .lost
        case .out, .dying, .lost: break
        }
      }
    } else {
      lost = due.drop(before: oldest)
    }
    if frontier < oldest {
      lost += oldest - frontier
      frontier = oldest
    }
    counts.lost += lost
    return lost
  }

  /// The next entry that doesn't go when this one is done with.
  private func presentSlot(after slot: Int32) -> Int32? {
    var next = entries.slot(after: slot)
    while let after = next, entries[after].place == .lost { next = entries.slot(after: after) }
    return next
  }

  /// A member was given records that the topic had dropped before they could be sent: they are done with.
  mutating func lost(_ run: Assignment) {
    counts.lost += UInt64(run.count)
    guard rules.isExplicit else { return }
    for offset in run.first..<run.first + UInt64(run.count)
    where holds(run.member, offset, delivery: run.delivery) {
      if let slot = entries.slot(of: offset) { finish(slot) }
    }
  }
}

extension GroupState {
  /// Checks everything that must hold between two operations. Compiled to nothing in release.
  func _checkInvariants() {
    #if DEBUG
      precondition(rules.isExplicit || entries.isEmpty, "automatic acknowledgement has no entries")
      precondition(entries.count <= limit)
      var offset: UInt64?
      var out = 0
      var next = entries.firstSlot
      while let slot = next {
        let entry = entries[slot]
        precondition(offset.map { $0 < entry.offset } ?? true, "entries are in the order of offsets")
        precondition(entry.offset < frontier)
        offset = entry.offset
        if entry.place == .out {
          out += 1
          precondition(members[Int(entry.member)] != nil, "what is out is with somebody")
          precondition(rules.deliveries == 0 || entry.deliveries <= rules.deliveries)
        }
        next = entries.slot(after: slot)
      }
      precondition(out == entries.out)
      var unsent: UInt64 = 0
      for (number, member) in members.enumerated() {
        precondition(line.contains(number) == ((member?.room ?? 0) > 0), "whoever has room waits")
        unsent += member?.unsent ?? 0
      }
      precondition(unsent == self.unsent)
    #endif
  }
}
