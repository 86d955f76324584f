import SluiceIO
import SluiceWire

/// Decides which member of a group gets which record, and what is given out again.
///
/// A value without I/O and without a clock: members that join, leave and ask, the head of the topic, verdicts and the time come in; ``assignments``
/// come out. It sees offsets and hashes of keys, never a record.
///
/// Each record goes to the member with demand that has waited longest; what is given out again goes first, lowest offset first. A group
/// with automatic acknowledgement remembers nothing of single records. One with explicit acknowledgement has an entry for each that was
/// looked at and isn't done with, and looks at no more than `limit` beyond those that are done.
package struct GroupState: Sendable {
  /// What has to be known of a group's settings.
  package struct Rules: Hashable, Sendable {
    var isExplicit = false
    /// Of records with one key, only one is with a member at a time.
    var isOrdered = false
    /// How long a record may be with a member; nil for ever.
    package var deadline: Duration?
    /// How often a record is given out at the most; 0 for no limit.
    var deliveries: UInt32 = 0
    var hasDeadLetters = false
    /// For what comes back to be given out again.
    var retryBackoff = JoinGroup.Backoff.none
    /// Whether each record must be looked at before it is given out: for its key, or a filter.
    var looksAtRecords = false
  }

  /// Records that a member gets: not all need still be there.
  package struct Assignment: Hashable, Sendable {
    package var member: Int
    package var first: UInt64
    package var count: UInt32
    /// Which time these are given out, from 1 on.
    package var delivery: UInt32
  }

  /// Why a record came back. The number is the one that is stored.
  package enum Reason: UInt8 {
    case retried = 0
    case rejected = 1
    case deadline = 2
    case memberLeft = 3
  }

  /// How many records came to such an end.
  struct Counts: Hashable, Sendable {
    /// Given out again, each time counted.
    package var redeliveries: UInt64 = 0
    /// Appended to the dead letters.
    package var deadLetters: UInt64 = 0
    /// Given up without dead letters to go to.
    package var dropped: UInt64 = 0
    /// No longer in the topic when a member could have had them.
    package var lost: UInt64 = 0
  }

  package let rules: Rules
  /// The most entries.
  package let limit: Int
  /// The most entries for now, if that is fewer. Those that are there stay.
  var allowed = Int.max
  /// The lowest offset that wasn't looked at.
  private(set) var frontier: UInt64
  /// What was given out since it was taken last, in order.
  private(set) var assignments: [Assignment] = []
  /// Counts how often a record was taken back after it was given out. A member that still has records to send asks ``holds(_:_:delivery:)`` when this
  /// has changed.
  private(set) var revocations: UInt64 = 0
  private var members = GroupMembers()
  private var records: GroupRecords

  init(_ rules: Rules, from frontier: UInt64, limit: Int) {
    self.rules = rules
    self.frontier = frontier
    self.limit = limit
    records = GroupRecords(rules)
  }

  // MARK: Description

  var counts: Counts { records.counts }

  /// The lowest offset that isn't done with.
  var floor: UInt64 {
    rules.isExplicit
      ? records.first ?? frontier : min(frontier, records.firstDue ?? .max, members.firstUnsent)
  }

  /// About how many bytes its records under way take, in whole KiB: so that it doesn't change with each.
  package var memory: Int { records.memory & ~1023 }

  /// Entries of records that were looked at and aren't done with; 0 with automatic acknowledgement.
  package var entries: Int { records.count }

  /// Records that are with members.
  package var outstanding: Int { rules.isExplicit ? records.out : Int(clamping: members.unsent) }

  /// Whether everything before `head` is done with.
  package func isDone(through head: UInt64) -> Bool {
    frontier >= head && records.count == 0 && !records.hasDue && members.unsent == 0
  }

  /// Whether there is something that a member with demand would get, as far as is known.
  package func hasMore(before head: UInt64) -> Bool {
    records.hasDue || (frontier < head && records.count < limit)
  }

  /// Records that wait for the time of their retry, and when the first of them is given out again.
  var delayed: Int { records.delayed }
  var nextRetry: MonotonicTime? { records.nextRetry }

  /// When time takes something back or ends a delay; nil for never.
  var nextDeadline: MonotonicTime? { records.nextDeadline }

  /// Whether a member still has what it was given.
  package func holds(_ member: Int, _ offset: UInt64, delivery: UInt32) -> Bool {
    records.holds(member, offset, delivery: delivery)
  }

  // MARK: Members

  /// Adds a member without demand. Returns its number, which is reused when it has left.
  package mutating func join() -> Int { members.join() }

  /// Removes a member.
  ///
  /// - Parameter unsent: what of its assignments was never sent; those don't count as delivered.
  package mutating func leave(_ member: Int, unsent: [Assignment]) {
    members.leave(member)
    for run in unsent { records.takeBackUnsent(run) }
    records.takeBackAll(of: member)
  }

  /// Sets how many more records a member may be given now.
  mutating func setRoom(_ room: UInt64, of member: Int) { members.setRoom(room, of: member) }

  /// A member was sent so many of its records. With automatic acknowledgement they are done.
  ///
  /// - Parameter next: the first of its assignments that it hasn't been sent; nil when it has all.
  package mutating func sent(_ count: UInt64, by member: Int, next: UInt64?) {
    if !rules.isExplicit, members.contains(member) { members.sent(count, by: member, next: next) }
  }

  // MARK: Giving out

  /// Takes what was given out.
  mutating func takeAssignments() -> [Assignment] {
    defer { assignments.removeAll(keepingCapacity: true) }
    return assignments
  }

  /// Gives records before `head` to the members that are ready. Where records must be looked at, only those that were: see ``wantsRecord(before:)``.
  mutating func distribute(before head: UInt64, now: MonotonicTime) {
    defer { records.dropStale() }
    while let member = members.first {
      if records.hasDue {
        giveDue(to: member, now: now)
        continue
      }
      guard !rules.looksAtRecords, frontier < head else { return }
      var count = min(members.share, head - frontier)
      if rules.isExplicit {
        count = min(count, UInt64(max(min(limit, allowed) - records.count, 0)))
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
    mayPass(before: head) && records.count < min(limit, allowed) && members.first != nil && !records.hasDue
  }

  /// Whether the record at the frontier may be looked at only to see if it can be passed by.
  func mayPass(before head: UInt64) -> Bool {
    rules.looksAtRecords && frontier < head
  }

  /// The record at the frontier isn't for this group.
  mutating func pass() {
    frontier += 1
  }

  /// The record at the frontier is for the first member that is ready, which there must be, or has to wait for another one with its key.
  ///
  /// - Parameter key: the key's hash; nil without one. Keys with the same hash wait for each other, though they may differ: that
  ///   costs time, not order.
  package mutating func offer(key: UInt64?, now: MonotonicTime) {
    guard let member = members.first else { return }
    if rules.isExplicit {
      add(frontier, key: rules.isOrdered ? key : nil, to: member, now: now)
    } else {
      assign(frontier, 1, delivery: 1, to: member)
    }
    frontier += 1
  }

  /// A record's first time.
  private mutating func add(_ offset: UInt64, key: UInt64?, to member: Int, now: MonotonicTime) {
    if let slot = records.add(offset, key: key) { handOut(slot, to: member, now: now) }
  }

  private mutating func giveDue(to member: Int, now: MonotonicTime) {
    guard rules.isExplicit else {
      guard let run = records.takeDueRun(members.share) else { return }
      return assign(run.first, UInt32(run.count), delivery: 1, to: member)
    }
    if let slot = records.popDue() { handOut(slot, to: member, now: now) }
  }

  private mutating func handOut(_ slot: Int32, to member: Int, now: MonotonicTime) {
    let (offset, delivery) = records.handOut(slot, to: member, now: now)
    assign(offset, 1, delivery: delivery, to: member)
  }

  private mutating func assign(_ first: UInt64, _ count: UInt32, delivery: UInt32, to member: Int) {
    members.give(first, count, to: member, isTracked: !rules.isExplicit)
    assignments.join(Assignment(member: member, first: first, count: count, delivery: delivery))
  }

  // MARK: Verdicts, deadlines, dead letters, losses

  /// Applies a member's verdict to records. Those to which it doesn't apply any more are passed over.
  ///
  /// - Parameter most: how many records are looked at. Of those that the frame names, only records under way are.
  /// - Returns: how many were looked at, and the part of the frame that is left to be done; nil when none is.
  @discardableResult
  package mutating func settle(
    _ frame: Settle, atMost most: Int = .max, now: MonotonicTime
  ) -> (looked: Int, rest: Settle?) {
    records.settle(frame, atMost: most, now: now)
  }

  /// Takes back records whose deadline has passed, and ends delays.
  mutating func expire(now: MonotonicTime) {
    revocations += records.expire(now: now)
  }

  /// The next record for the dead letters, how often it was given out, and why it came back the last time.
  mutating func nextDeadLetter() -> (offset: UInt64, deliveries: UInt32, reason: Reason)? {
    records.nextDeadLetter()
  }

  /// The numbers of dead letters, where they have some.
  var outbox: GroupOutbox { records.outbox }

  /// The record that ``nextDeadLetter()`` told of has the next number from now on.
  mutating func numberDeadLetter(_ offset: UInt64) { records.numberDeadLetter(offset) }

  /// The dead letters with lower numbers are where they belong.
  mutating func deadLettersKept(before next: UInt64) { records.deadLettersKept(before: next) }

  /// The record that ``nextDeadLetter()`` told of is among the dead letters, or gone altogether.
  mutating func deadLetterDone(_ offset: UInt64, isKept: Bool) {
    records.deadLetterDone(offset, isKept: isKept)
  }

  /// The topic has no record any more before `oldest`. Those that weren't given out are done with; members may still settle what they have.
  ///
  /// - Returns: how many records are lost.
  package mutating func lost(before oldest: UInt64) -> UInt64 {
    let skipped = frontier < oldest ? oldest - frontier : 0
    frontier += skipped
    return records.lost(before: oldest, besides: skipped)
  }

  /// A member was given records that the topic had dropped before they could be sent: they are done with.
  package mutating func lost(_ run: Assignment) {
    records.lost(run)
  }

  /// Checks everything that must hold between two operations. Compiled to nothing in release.
  func _checkInvariants() {
    #if DEBUG
      records.checkInvariants(limit: limit, frontier: frontier) { members.contains($0) }
      members.checkInvariants()
    #endif
  }

  // MARK: Snapshots

  /// With automatic acknowledgement single records aren't remembered: everything from the first that may not have been sent is given out again.
  ///
  /// - Parameter clocks: the present time, for the times of retries.
  package func snapshot(at clocks: ClockReading) -> Snapshot {
    rules.isExplicit
      ? Snapshot(frontier: frontier, entries: records.snapshot(at: clocks), outbox: records.outbox)
      : Snapshot(frontier: floor)
  }

  /// Goes on where `snapshot` was taken, as if all members had left then, each with what it was sent. Records that had been given out as often
  /// as may be are dead letters then. Delays last until the time of the wall clock at which they would have ended.
  init(_ rules: Rules, restoring snapshot: Snapshot, limit: Int, at clocks: ClockReading) {
    self.init(rules, from: snapshot.frontier, limit: max(limit, snapshot.entries.count))
    if rules.isExplicit { records.restore(snapshot.entries, snapshot.outbox, at: clocks) }
  }
}

extension [GroupState.Assignment] {
  /// Adds a run, as a part of the last one if it goes on with that.
  mutating func join(_ run: GroupState.Assignment) {
    guard let last, last.member == run.member, last.delivery == run.delivery,
      last.first + UInt64(last.count) == run.first
    else { return append(run) }
    self[count - 1].count += run.count
  }
}
