import SluiceIO
import SluiceWire

/// The outstanding records of a group: those that members hold, those to be delivered again, and those to be appended to the dead-letter topic.
///
/// With automatic acknowledgement it contains only runs to be delivered again.
struct GroupRecords: Sendable {
  private let rules: GroupState.Rules
  private var entries = GroupEntries()
  /// Records to be delivered again. With explicit acknowledgement, some may have been settled meanwhile.
  private var due = DueRuns()
  /// To be given out again later.
  private var delays = GroupDelays()
  /// The last record of each key that has any under way.
  private var lastOfKey: [UInt64: Int32] = [:]
  /// Offsets to be appended to the dead-letter topic; some may have been settled meanwhile.
  private var deadLetters = ReadyQueue<UInt64>()
  private(set) var counts = GroupState.Counts()
  /// The sequences of dead letters, if they have any.
  private(set) var outbox = GroupOutbox()

  init(_ rules: GroupState.Rules) {
    self.rules = rules
  }

  // MARK: Description

  package var count: Int { entries.count }
  /// The number of records that members hold.
  var out: Int { entries.out }
  var hasDue: Bool { !due.isEmpty }
  /// How many wait for the time of their retry.
  var delayed: Int { delays.count }
  /// The time of the next retry that is delayed.
  var nextRetry: MonotonicTime? { delays.first?.time }
  package var memory: Int {
    entries.reserved * KeptMemory.groupRecord + (due.count + delays.reserved) * 16
  }

  /// The lowest offset that has an entry, and the lowest to be delivered again.
  package var first: UInt64? { entries.firstSlot.map { entries[$0].offset } }
  var firstDue: UInt64? { due.first?.first }

  /// When time takes a record back or ends a delay; nil for never.
  var nextDeadline: MonotonicTime? {
    let deadline = rules.deadline == nil ? nil : entries.earliestSlot.map { entries[$0].deadline }
    guard let deadline, let nextRetry else { return deadline ?? nextRetry }
    return min(deadline, nextRetry)
  }

  /// Whether a member still holds a record that was assigned to it.
  package func holds(_ member: Int, _ offset: UInt64, delivery: UInt32) -> Bool {
    !rules.isExplicit || heldSlot(member, offset, delivery: delivery) != nil
  }

  private func heldSlot(_ member: Int, _ offset: UInt64, delivery: UInt32) -> Int32? {
    guard let slot = entries.slot(of: offset) else { return nil }
    let entry = entries[slot]
    return entry.place == .out && entry.member == member && entry.deliveries == delivery ? slot : nil
  }

  // MARK: Giving out

  /// Adds a record with an offset above all others.
  ///
  /// - Returns: its slot if it can be assigned; nil if it waits for another record with its key.
  package mutating func add(_ offset: UInt64, key: UInt64?) -> Int32? {
    var entry = GroupEntries.Entry(offset: offset, place: .waiting)
    entry.key = key
    let slot = entries.append(entry)
    guard let key, let before = lastOfKey.updateValue(slot, forKey: key) else { return slot }
    entries[before].nextOfKey = slot
    return nil
  }

  /// Takes records to be delivered again, with automatic acknowledgement.
  mutating func takeDueRun(_ count: UInt64) -> DueRuns.Run? { due.take(count) }

  /// Takes a record to be delivered again, with explicit acknowledgement; nil for a record that was settled meanwhile.
  mutating func popDue() -> Int32? {
    due.popFirst().flatMap { dueSlot($0.first) }
  }

  private func dueSlot(_ offset: UInt64) -> Int32? {
    entries.slot(of: offset).flatMap { entries[$0].place == .due ? $0 : nil }
  }

  /// Removes settled records from the front, so that ``hasDue`` is right also without members.
  mutating func dropStale() {
    guard rules.isExplicit else { return }
    while let run = due.first, dueSlot(run.first) == nil { _ = due.popFirst() }
    if delays.reserved > 0 { delays.dropSettled { [entries] in Self.isWaiting($0, in: entries) } }
  }

