import SluiceLog
import SluiceWire

// The floor of an epoch: the lowest offset that can still be delivered. Every start, lag and figure is computed from it.
//
// Trims, purges and limits raise it when they take effect; nothing lowers it, not even larger limits. It is kept where the records are: the log, the
// newest records of a compact topic, or the state of a durable one.
extension TopicEpoch {
  /// How a reader begins to read the epoch. That decides which records below the floor it can get.
  package enum Reader: Hashable, Sendable {
    /// The reader is new, or resumes its durable cursor or group: no records below the floor.
    case late
    /// The reader resumes after a lost connection: also records below the floor that limits removed and the broker still has, but no trimmed records.
    case returning
    /// The reader is attached: also trimmed records, if they are kept for it.
    case attached
  }

  /// The lowest offset that a reader can get; the head if there is none. The floor itself, which is that of late readers, never decreases.
  ///
  /// Takes a lock, and up to the time to search a batch: for starts and for display.
  ///
  /// - Parameter now: the time, in milliseconds since 1970, at which ages are measured; nil for the latest time that the epoch has received.
  package func floor(for reader: Reader = .late, now: Int64? = nil) -> UInt64 {
    switch reader {
    case .late: newest?.floor(now: now) ?? storage?.floor(before: log.head) ?? log.floor(now: now)
    case .returning: newest?.lowestForReturning ?? storage?.lowestForReturning ?? log.lowestForReturning
    case .attached: newest?.lowestKept ?? storage?.lowestKept ?? log.oldestOffset
    }
  }

  /// The records that a reader has yet to get whose next one has that offset: none that are below the floor.
  package func lag(from next: UInt64, of reader: Reader) -> UInt64 {
    let next = max(next, floor(for: reader))
    let head = log.head
    return head - min(next, head)
  }

  /// A cursor for a new reader, and how many of the requested records were dropped.
  package func cursor(
    at position: StartPosition, for reader: Reader = .late, now: Int64?
  ) -> (cursor: LogCursor, missed: UInt64) {
    let lowest = floor(for: reader, now: now)
    if let newest {
      let (offset, missed) = newest.start(at: position, from: lowest, before: log.head, now: now)
      return (LogCursor(unplacedAt: offset), missed)
    }
    guard let storage else { return log.cursor(at: position, from: lowest, now: now) }
    let start = storedStart(at: position, storage, from: lowest)
    // For positions that only the store can resolve, the caller has asked the store first. A start that is a little early loses no record.
    let (offset, missed) = start ?? (lowest, 0)
    return (LogCursor(unplacedAt: offset), missed)
  }

  /// The offset of a start position in a durable topic, and how many of the requested records were dropped; nil if only the store can resolve the position.
  private func storedStart(
    at position: StartPosition, _ storage: StoreTopicState, from lowest: UInt64
  ) -> (offset: UInt64, missed: UInt64)? {
    let head = log.head
    let first = min(lowest, head)
    switch position {
    case .new: return (head, 0)
    case .replay, .earliest: return (first, 0)
    case .last(let count): return (head - min(count, head - first), 0)
    case .offset(let offset): return (max(offset, first), max(offset, first) - offset)
    case .time(let time):
      let inMemory = log.cursor(at: .time(time), from: 0).cursor.nextOffset
      // The first record in memory may not be the first of that time.
      let isFirst =
        inMemory > log.oldestOffset && storage.clock.span(of: time, from: first).upperBound > log.oldestOffset
      guard isFirst || log.oldestOffset <= first else { return nil }
      return (max(inMemory, first), 0)
    }
  }

  /// Whether the store must be asked for that position: only the store has the times of records that aren't in memory.
  package func needsStore(for position: StartPosition) -> Bool {
    guard let storage, newest == nil, case .time = position else { return false }
    return storedStart(at: position, storage, from: floor()) == nil
  }

  /// Changes the limits. Records that the former limits have expired by now stay below the floor.
  ///
  /// - Parameter now: the time in milliseconds since 1970; nil for the latest time that the epoch has received.
  func retain(_ settings: TopicSettings, now: Int64?) {
    if let newest {
      newest.retain(settings.retention, now: now)
    } else if let storage {
      storage.retain(settings.retention, before: log.head)
      log.retain(settings.tailRetention, now: now)
    } else {
      log.retain(settings.retention, now: now)
    }
  }
}
