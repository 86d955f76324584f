import SluiceIO
import SluiceWire

/// Decides which member of a group gets which record, and which records are delivered again.
///
/// A value without I/O and without a clock. Its input is members that join, leave and request records, the topic's head, verdicts and the time; its output is
/// ``assignments``. It sees offsets and hashes of keys, never a record.
///
/// Each record goes to the member with demand that has waited longest. Records to be delivered again go first, lowest offset first. A group with automatic
/// acknowledgement keeps no state of single records. A group with explicit acknowledgement has an entry for each record that was examined and isn't settled,
/// and examines at most `limit` records beyond the settled ones.
package struct GroupState: Sendable {
  /// The settings of a group that decide how records are assigned.
  package struct Rules: Hashable, Sendable {
    var isExplicit = false
    /// Whether at most one record of each key is with a member at a time.
    var isOrdered = false
    /// How long a member may hold a record; nil for no deadline.
    package var deadline: Duration?
    /// The most deliveries of a record; 0 for no limit.
    var deliveries: UInt32 = 0
    var hasDeadLetters = false
    /// For what comes back to be given out again.
    var retryBackoff = JoinGroup.Backoff.none
    /// Whether each record must be looked at before it is given out: for its key, or a filter.
    var looksAtRecords = false
  }

  /// Records assigned to a member. The topic may have dropped some of them.
  package struct Assignment: Hashable, Sendable {
    package var member: Int
    package var first: UInt64
    package var count: UInt32
    /// The number of this delivery, from 1 on.
    package var delivery: UInt32
  }

  /// Why a record came back. The raw value is stored.
  package enum Reason: UInt8 {
    case retried = 0
    case rejected = 1
    case deadline = 2
    case memberLeft = 3
  }

  /// Counts of records by outcome.
  struct Counts: Hashable, Sendable {
    /// Delivered again, each delivery counted.
    package var redeliveries: UInt64 = 0
    /// Appended to the dead-letter topic.
    package var deadLetters: UInt64 = 0
    /// Given up without a dead-letter topic.
    package var dropped: UInt64 = 0
    /// Dropped by the topic before a member could get them.
    package var lost: UInt64 = 0
  }

  package let rules: Rules
  /// The most entries.
  package let limit: Int
  /// The most entries at present, if that is fewer. Existing entries stay.
  var allowed = Int.max
  /// The lowest offset that hasn't been examined.
  private(set) var frontier: UInt64
  /// Records assigned since the last call of ``takeAssignments()``, in order.
  private(set) var assignments: [Assignment] = []
  /// Counts how often an assigned record was taken back. When it has changed, a member that still has records to send asks ``holds(_:_:delivery:)``.
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

  /// The lowest offset that isn't settled.
  var floor: UInt64 {
    rules.isExplicit
      ? records.first ?? frontier : min(frontier, records.firstDue ?? .max, members.firstUnsent)
  }

  /// About how many bytes the outstanding records take, rounded down to whole KiB so that it doesn't change with each record.
  package var memory: Int { records.memory & ~1023 }

  /// Entries of records that were examined and aren't settled; 0 with automatic acknowledgement.
  package var entries: Int { records.count }

  /// Records that members hold.
  package var outstanding: Int { rules.isExplicit ? records.out : Int(clamping: members.unsent) }

  /// Whether all records before `head` are settled.
  package func isDone(through head: UInt64) -> Bool {
    frontier >= head && records.count == 0 && !records.hasDue && members.unsent == 0
  }

  /// Whether a member with demand would get a record, as far as is known.
  package func hasMore(before head: UInt64) -> Bool {
    records.hasDue || (frontier < head && records.count < limit)
  }

  /// Records that wait for the time of their retry, and when the first of them is given out again.
  var delayed: Int { records.delayed }
  var nextRetry: MonotonicTime? { records.nextRetry }

  /// When time takes something back or ends a delay; nil for never.
  var nextDeadline: MonotonicTime? { records.nextDeadline }

  /// Whether a member still holds a record that was assigned to it.
  package func holds(_ member: Int, _ offset: UInt64, delivery: UInt32) -> Bool {
    records.holds(member, offset, delivery: delivery)
  }

  // MARK: Members

  /// Adds a member without demand. Returns its number, which is reused after it has left.
  package mutating func join() -> Int { members.join() }

  /// Removes a member.
  ///
  /// - Parameter unsent: its assignments that were never sent; these don't count as delivered.
  package mutating func leave(_ member: Int, unsent: [Assignment]) {
    members.leave(member)
    for run in unsent { records.takeBackUnsent(run) }
    records.takeBackAll(of: member)
  }

  /// Sets how many more records a member may be assigned now.
  mutating func setRoom(_ room: UInt64, of member: Int) { members.setRoom(room, of: member) }

  /// Handles records that were sent to a member. With automatic acknowledgement they are settled.
  ///
  /// - Parameter next: the first of its assignments that it hasn't been sent; nil if it has been sent all.
  package mutating func sent(_ count: UInt64, by member: Int, next: UInt64?) {
    if !rules.isExplicit, members.contains(member) { members.sent(count, by: member, next: next) }
  }

  // MARK: Giving out

  /// Takes the records assigned since the last call.
  mutating func takeAssignments() -> [Assignment] {
    defer { assignments.removeAll(keepingCapacity: true) }
    return assignments
  }

  /// Assigns records before `head` to members that are ready. If records must be examined, assigns only those that were: see ``wantsRecord(before:)``.
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

  /// Whether the record at the frontier should be examined: the caller then calls ``offer(key:now:)`` or ``pass()``.
  func wantsRecord(before head: UInt64) -> Bool {
    mayPass(before: head) && records.count < min(limit, allowed) && members.first != nil && !records.hasDue
  }

  /// Whether the record at the frontier may be examined only to see whether it can be skipped.
  func mayPass(before head: UInt64) -> Bool {
    rules.looksAtRecords && frontier < head
  }

  /// Skips the record at the frontier, which isn't for this group.
  mutating func pass() {
    frontier += 1
  }

  /// Assigns the record at the frontier to the first ready member, which must exist, or makes it wait for another record with its key.
  ///
  /// - Parameter key: the key's hash; nil without one. Different keys with the same hash wait for each other: that costs time, but keeps the order.
  package mutating func offer(key: UInt64?, now: MonotonicTime) {
    guard let member = members.first else { return }
    if rules.isExplicit {
      add(frontier, key: rules.isOrdered ? key : nil, to: member, now: now)
    } else {
      assign(frontier, 1, delivery: 1, to: member)
    }
    frontier += 1
  }

  /// Assigns a record for the first time.
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

  /// Applies a member's verdict to records. Skips records to which it no longer applies.
  ///
  /// - Parameter most: how many records to examine. Only outstanding records are examined.
  /// - Returns: how many were examined, and the part of the frame that remains to be done; nil if none remains.
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

  /// The next record for the dead-letter topic, its number of deliveries, and why it came back the last time.
  mutating func nextDeadLetter() -> (offset: UInt64, deliveries: UInt32, reason: Reason)? {
    records.nextDeadLetter()
  }

  /// The sequences of dead letters, if they have any.
  var outbox: GroupOutbox { records.outbox }

  /// Assigns the next sequence to the record that ``nextDeadLetter()`` returned.
  mutating func numberDeadLetter(_ offset: UInt64) { records.numberDeadLetter(offset) }

  /// Handles the answer that the dead-letter topic has all dead letters with lower sequences.
  mutating func deadLettersKept(before next: UInt64) { records.deadLettersKept(before: next) }

  /// Removes the record that ``nextDeadLetter()`` returned: it is stored in the dead-letter topic, or was dropped.
  mutating func deadLetterDone(_ offset: UInt64, isKept: Bool) {
    records.deadLetterDone(offset, isKept: isKept)
  }

  /// Settles all records before `oldest`, which the topic has dropped, except those assigned to members: members may still settle those.
  ///
  /// - Returns: how many records are lost.
  package mutating func lost(before oldest: UInt64) -> UInt64 {
    let skipped = frontier < oldest ? oldest - frontier : 0
    frontier += skipped
    return records.lost(before: oldest, besides: skipped)
  }

  /// Settles records that were assigned to a member and dropped by the topic before they could be sent.
  package mutating func lost(_ run: Assignment) {
    records.lost(run)
  }

  /// Checks the invariants that hold between operations. Compiled out in release.
  func _checkInvariants() {
    #if DEBUG
      records.checkInvariants(limit: limit, frontier: frontier) { members.contains($0) }
      members.checkInvariants()
    #endif
  }

  // MARK: Snapshots

  /// Automatic acknowledgement has no state of single records: all records from the first that may be unsent are delivered again.
  ///
  /// - Parameter clocks: the present time, for the times of retries.
  package func snapshot(at clocks: ClockReading) -> Snapshot {
    rules.isExplicit
      ? Snapshot(frontier: frontier, entries: records.snapshot(at: clocks), outbox: records.outbox)
      : Snapshot(frontier: floor)
  }

  /// Restores the state of `snapshot`, as if all members had left at that moment with the records that they had been sent. Records that were
  /// delivered as often as the rules allow become dead letters. Delays end at the same time of the wall clock as they would have.
  init(_ rules: Rules, restoring snapshot: Snapshot, limit: Int, at clocks: ClockReading) {
    self.init(rules, from: snapshot.frontier, limit: max(limit, snapshot.entries.count))
    if rules.isExplicit { records.restore(snapshot.entries, snapshot.outbox, at: clocks) }
  }
}

extension [GroupState.Assignment] {
  /// Adds a run, merged with the last one if it follows that directly.
  mutating func join(_ run: GroupState.Assignment) {
    guard let last, last.member == run.member, last.delivery == run.delivery,
      last.first + UInt64(last.count) == run.first
    else { return append(run) }
    self[count - 1].count += run.count
  }
}