  private static func isWaiting(_ wait: GroupDelays.Wait, in entries: GroupEntries) -> Bool {
    guard let slot = entries.slot(of: wait.offset) else { return false }
    return entries[slot].place == .delayed && entries[slot].deadline == wait.time
  }

  /// Assigns a record to a member. Returns its offset, and the number of deliveries including this one.
  mutating func handOut(_ slot: Int32, to member: Int, now: MonotonicTime) -> (UInt64, delivery: UInt32) {
    let deadline = rules.deadline.map { now + $0 } ?? MonotonicTime(nanoseconds: .max)
    entries.handOut(slot, to: Int32(member), until: deadline)
    if entries[slot].deliveries < .max { entries[slot].deliveries += 1 }
    if entries[slot].deliveries > 1 { counts.redeliveries += 1 }
    return (entries[slot].offset, entries[slot].deliveries)
  }

  // MARK: Taking back

  /// Takes back records that were assigned to a member and never sent.
  mutating func takeBackUnsent(_ run: GroupState.Assignment) {
    guard rules.isExplicit else {
      return due.insert(DueRuns.Run(first: run.first, count: UInt64(run.count)))
    }
    for offset in run.first..<run.first + UInt64(run.count) {
      guard let slot = heldSlot(run.member, offset, delivery: run.delivery) else { continue }
      entries.takeBack(slot, as: .due)
      entries[slot].deliveries -= 1
      due.insert(DueRuns.Run(first: offset, count: 1))
    }
  }

  /// Takes back all records of a member that leaves.
  mutating func takeBackAll(of member: Int) {
    guard rules.isExplicit, entries.out > 0 else { return }
    var next = entries.firstSlot
    while let slot = next {
      next = presentSlot(after: slot)
      let entry = entries[slot]
      if entry.place == .out, entry.member == member { takeBack(slot, .memberLeft, until: nil) }
    }
  }

  /// Takes back records whose deadline has passed, and ends delays. Returns how many were with members.
  mutating func expire(now: MonotonicTime) -> UInt64 {
    defer { dropStale() }
    var count: UInt64 = 0
    while rules.deadline != nil, let slot = entries.earliestSlot, entries[slot].deadline <= now {
      count += 1
      takeBack(slot, .deadline, until: retryTime(of: slot, Settle.byBackoff, now))
    }
    while let wait = delays.first, wait.time <= now {
      if Self.isWaiting(wait, in: entries), let slot = entries.slot(of: wait.offset) {
        delays.end()
        entries[slot].place = .due
        due.insert(DueRuns.Run(first: wait.offset, count: 1))
      }
      delays.removeFirst()
    }
    return count
  }

  /// - Parameter delay: as in ``Settle/delay``.
  /// - Returns: when a record is to be given out again; nil for at once.
  private func retryTime(of slot: Int32, _ delay: UInt32, _ now: MonotonicTime) -> MonotonicTime? {
    let delay =
      delay == Settle.byBackoff ? rules.retryBackoff.delay(after: entries[slot].deliveries) : delay
    return delay == 0 ? nil : now + .milliseconds(Int64(delay))
  }

  /// A record that was with a member is to be given out again, or has been given out often enough.
  ///
  /// - Parameter time: when; nil for at once.
  private mutating func takeBack(_ slot: Int32, _ reason: GroupState.Reason, until time: MonotonicTime?) {
    if rules.deliveries > 0, entries[slot].deliveries >= rules.deliveries { return deadLetter(slot, reason) }
    guard let time else {
      entries.takeBack(slot, as: .due)
      return due.insert(DueRuns.Run(first: entries[slot].offset, count: 1))
    }
    entries.takeBack(slot, as: .delayed)
    delay(slot, until: time)
  }

  private mutating func delay(_ slot: Int32, until time: MonotonicTime) {
    entries[slot].place = .delayed
    entries[slot].deadline = time
    delays.insert(GroupDelays.Wait(time: time, offset: entries[slot].offset))
  }

