import SluiceLog
import SluiceStore
import SluiceWire

// Where those begin who come late to a durable topic.
extension TopicEpoch {
  /// The offset at which somebody begins, and how many of the records asked for are gone; nil when only the store can tell.
  func storedStart(
    at position: StartPosition, _ storage: TopicStorage, resuming: Bool
  ) -> (offset: UInt64, missed: UInt64)? {
    let head = log.head
    let first = resuming ? min(storage.firstOffset, head) : storage.firstKept(before: head)
    switch position {
    case .new: return (head, 0)
    case .replay, .earliest: return (first, 0)
    case .last(let count): return (head - min(count, head - first), 0)
    case .offset(let offset): return (max(offset, first), max(offset, first) - offset)
    case .time(let time):
      let inMemory = log.cursor(at: .time(time), now: .min, resuming: true).cursor.nextOffset
      // The first that there is in memory may not be the first of that time.
      guard inMemory > log.oldestOffset || log.oldestOffset <= first else { return nil }
      return (max(inMemory, first), 0)
    }
  }

  /// Whether the store must be asked for that position: see ``Connection/findStart(_:of:_:_:)``.
  func needsStore(for position: StartPosition) -> Bool {
    guard let storage, case .time = position else { return false }
    return storedStart(at: position, storage, resuming: false) == nil
  }
}

extension StorageService {
  /// Finds the first record with that time or a later one, on another thread. An offset behind all that is stored when there is none.
  func find(_ time: Int64, in topic: TopicStorage, _ body: @escaping @Sendable (UInt64) -> Void) {
    read(topic.id) { store in
      let found = try? store.offset(in: topic.id, atOrAfter: time)
      body(found ?? topic.committed)
    }
  }
}
