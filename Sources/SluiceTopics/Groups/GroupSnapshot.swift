extension GroupState {
  /// The state with which a group continues in another process, without its members.
  package struct Snapshot: Hashable, Sendable {
    /// A record that was examined and isn't done.
    package struct Entry: Hashable, Sendable {
      package var offset: UInt64
      /// How often it was delivered.
      var deliveries: UInt32 = 0
      /// The key's hash; nil if the record waits for no other.
      package var key: UInt64?
      /// Why it is being moved to the dead-letter topic; nil if it isn't.
      var deadLetterReason: Reason?
      /// When its retry is due, in milliseconds since 1970; nil if it waits for none.
      var retryAt: Int64?
    }

    /// From this offset on, no record is done.
    var frontier: UInt64
    /// In order of offsets, all below the frontier.
    package var entries: [Entry] = []
    /// The numbers of dead letters.
    package var outbox = GroupOutbox()

    /// Subtracts `origin` from all offsets; records before it count as done.
    mutating func shift(by origin: UInt64) {
      frontier -= min(origin, frontier)
      entries.removeAll { $0.offset < origin }
      for index in entries.indices { entries[index].offset -= origin }
      outbox.offset = outbox.offset.flatMap { $0 < origin ? nil : $0 - origin }
    }

    /// Removes records from `head` on, which the topic has lost.
    mutating func cut(at head: UInt64) {
      frontier = min(frontier, head)
      while let last = entries.last, last.offset >= head { entries.removeLast() }
      if let offset = outbox.offset, offset >= head { outbox.offset = nil }
    }
  }
}
