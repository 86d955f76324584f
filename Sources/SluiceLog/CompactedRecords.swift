import Glibc
import SluiceWire
import Synchronization

/// The newest record of each key of a topic, in the order of their offsets: what late subscribers get of a topic for which only the
/// last value of a key counts.
///
/// It stands beside the topic's ``TopicLog``, which serves readers at the head, and gets every record before the log does. A
/// record is forgotten as soon as its key has a newer one. A record with a key and without payload is a *deletion*: it
/// takes its key out.
///
/// **Retention.** The limits apply to the newest records alone: beyond them the oldest are dropped. Readers that are under way may
/// still read what was dropped, within `graceBytes`.
///
/// **Deletions** are of no use to late subscribers, and are kept apart, for readers that resume and may have the
/// record that was deleted. There may be `graceBytes` of them, or a quarter of what the records take, if that is more.
///
/// **Memory** is within a small factor of the size of the records and their bookkeeping: 32 bytes for each record, and 12 for each slot of
/// the table of keys. Live records are copied out of sparse chunks, one chunk at a time.
///
/// Safe from any thread. Appends come one at a time, and must be ordered by the caller.
public final class CompactedRecords: Sendable {
  /// The newest records that late subscribers can get.
  public var retention: Retention { state.withLock { $0.retention } }
  public let graceBytes: Int
  private let seed: UInt64
  let chunkBytes: Int
  /// The account that the memory is charged to; nil for none.
  private let pool: SegmentPool?
  let state: Mutex<State>

  /// Protected by the lock.
  struct State: ~Copyable {
    var retention: Retention
    var table = KeyTable()
    /// The newest record of each key, if it isn't a deletion, and the deletions of keys that have nothing newer.
    var records: RecordRun
    var deletions: RecordRun
    /// The offset behind the newest record.
    var head: UInt64
    /// Gives records their times. Ages are measured at its time.
    var clock = RecordClock()
    /// The floor: records before this are beyond the limits, or trimmed. So many are still there, with so many bytes.
    var firstKept: UInt64
    /// No reader that begins gets a record before this, one that was under way included. At most ``firstKept``.
    var trimmedTo: UInt64 = 0
    /// The same for readers under way: what was trimmed, and no reader needed then.
    var goneBefore: UInt64 = 0
    var lapsed = 0
    var lapsedBytes = 0
    /// The newest record that was dropped for good stood before this, and the newest deletion before that: a reader that needs what is
    /// before them has missed something.
    var recordsLostBefore: UInt64
    var deletionsLostBefore: UInt64
    /// The records dropped by retention limits and trims.
    var dropped = DroppedRecords()
    /// Memory that is on the pool's account.
    var accounted = 0
    /// Nil for records that are in memory only.
    var storage: Storage?

    init(retention: Retention, chunkBytes: Int, head: UInt64, storage: Storage? = nil) {
      self.retention = retention
      self.storage = storage
      records = RecordRun(chunkBytes: chunkBytes, tag: 0)
      deletions = RecordRun(chunkBytes: chunkBytes, tag: RecordRun.tagBit)
      self.head = head
      firstKept = head
      recordsLostBefore = head
      deletionsLostBefore = head
    }
  }

  /// - Parameters:
  ///   - retention: what late subscribers can get of the newest records.
  ///   - graceBytes: the bytes of records beyond the limits that those under way can count on; and those of deletions.
  ///   - chunkBytes: the unit in which memory is allocated and given back; records larger than it have their own. At least 1 KiB.
  ///   - firstOffset: that of the first record.
  ///   - seed: makes the hashes of keys unforeseeable; nil for a random one.
  ///   - pool: counts the memory among its own.
  ///   - isStored: whether a store keeps the records, too: then it is reported what the store has to do.
  public init(
    retention: Retention, graceBytes: Int = 1 << 20, chunkBytes: Int = 64 << 10, firstOffset: UInt64 = 0,
    seed: UInt64? = nil, pool: SegmentPool? = nil, isStored: Bool = false
  ) {
    self.pool = pool
    self.graceBytes = max(graceBytes, 0)
    self.chunkBytes = chunkBytes
    self.seed = seed ?? .random(in: 0 ... .max)
    state = Mutex(
      State(
        retention: retention, chunkBytes: chunkBytes, head: firstOffset,
        storage: isStored ? Storage(from: firstOffset) : nil))
  }

  deinit {
    pool?.account(-state.withLock { $0.accounted })
  }

