import SluiceLog
import SluiceWire
import Synchronization

// Topics that keep the newest record of each key for those who come late.
extension Topic {
  /// Why `batch` can't be appended to such a topic, if so.
  func keyRequired(by batch: UnsafeRawBufferPointer) -> Fault? {
    guard let record = unsafe CompactedRecords.firstWithoutKey(batch) else { return nil }
    return Fault(
      code: .keyRequired,
      message:
        "record \(record) of the batch has no key, and topic \(name) keeps the last record of each key; publish it with a key, or to another topic"
    )
  }

  /// What must not be dropped of the newest records for the sake of those who read them, whatever the limits.
  func keepNewestFrom(_ state: State) -> UInt64? {
    guard isPaced else { return nil }
    var readers = ReaderPositions()
    if state.presentSubscriptions > 0 { readers.oldest = state.readers.readsNewestFrom ?? .max }
    return state.strategy.keepFrom(readers, unreadFrom: state.unreadFrom)
  }

  /// Bytes of newest records beyond the limits that are kept because a subscriber has yet to read them. What the grace keeps besides,
  /// for subscribers that come back, doesn't count.
  func lapsedBytes(_ state: State) -> UInt64 {
    if let storage { return settings.flow == .lossless ? storage.lapsedBytes : 0 }
    guard settings.flow == .lossless, let newest = state.epoch.newest, let keep = keepNewestFrom(state) else {
      return 0
    }
    return UInt64(newest.lapsedBytes(from: keep))
  }

  /// Whether something may have to be dropped though nothing is appended.
  var needsTrimming: Bool {
    settings.replayAge != TopicSettings.unlimited || settings.compact == true || storage != nil
  }
}

extension Topic {
  /// What the retention limits have dropped, of all epochs. From any loop.
  var dropped: DroppedRecords {
    let (epoch, former) = state.withLock { ($0.epoch, $0.formerlyDropped) }
    var dropped = former
    dropped.add(epoch.dropped)
    return dropped
  }
}

extension TopicEpoch {
  /// What the retention limits have dropped of it.
  var dropped: DroppedRecords {
    if let newest { return newest.statistics().dropped }
    return storage?.dropped ?? log.statistics().dropped
  }

  /// What late subscribers can get.
  func kept() -> (firstOffset: UInt64, head: UInt64, records: UInt64, bytes: Int) {
    if let newest {
      let statistics = newest.statistics()
      return (statistics.firstOffset, statistics.head, statistics.records, statistics.bytes)
    }
    if let storage {
      let head = log.head
      let first = storage.firstKept(before: head)
      return (first, head, head - first, Int(clamping: storage.storedBytes))
    }
    let statistics = log.statistics()
    return (statistics.firstOffset, statistics.head, statistics.records, statistics.bytes)
  }

  /// A cursor for a new reader, and how many of the records asked for are gone.
  func cursor(
    at position: StartPosition, now: Int64?, resuming: Bool
  ) -> (cursor: LogCursor, missed: UInt64) {
    if let storage {
      let start = storedStart(at: position, storage, resuming: resuming)
      // What only the store can tell was asked before; a little early is better than late.
      let (offset, missed) = start ?? (storage.firstKept(before: log.head), 0)
      return (LogCursor(unplacedAt: offset), missed)
    }
    guard let newest else { return log.cursor(at: position, now: now, resuming: resuming) }
    let (offset, missed) = newest.start(at: position, before: log.head, now: now, resuming: resuming)
    return (LogCursor(unplacedAt: offset), missed)
  }
}
