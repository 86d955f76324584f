extension GroupState {
  /// What must be known to go on in another process, where none of the members is.
  struct Snapshot: Hashable, Sendable {
    /// A record that was looked at and isn't done with.
    struct Entry: Hashable, Sendable {
      var offset: UInt64
      /// How many times it was given out.
      var deliveries: UInt32 = 0
      /// What its key comes to; nil for one that waits for no other.
      var key: UInt64?
      /// Why it is on its way to the dead letters; nil when it isn't.
      var dying: Reason?
    }

    /// From there on nothing is done with.
    var frontier: UInt64
    /// In the order of their offsets, all of them below the frontier.
    var entries: [Entry] = []

    /// Forgets records from `head` on: the topic has lost them.
    mutating func cut(at head: UInt64) {
      frontier = min(frontier, head)
      while let last = entries.last, last.offset >= head { entries.removeLast() }
    }
  }

  /// With automatic acknowledgement nothing is remembered of single records: whatever follows one that may not have been sent is given out again.
  var snapshot: Snapshot {
    guard rules.isExplicit else { return Snapshot(frontier: floor) }
    var snapshot = Snapshot(frontier: frontier)
    snapshot.entries.reserveCapacity(entries.count)
    var next = entries.firstSlot
    while let slot = next {
      let entry = entries[slot]
      // One that is lost goes as soon as the one before it is done with.
      if entry.place != .lost {
        snapshot.entries.append(
          Snapshot.Entry(
            offset: entry.offset, deliveries: entry.deliveries, key: entry.key,
            dying: entry.place == .dying ? entry.reason : nil))
      }
      next = entries.slot(after: slot)
    }
    return snapshot
  }

  /// Goes on where `snapshot` was taken, as if all members had left then, each with what it was sent. Whatever had been given out as often
  /// as may be has come to its end by that.
  init(_ rules: Rules, restoring snapshot: Snapshot, limit: Int) {
    self.init(rules, from: snapshot.frontier, limit: max(limit, snapshot.entries.count))
    guard rules.isExplicit else { return }
    var exhausted: [Int32] = []
    for entry in snapshot.entries {
      let slot = restore(entry)
      if entry.dying == nil, entries[slot].place == .due, rules.deliveries > 0,
        entry.deliveries >= rules.deliveries
      {
        exhausted.append(slot)
      }
    }
    for slot in exhausted { bury(slot, .memberLeft) }
    dropStale()
  }

  private mutating func restore(_ snapshot: Snapshot.Entry) -> Int32 {
    var entry = GroupEntries.Entry(offset: snapshot.offset, place: .due)
    entry.key = rules.isOrdered ? snapshot.key : nil
    let slot = entries.append(entry)
    if let key = entry.key, let before = lastOfKey.updateValue(slot, forKey: key) {
      entries[before].nextOfKey = slot
      entries[slot].place = .parked
      return slot
    }
    entries[slot].deliveries = snapshot.deliveries
    if let reason = snapshot.dying {
      bury(slot, reason)
    } else {
      due.insert(DueRuns.Run(first: snapshot.offset, count: 1))
    }
    return slot
  }
}