  /// A record doesn't wait for its retry any more, if it did.
  private mutating func endDelay(_ slot: Int32) {
    if entries[slot].place == .delayed { delays.end() }
  }

  // MARK: Verdicts

  /// As ``GroupState/settle(_:atMost:now:)``.
  package mutating func settle(_ frame: Settle, atMost most: Int, now: MonotonicTime) -> (
    looked: Int, rest: Settle?
  ) {
    defer { dropStale() }
    // A frame with delivery 0 names no delivery.
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
    // A numbered record may already be in the dead-letter topic.
    case (.deadLetter, .acknowledge) where outbox.offset == entry.offset: break
    case (.out, .acknowledge), (.due, .acknowledge), (.delayed, .acknowledge), (.deadLetter, .acknowledge):
      finish(slot)
    case (.out, .retry): takeBack(slot, .retried, until: retryTime(of: slot, frame.delay, now))
    case (.out, .reject), (.due, .reject), (.delayed, .reject): deadLetter(slot, .rejected)
    case (.out, .extend):
      guard let deadline = rules.deadline else { return }
      entries.takeBack(slot, as: .out)
      entries.handOut(slot, to: entry.member, until: now + deadline)
    case (.due, _), (.delayed, _), (.deadLetter, _), (.waiting, _), (.lost, _): break
    }
  }

  /// Removes a settled record. The next record with its key may then be assigned.
  private mutating func finish(_ slot: Int32) {
    let entry = entries[slot]
    if entry.place == .out { entries.takeBack(slot, as: .due) }
    endDelay(slot)
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

  /// Gives a record up.
  private mutating func deadLetter(_ slot: Int32, _ reason: GroupState.Reason) {
    guard rules.hasDeadLetters else {
      counts.dropped += 1
      return finish(slot)
    }
    entries[slot].reason = reason
    deadLetters.append(entries[slot].offset)
    if entries[slot].place == .out {
      entries.takeBack(slot, as: .deadLetter)
    } else {
      endDelay(slot)
      entries[slot].place = .deadLetter
    }
  }

  mutating func nextDeadLetter() -> (offset: UInt64, deliveries: UInt32, reason: GroupState.Reason)? {
    // The record with a sequence goes first.
    if let offset = outbox.offset, let slot = entries.slot(of: offset) {
      return (offset, entries[slot].deliveries, entries[slot].reason)
    }
    while let offset = deadLetters.first {
      if let slot = entries.slot(of: offset), entries[slot].place == .deadLetter {
        return (offset, entries[slot].deliveries, entries[slot].reason)
      }
      _ = deadLetters.popFirst()
    }
    return nil
  }

  /// Assigns the next sequence to the record.
  mutating func numberDeadLetter(_ offset: UInt64) { outbox.offset = offset }

  /// Handles the answer that the topic has all dead letters with lower sequences.
  mutating func deadLettersKept(before next: UInt64) {
    guard next > outbox.next else { return }
    if let offset = outbox.offset { deadLetterDone(offset, isKept: true) }
    outbox = GroupOutbox(next: next)
  }

  mutating func deadLetterDone(_ offset: UInt64, isKept: Bool) {
    if outbox.offset == offset { outbox = GroupOutbox(next: outbox.next + (isKept ? 1 : 0)) }
    guard let slot = entries.slot(of: offset), entries[slot].place == .deadLetter else { return }
    if isKept { counts.deadLetters += 1 } else { counts.dropped += 1 }
    finish(slot)
  }

  // MARK: Losses

  /// Handles the loss of all records before `oldest`, of which `skipped` were never examined. Members keep those that they hold. Returns how many are lost.
  package mutating func lost(before oldest: UInt64, besides skipped: UInt64) -> UInt64 {
    defer { dropStale() }
    var lost = skipped
    if rules.isExplicit {
      var next = entries.firstSlot
      while let slot = next, entries[slot].offset < oldest {
        next = presentSlot(after: slot)
        switch entries[slot].place {
        case .due, .delayed:
          lost += 1
          // The next record with its key becomes due, and the walk has yet to reach it.
          finish(slot)
        case .waiting:
          lost += 1
          entries[slot].place = .lost
        case .out, .deadLetter, .lost: break
        }
      }
    } else {
      lost += due.drop(before: oldest)
    }
    counts.lost += lost
    return lost
  }

  /// The next entry that isn't removed when this one is settled.
  private func presentSlot(after slot: Int32) -> Int32? {
    var next = entries.slot(after: slot)
    while let after = next, entries[after].place == .lost { next = entries.slot(after: after) }
    return next
  }

  package mutating func lost(_ run: GroupState.Assignment) {
    counts.lost += UInt64(run.count)
    guard rules.isExplicit else { return }
    for offset in run.first..<run.first + UInt64(run.count) {
      if let slot = heldSlot(run.member, offset, delivery: run.delivery) { finish(slot) }
    }
  }

  // MARK: Snapshots

  /// All entries, but for those that are lost: these go as soon as the one before with their key is done with.
  package func snapshot(at clocks: ClockReading) -> [GroupState.Snapshot.Entry] {
    var snapshot: [GroupState.Snapshot.Entry] = []
    snapshot.reserveCapacity(entries.count)
    var next = entries.firstSlot
    while let slot = next {
      let entry = entries[slot]
      if entry.place != .lost {
        snapshot.append(
          GroupState.Snapshot.Entry(
            offset: entry.offset, deliveries: entry.deliveries, key: entry.key,
            deadLetterReason: entry.place == .deadLetter ? entry.reason : nil,
            retryAt: entry.place == .delayed ? clocks.wallClock(at: entry.deadline) : nil))
      }
      next = entries.slot(after: slot)
    }
    return snapshot
  }

  package mutating func restore(
    _ snapshot: [GroupState.Snapshot.Entry], _ outbox: GroupOutbox, at clocks: ClockReading
  ) {
    self.outbox = outbox
    var exhausted: [Int32] = []
    for entry in snapshot {
      let slot = restore(entry, at: clocks)
      if entry.deadLetterReason == nil, entries[slot].place != .waiting, rules.deliveries > 0,
        entry.deliveries >= rules.deliveries
      {
        exhausted.append(slot)
      }
    }
    for slot in exhausted { deadLetter(slot, .memberLeft) }
    let numbered = outbox.offset.flatMap { entries.slot(of: $0) }
    if numbered.map({ entries[$0].place != .deadLetter }) ?? true { self.outbox.offset = nil }
    dropStale()
  }

  private mutating func restore(_ snapshot: GroupState.Snapshot.Entry, at clocks: ClockReading) -> Int32 {
    var entry = GroupEntries.Entry(offset: snapshot.offset, place: .due)
    entry.key = rules.isOrdered ? snapshot.key : nil
    let slot = entries.append(entry)
    if let key = entry.key, let before = lastOfKey.updateValue(slot, forKey: key) {
      entries[before].nextOfKey = slot
      entries[slot].place = .waiting
      return slot
    }
    entries[slot].deliveries = snapshot.deliveries
    if let reason = snapshot.deadLetterReason {
      deadLetter(slot, reason)
    } else if let time = snapshot.retryAt.map(clocks.time), time > clocks.now {
      // No longer than any delay can be, wherever the wall clock was set.
      delay(slot, until: min(time, clocks.now + .milliseconds(Int64(UInt32.max))))
    } else {
      due.insert(DueRuns.Run(first: snapshot.offset, count: 1))
    }
    return slot
  }

  // MARK: Invariants

  func checkInvariants(limit: Int, frontier: UInt64, isMember: (Int) -> Bool) {
    entries.checkInvariants(rules, limit: limit, frontier: frontier, isMember: isMember)
    precondition(entries.count(at: .delayed) == delays.count)
  }
}