  /// Puts what has changed on the pool's account. With the lock held.
  func account(_ state: inout State) {
    guard let pool else { return }
    let memory = state.memoryBytes
    pool.account(memory - state.accounted)
    state.accounted = memory
  }

  /// The number of the first record of a batch that has no key; nil when each has one, as ``append(_:at:keepingFrom:)`` needs it.
  ///
  /// - Parameter batch: items, checked to be whole, records only.
  public static func firstWithoutKey(_ batch: UnsafeRawBufferPointer) -> Int? {
    guard let base = batch.baseAddress else { return nil }
    var position = 0
    var record = 0
    while position < batch.count {
      guard unsafe RecordLayout.hasKey(base + position) else { return record }
      unsafe position += RecordLayout.itemSize(RecordLayout.word(at: base + position))
      record += 1
    }
    return nil
  }

  /// Takes a batch in: every record takes the place of the one before with its key.
  ///
  /// - Parameters:
  ///   - batch: items, checked to be whole, records only, each with a key.
  ///   - milliseconds: the time since 1970.
  ///   - keep: the offset of a record that must not be dropped, nor any after it, whatever the limits; nil for none.
  public func append(
    _ batch: UnsafeRawBufferPointer, at milliseconds: Int64, keepingFrom keep: UInt64? = nil
  ) {
    guard let base = batch.baseAddress else { return }
    state.withLock { state in
      _ = state.clock.append(at: milliseconds, head: state.head)
      var position = 0
      while position < batch.count {
        let size = unsafe RecordLayout.itemSize(RecordLayout.word(at: base + position))
        unsafe put(UnsafeRawBufferPointer(start: base + position, count: size), &state)
        state.head &+= 1
        position += size
      }
      state.lapse()
      state.drop(beyond: graceBytes, deletionsBeyond: graceBytes, keepingFrom: keep)
      account(&state)
    }
  }

  /// Puts a record at the head in the place of the one before with its key.
  func put(_ item: UnsafeRawBufferPointer, _ state: inout State) {
    let start = unsafe item.baseAddress.unsafelyUnwrapped
    let key = unsafe RecordLayout.key(start)
    let hash = unsafe hash(key)
    let slot = unsafe state.slot(of: key, hash)
    if let slot {
      let old = state.table[slot]
      // While things move the slot must not be taken for another record's.
      state.table[slot] = .none.inUse
      state.remove(old)
    }
    let place: RecordPlace
    if unsafe RecordLayout.isDeletion(start) {
      place = unsafe state.deletions.append(
        item, offset: state.head, time: state.clock.recordTime, hash: hash, &state.table)
    } else {
      place = unsafe state.records.append(
        item, offset: state.head, time: state.clock.recordTime, hash: hash, &state.table)
      // A trim may have named an offset that no record had yet.
      if state.head < state.firstKept {
        state.lapsed += 1
        state.lapsedBytes += item.count
      }
    }
    if let slot { state.table[slot] = place } else { state.table.insert(hash, at: place) }
  }

  private func hash(_ key: UnsafeRawBufferPointer) -> UInt32 {
    var hasher = Hasher()
    hasher.combine(seed)
    unsafe hasher.combine(bytes: key)
    return UInt32(truncatingIfNeeded: hasher.finalize())
  }
}

extension RecordPlace {
  /// A place that no record has and that isn't that of an empty slot.
  fileprivate var inUse: RecordPlace { RecordPlace(chunk: chunk - 1, entry: entry) }
}

extension CompactedRecords.State {
  /// The slot of the table with the newest record, or deletion, of a key.
  @inline(__always)
  fileprivate func slot(of key: UnsafeRawBufferPointer, _ hash: UInt32) -> Int? {
    table.find(hash) { place in
      let item = unsafe records.holds(place) ? records.item(place) : deletions.item(place)
      let other = unsafe RecordLayout.key(item.baseAddress.unsafelyUnwrapped)
      return unsafe other.count == key.count
        && (key.isEmpty
          || memcmp(other.baseAddress.unsafelyUnwrapped, key.baseAddress.unsafelyUnwrapped, key.count) == 0)
    }
  }

  /// Takes a record or a deletion out of its run. The table still has it.
  mutating func remove(_ place: RecordPlace) {
    guard records.holds(place) else {
      storage?.removed(deletions.entry(place).offset)
      return deletions.remove(place, &table)
    }
    let entry = records.entry(place)
    storage?.removed(entry.offset)
    if entry.offset < firstKept {
      lapsed -= 1
      lapsedBytes -= Int(entry.length)
    }
    records.remove(place, &table)
  }
}
