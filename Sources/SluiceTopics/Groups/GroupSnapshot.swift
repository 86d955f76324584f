extension GroupState {
  /// What must be known to go on in another process, where none of the members is.
  package struct Snapshot: Hashable, Sendable {
    /// A record that was looked at and isn't done with.
    package struct Entry: Hashable, Sendable {
      package var offset: UInt64
      /// How many times it was given out.
      var deliveries: UInt32 = 0
      /// The key's hash; nil for one that waits for no other.
      package var key: UInt64?
      /// Why it is on its way to the dead letters; nil when it isn't.
      var deadLetterReason: Reason?
      /// Until when it waits for its retry, in milliseconds since 1970; nil when it doesn't.
      var retryAt: Int64?
    }

    /// From there on nothing is done with.
    var frontier: UInt64
    /// In the order of their offsets, all of them below the frontier.
    package var entries: [Entry] = []
    /// The numbers of dead letters.
    package var outbox = GroupOutbox()

    /// The record with the offset `origin` has offset 0 from now on; what is before it is done with.
    mutating func shift(by origin: UInt64) {
      frontier -= min(origin, frontier)
      entries.removeAll { $0.offset < origin }
      for index in entries.indices { entries[index].offset -= origin }
      outbox.offset = outbox.offset.flatMap { $0 < origin ? nil : $0 - origin }
    }

    /// Forgets records from `head` on: the topic has lost them.
    mutating func cut(at head: UInt64) {
      frontier = min(frontier, head)
      while let last = entries.last, last.offset >= head { entries.removeLast() }
      if let offset = outbox.offset, offset >= head { outbox.offset = nil }
    }
  }
}
