import SluiceIO
import SluiceLog
import SluiceStore
import SluiceWire
import Synchronization

/// State of a durable topic in the store: which records it has, and what it has dropped. From any thread.
package final class StoreTopicState: Sendable {
  package let id: TopicID
  /// Keeps its topics until it is closed, as they keep it.
  package let service: StoreService
  let sync: TopicSettings.Sync
  /// The newest record of each key, for a compact topic: its limits apply to these, and its batches go as soon as these can do without.
  package let newest: CompactedRecords?
  /// What was stored when the broker opened the topic.
  let birthExtent: StoredExtent

  /// The offset of the oldest record in the store, and of the first that isn't there yet.
  private let first: Atomic<UInt64>
  private let end: Atomic<UInt64>
  /// Bytes of records between the two.
  private let bytes: Atomic<UInt64>
  /// Bytes of all records that were ever stored.
  private let through: Atomic<UInt64>
  /// Bytes of records that are kept beyond the limits, because a reader still needs them.
  private let lapsed = Atomic<UInt64>(0)
  /// The places at which cursors and groups were found in the store.
  package let places = StoredPlaces()
  /// What the limits, and trims, have dropped since the broker opened the topic.
  private let lost = Mutex(DroppedRecords())

  /// What late subscribers can get.
  private struct Limits {
    var retention: Retention
    /// The offset of the first record that an operator has left.
    var trimmedTo: UInt64
  }

  private let limits: Mutex<Limits>
  private let recordClock: Mutex<RecordClock>

  init(
    id: TopicID, service: StoreService, settings: TopicSettings, extent: StoredExtent, trimmedTo: UInt64 = 0,
    setbacks: [RecordClock.Setback] = []
  ) {
    newest =
      settings.compact == true
      ? CompactedRecords(retention: settings.retention, pool: service.pool, isStored: true) : nil
    self.id = id
    self.service = service
    sync = settings.sync ?? .always
    limits = Mutex(
      Limits(retention: newest == nil ? settings.retention : .everything, trimmedTo: trimmedTo))
    birthExtent = extent
    recordClock = Mutex(RecordClock(restoring: setbacks, lastTime: extent.lastTime, head: extent.head))
    first = Atomic(extent.firstOffset)
    end = Atomic(extent.head)
    bytes = Atomic(extent.bytes)
    through = Atomic(extent.bytesThrough)
  }

  /// Whether records are delivered only once they are on disk.
  package var isSynchronous: Bool { sync == .always }

  /// So many bytes of records make a commit. Records that aren't on disk are in one with the positions behind them, which cursors and groups have already.
  var commitBytes: Int { isSynchronous ? service.store.commitBytes : .max }

  package var firstOffset: UInt64 { first.load(ordering: .acquiring) }
  /// What comes before that offset is on disk.
  package var committed: UInt64 { end.load(ordering: .acquiring) }
  var storedBytes: UInt64 { bytes.load(ordering: .relaxed) }
  var bytesThrough: UInt64 { through.load(ordering: .relaxed) }
  var lapsedBytes: UInt64 { lapsed.load(ordering: .relaxed) }

  package var dropped: DroppedRecords { lost.withLock { $0 } }

  /// How soon new records are to be on disk.
  package var delay: Duration {
    switch sync {
    case .always: .zero
    case .interval(let milliseconds): .milliseconds(Int64(milliseconds))
    case .os: StoreService.longestDelay
    }
  }

  /// The clock of the topic's records, of which the setbacks are current. The ``UncommittedTail`` gives records their times.
  package var clock: RecordClock { recordClock.withLock { $0 } }

  /// The clock was set back.
  func take(_ clock: RecordClock) {
    recordClock.withLock {
      $0 = clock
      $0.forget(before: firstOffset)
    }
  }

  var retention: Retention { limits.withLock { $0.retention } }
  /// Late subscribers get no record before that offset, since an operator has trimmed the topic.
  package var trimmedTo: UInt64 { limits.withLock { $0.trimmedTo } }

  /// The next commit drops what these limits don't keep.
  func retain(_ retention: Retention) { limits.withLock { $0.retention = retention } }

  /// The next commit drops what is before that offset.
  func trim(to offset: UInt64) { limits.withLock { $0.trimmedTo = max($0.trimmedTo, offset) } }

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

  /// The first record that a late subscriber gets. By number it is exact; by bytes and age it is that of the oldest batch with a record
  /// that the limits keep.
  func firstKept(before head: UInt64) -> UInt64 {
    let limits = limits.withLock { $0 }
    let first = min(max(firstOffset, limits.trimmedTo), head)
    guard let limit = limits.retention.records else { return first }
    return max(first, head - min(limit, head))
  }
}
