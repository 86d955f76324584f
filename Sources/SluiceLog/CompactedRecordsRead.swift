import SluiceWire
import Synchronization

/// A record as a store of newest records shows it.
@safe
public struct CompactedRecord {
  public let offset: UInt64
  /// Milliseconds since 1970.
  public let time: Int64
  /// Its item. Valid only while it is shown.
  public let item: UnsafeRawBufferPointer
}

/// How a walk over newest records ended.
public enum CompactedWalk: Hashable, Sendable {
  /// There is no other record in the range.
  case finished

  /// The walk was stopped ahead of the record with this offset.
  case stopped(at: UInt64)

  /// Nothing was shown: records from the start of the range to this offset may have been dropped.
  case recordsMissed(before: UInt64)

  /// Nothing was shown: so may deletions.
  case deletionsMissed(before: UInt64)
}

extension CompactedRecords {
  /// The retained records, at one moment.
  public struct Statistics: Hashable, Sendable {
    /// The offset that the next record will get.
    public var head: UInt64
    /// The offset of the first record that the limits keep; the head when they keep none.
    public var firstOffset: UInt64
    /// Records that the limits keep.
    public var records: UInt64
    /// Their bytes, each counted with its length word.
    public var bytes: Int
    /// Bytes of records that are there beyond the limits.
    public var lapsedBytes: Int
    /// Deletions that are remembered.
    public var deletions: Int
    /// Bytes of memory held, for all of these and for finding them.
    public var memoryBytes: Int
    /// The records dropped by retention limits and trims; records replaced by newer ones aren't counted.
    public var dropped: DroppedRecords
  }

  /// The retained records. Ages are measured at `now`, or at the latest time that was passed to the store.
  public func statistics(now: Int64? = nil) -> Statistics {
    state.withLock { state in
      if let now { state.clock.tell(now, head: state.head) }
      state.lapse()
      return Statistics(
        head: state.head, firstOffset: state.firstOffset, records: UInt64(state.kept), bytes: state.keptBytes,
        lapsedBytes: state.lapsedBytes, deletions: state.deletions.count,
        memoryBytes: state.memoryBytes, dropped: state.dropped)
    }
  }

  /// The latest time of the records that the limits keep, in milliseconds since 1970; the least number when there is none.
  ///
  /// Takes time for all of them when the clock was set back.
  public var latestTime: Int64 {
    state.withLock { state in
      guard !state.clock.setbacks.isEmpty else { return state.clock.recordTime }
      var latest = Int64.min
      var place = state.records.first(from: state.firstKept)
      while let record = place {
        latest = max(latest, state.records.entry(record).time)
        place = state.records.next(after: record)
      }
      return latest
    }
  }

  /// The floor: the lowest offset that a late subscriber can get. It never goes back.
  ///
  /// - Parameter now: the time at which ages are measured.
  public func floor(now: Int64? = nil) -> UInt64 {
    state.withLock { state in
      if let now { state.clock.tell(now, head: state.head) }
      state.lapse()
      return state.firstKept
    }
  }

  /// No reader that begins gets a record before this offset: such records were trimmed.
  public var trimmedTo: UInt64 { state.withLock { $0.trimmedTo } }

  /// The lowest offset that a reader under way can get.
  public var lowestKept: UInt64 { state.withLock { max($0.recordsLostBefore, $0.goneBefore) } }

  /// The lowest offset that a reader can get which was under way before: what limits have dropped may still be there, what was trimmed is gone for it.
  public var lowestForReturning: UInt64 { state.withLock { max($0.recordsLostBefore, $0.trimmedTo) } }

  /// Where a new reader begins. No record before that will be shown to it.
  ///
  /// - Parameters:
  ///   - position: as for a log, where the newest record of each key that the limits keep are all there are.
  ///   - lowest: the lowest offset that the reader may get, if it asks for an offset; nil for the floor.
  ///   - end: where the reader will go over to the log; what would begin later begins here, but for a later offset.
  ///   - now: the time at which ages are measured.
  /// - Returns: the offset, and how many of those asked for may be gone, superseded ones included: 0 but for `.offset`.
  public func start(
    at position: StartPosition, from lowest: UInt64? = nil, before end: UInt64, now: Int64? = nil
  ) -> (offset: UInt64, missed: UInt64) {
    state.withLock { state in
      if let now { state.clock.tell(now, head: state.head) }
      state.lapse()
      switch position {
      case .replay, .earliest: return (min(state.firstOffset, end), 0)
      case .new: return (end, 0)
      case .last(let count):
        guard count > 0, let place = state.records.last(count) else { return (end, 0) }
        return (min(max(state.records.entry(place).offset, state.firstOffset), end), 0)
      case .offset(let offset):
        let start = max(offset, lowest ?? state.firstKept)
        // The log reports the records dropped after the end.
        let next = offset >= end ? offset : min(start, end)
        return (next, next - offset)
      case .time(let time):
        let isOrdered = state.clock.setbacks.isEmpty
        guard let place = state.records.first(atOrAfter: time, isOrdered: isOrdered) else { return (end, 0) }
        return (min(max(state.records.entry(place).offset, state.firstOffset), end), 0)
      }
    }
  }

  /// Shows the newest records in a range, in the order of their offsets, until `body` returns false.
  ///
  /// The lock is held during the call: `body` copies the records that it needs, and requests no more at a time than it may take to
  /// copy.
  ///
  /// - Parameters:
  ///   - offset: the first offset of the range. If something newest from there on was dropped, nothing is shown.
  ///   - end: the end of the range, beyond `offset`.
  ///   - deletionsFrom: deletions from this offset on are shown as well; if one was dropped, nothing is shown.
  public func walk(
    from offset: UInt64, before end: UInt64, deletionsFrom: UInt64, _ body: (CompactedRecord) -> Bool
  ) -> CompactedWalk {
    state.withLock { state in
      if offset < state.recordsLostBefore { return .recordsMissed(before: min(state.recordsLostBefore, end)) }
      let deletionsFrom = max(deletionsFrom, offset)
      if deletionsFrom < min(state.deletionsLostBefore, end) {
        return .deletionsMissed(before: min(state.deletionsLostBefore, end))
      }
      var record = state.records.first(from: offset)
      var deletion = deletionsFrom < end ? state.deletions.first(from: deletionsFrom) : nil
      while true {
        let nextRecord = record.map { state.records.entry($0).offset } ?? .max
        let nextDeletion = deletion.map { state.deletions.entry($0).offset } ?? .max
        let next = min(nextRecord, nextDeletion)
        guard next < end else { return .finished }
        if nextRecord < nextDeletion, let place = record {
          guard body(state.records.shown(place)) else { return .stopped(at: next) }
          record = state.records.next(after: place)
        } else if let place = deletion {
          guard body(state.deletions.shown(place)) else { return .stopped(at: next) }
          deletion = state.deletions.next(after: place)
        }
      }
    }
  }
}

extension RecordRun {
  func shown(_ place: RecordPlace) -> CompactedRecord {
    let entry = entry(place)
    return unsafe CompactedRecord(offset: entry.offset, time: entry.time, item: item(place))
  }
}

extension CompactedRecords.State {
  /// The offset of the first record that the limits keep; the head when they keep none.
  fileprivate var firstOffset: UInt64 {
    records.first(from: firstKept).map { records.entry($0).offset } ?? head
  }
}
