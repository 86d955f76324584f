import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

/// The state of a durable topic in the store: the records that it contains, and those that it has dropped. From any thread.
package final class StoreTopicState: Sendable {
  package let id: TopicID
  /// Keeps its topics alive until it is closed, as they keep it.
  package let service: StoreService
  let sync: TopicSettings.Sync
  /// The newest record of each key, for a compact topic: the limits apply to these, and a batch is dropped as soon as they don't need it.
  package let newest: CompactedRecords?
  /// The extent that was stored when the broker opened the topic.
  let birthExtent: StoredExtent

  /// The offset of the oldest stored record, and the offset after the newest.
  private let first: Atomic<UInt64>
  private let end: Atomic<UInt64>
  /// Bytes of records between the two.
  private let bytes: Atomic<UInt64>
  /// Bytes of all records that were ever stored.
  private let through: Atomic<UInt64>
  /// Bytes of records that are kept beyond the limits because a reader still needs them.
  private let lapsed = Atomic<UInt64>(0)
  /// The places at which cursors and groups were found in the store.
  package let places = StoredPlaces()
  /// The records that limits and trims have dropped since the broker opened the topic.
  private let lost = Mutex(DroppedRecords())

  /// The records that late subscribers can get.
  fileprivate struct Limits {
    var retention: Retention
    /// Late subscribers get no record before this offset, whatever the present limits: trims, and limits when they took effect, have raised the floor to it.
    var raisedFloor: UInt64
    /// The cause of the last raise.
    var cause = DroppedRecords.Cause.trim
    /// No new or returning reader gets a record before this offset. At most `raisedFloor`.
    var trimmedTo: UInt64
  }

  private let limits: Mutex<Limits>
  private let recordClock: Mutex<RecordClock>
  /// See ``goneBefore``.
  private let gone = Atomic<UInt64>(0)

  init(
    id: TopicID, service: StoreService, settings: TopicSettings, extent: StoredExtent, floor: UInt64 = 0,
    setbacks: [RecordClock.Setback] = []
  ) {
    newest =
      settings.compact == true
      ? CompactedRecords(retention: settings.retention, pool: service.pool, isStored: true) : nil
    self.id = id
    self.service = service
    sync = settings.sync ?? .always
    // Records that a damaged store has lost don't put later records below the floor.
    let floor = min(floor, extent.head)
    limits = Mutex(
      Limits(
        retention: newest == nil ? settings.retention : .everything, raisedFloor: floor, trimmedTo: floor))
    birthExtent = extent
    recordClock = Mutex(RecordClock(restoring: setbacks, lastTime: extent.lastTime, head: extent.head))
    first = Atomic(extent.firstOffset)
    end = Atomic(extent.head)
    bytes = Atomic(extent.bytes)
    through = Atomic(extent.bytesThrough)
  }

  /// Whether records are delivered only once they are on disk.
  package var isSynchronous: Bool { sync == .always }

  /// Bytes of records of a full commit. Unless `sync` is `always`, all waiting records are stored in one commit, because cursors and groups may already have
  /// positions after them.
  var commitBytes: Int { isSynchronous ? service.store.commitBytes : .max }

  package var firstOffset: UInt64 { first.load(ordering: .acquiring) }
  /// All records before this offset are on disk.
  package var committed: UInt64 { end.load(ordering: .acquiring) }
  var storedBytes: UInt64 { bytes.load(ordering: .relaxed) }
  var bytesThrough: UInt64 { through.load(ordering: .relaxed) }
  var lapsedBytes: UInt64 { lapsed.load(ordering: .relaxed) }

  package var dropped: DroppedRecords { lost.withLock { $0 } }

  /// The longest time until new records are on disk.
  package var delay: Duration {
    switch sync {
    case .always: .zero
    case .interval(let milliseconds): .milliseconds(Int64(milliseconds))
    case .os: StoreService.longestDelay
    }
  }

  /// The clock of the topic's records; its setbacks are current. The ``UncommittedTail`` assigns times to records.
  package var clock: RecordClock { recordClock.withLock { $0 } }

  /// Takes the clock after it was set back.
  func take(_ clock: RecordClock) {
    recordClock.withLock {
      $0 = clock
      $0.forget(before: firstOffset)
    }
  }

  var retention: Retention { limits.withLock { $0.retention } }

  /// Changes the limits: the next commit drops the records that they don't keep. Records that the former limits have expired stay below the floor.
  func retain(_ retention: Retention, before head: UInt64) {
    limits.withLock { limits in
      if let limit = limits.retention.records { limits.raise(to: head - min(limit, head), by: .records) }
      limits.retention = retention
    }
  }

  /// Raises the floor to that offset: the next commit drops the records before it.
  ///
  /// - Parameter keep: the offset from which a reader still needs records; nil for none.
  func trim(to offset: UInt64, keepingFrom keep: UInt64?) {
    limits.withLock { limits in
      limits.raise(to: offset, by: .trim)
      limits.trimmedTo = max(limits.trimmedTo, offset)
    }
    gone.max(min(offset, keep ?? .max, committed), ordering: .releasing)
  }

  func moved(to extent: StoredExtent, lapsed lapsedBytes: UInt64) {
    bytes.store(extent.bytes, ordering: .relaxed)
    through.store(extent.bytesThrough, ordering: .relaxed)
    lapsed.store(lapsedBytes, ordering: .relaxed)
    first.store(extent.firstOffset, ordering: .releasing)
    end.store(extent.head, ordering: .releasing)
  }

  package func dropped(_ amount: DroppedRecords.Amount, by cause: DroppedRecords.Cause) {
    lost.withLock { $0[cause].add(amount) }
  }

  // MARK: The floor

  /// The floor. With a limit of records it is exact; with limits of bytes or age it is the first record of the oldest batch of which they keep any record.
  func floor(before head: UInt64) -> UInt64 {
    let limits = limits.withLock { $0 }
    let first = min(max(firstOffset, limits.raisedFloor), head)
    guard let limit = limits.retention.records else { return first }
    return max(first, head - min(limit, head))
  }

  /// The lowest offset that a returning reader can get.
  var lowestForReturning: UInt64 { max(firstOffset, limits.withLock { $0.trimmedTo }) }

  /// The lowest offset that an attached reader can get.
  var lowestKept: UInt64 { max(firstOffset, goneBefore) }

  /// No reader gets a stored record before this offset, even if it is loaded already: such records were trimmed, and no reader needed them.
  var goneBefore: UInt64 { gone.load(ordering: .acquiring) }

  /// The offset to which the floor was raised, and the cause; a broker that starts with the same store begins with this floor.
  var raisedFloor: (offset: UInt64, cause: DroppedRecords.Cause) {
    limits.withLock { ($0.raisedFloor, $0.cause) }
  }

  /// Raises the floor after limits have taken effect: they keep no record before that offset.
  func raiseFloor(to offset: UInt64, by cause: DroppedRecords.Cause) {
    limits.withLock { $0.raise(to: offset, by: cause) }
  }
}

extension StoreTopicState.Limits {
  fileprivate mutating func raise(to offset: UInt64, by cause: DroppedRecords.Cause) {
    guard offset > raisedFloor else { return }
    (raisedFloor, self.cause) = (offset, cause)
  }
}
