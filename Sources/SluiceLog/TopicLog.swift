import SluiceWire
import Synchronization

/// The records of one topic, in memory, in the order that every subscriber sees.
///
/// The bytes are kept as they came and are read as they are sent: batches of items are appended with one copy, and
/// readers take slices of the same memory. Any number of threads may append and read. A lock, held for one copy, orders
/// the appends; readers take it only at the start and when they move from one segment to the next.
///
/// **Time.** Each record has the time of its append, in milliseconds since 1970. Time marks among the items contain it: at the start
/// of each segment, and before each record with a new time. ``RecordClock`` says which time that is. Within a segment times never go
/// back.
///
/// **Floor.** Late subscribers get no record below the floor. Trims, and limits as they take effect, raise it; nothing lowers it. Records that limits
/// have put below it can still be read by readers that are under way: their memory is dropped by whole segments, and only when `graceBytes` newer
/// bytes have been appended. A reader that falls behind even further gets the number of records that it missed. Trimmed records leave memory at once,
/// unless a reader needs them that the caller names.
public final class TopicLog: Sendable {
  /// The records that late subscribers can get.
  public var retention: Retention { state.withLock { $0.retention } }

  /// Bytes of a full segment.
  public let segmentBytes: Int

  /// Bytes of the newest records that readers under way can count on, whatever the limits.
  public let graceBytes: Int

  let pool: SegmentPool
  let headOffset: Atomic<UInt64>
  let state: Mutex<State>

  /// The state that appends change. Protected by the log's lock.
  struct State {
    var retention: Retention
    var segments = SegmentQueue()
    var head: UInt64

    /// Bytes of records, and of memory, in all segments.
    var recordBytes = 0
    var memoryBytes = 0

    /// Gives records their times. Ages are measured at its time.
    var clock = RecordClock()

    /// The records dropped by trims, and by the retention limits in whole segments or by a raised floor.
    var dropped = DroppedRecords()

    /// Records before this offset are among ``dropped``, even if they are still in memory.
    var countedTo: UInt64 = 0

    /// Late subscribers get no record before this offset, whatever the limits are now: what trims, and limits when they were last looked at, have
    /// raised the floor to.
    var raisedFloor: UInt64 = 0

    /// No reader that begins gets a record before this offset, one that was under way included. At most ``raisedFloor``.
    var trimmedTo: UInt64 = 0

    /// The sizes of the first segment, and of the next unless a batch needs more.
    let firstCapacity: Int
    var nextCapacity: Int

    /// The oldest record in memory; the head when there is none.
    var oldest: UInt64 { segments.first?.baseOffset ?? head }
  }

  /// An empty log; it takes memory with the first append.
  ///
  /// - Parameters:
  ///   - retention: what late subscribers can get.
  ///   - segmentBytes: the size of a full segment, kept within 64 bytes and 1 GiB; the pool's block size if nil, and
  ///     better not otherwise. Segments begin at 16 KiB and double up to it; a segment may be larger to hold a single
  ///     record.
  ///   - graceBytes: how many bytes of the newest records readers under way can count on, beyond what retention keeps.
  ///   - pool: where the memory comes from.
  ///   - firstOffset: the offset of the first record.
  public init(
    retention: Retention, segmentBytes: Int? = nil, graceBytes: Int = 1 << 20, pool: SegmentPool,
    firstOffset: UInt64 = 0
  ) {
    self.segmentBytes = min(max(segmentBytes ?? pool.blockBytes, 64), 1 << 30)
    self.graceBytes = max(graceBytes, 0)
    self.pool = pool
    headOffset = Atomic(firstOffset)
    let firstCapacity = min(self.segmentBytes, Self.firstSegmentBytes)
    state = Mutex(
      State(
        retention: retention, head: firstOffset, firstCapacity: firstCapacity, nextCapacity: firstCapacity))
  }

  /// Small topics are many: they begin small.
  static let firstSegmentBytes = 16 << 10

  /// The offset that the next record will get. Without a lock.
  ///
  /// At or after every cursor, except one that was requested beyond it.
  public var head: UInt64 { headOffset.load(ordering: .acquiring) }
}
