import SluiceWire

/// A batch on its way to the store: filled with records, sealed, and stored as it is.
///
/// It joins small batches that come one after the other.
// @unchecked: filled under its owner's lock; from `seal(for:)` on it doesn't change.
@safe
public final class BatchBlock: @unchecked Sendable {
  /// With this many bytes a batch is full, unless a single record takes more: sixteen pages of LMDB's, less what it needs for itself.
  public static let fullBytes = 65_520

  private static let leastCapacity = 512

  private var memory: UnsafeMutableRawPointer
  private var capacity: Int
  private var used = BatchHeader.size
  private(set) var header: BatchHeader
  /// Where the records of one time begin, and how many they are.
  private var runs: [(start: Int, records: Int, time: Int64)] = []

  /// An empty block.
  ///
  /// - Parameters:
  ///   - firstOffset: of its first record.
  ///   - bytesBefore: bytes of the topic's records before it.
  public init(firstOffset: UInt64, bytesBefore: UInt64) {
    header = BatchHeader(
      firstOffset: firstOffset, bytesBefore: bytesBefore, firstTime: .min, lastTime: .min, records: 0,
      recordBytes: 0)
    capacity = Self.leastCapacity
    unsafe memory = .allocate(byteCount: capacity, alignment: 16)
  }

  deinit {
    unsafe memory.deallocate()
  }

  public var firstOffset: UInt64 { header.firstOffset }
  public var endOffset: UInt64 { header.endOffset }
  /// Bytes of the topic's records up to its end.
  public var bytesThrough: UInt64 { header.bytesThrough }
  public var lastTime: Int64 { header.lastTime }

  /// Bytes that it will take in the store.
  public var bytes: Int { used }

  /// The items: records, and time marks ahead of the first and wherever the time changes.
  public var items: UnsafeRawBufferPointer {
    unsafe UnsafeRawBufferPointer(start: memory + BatchHeader.size, count: used - BatchHeader.size)
  }

  /// The records without their marks: runs of one time each.
  public func forEachRun(_ body: (UnsafeRawBufferPointer, _ count: Int, _ time: Int64) -> Void) {
    for (index, run) in runs.enumerated() {
      let next = index + 1 < runs.count ? runs[index + 1].start - RecordLayout.timeMarkSize : used
      unsafe body(
        UnsafeRawBufferPointer(start: memory + run.start, count: next - run.start), run.records, run.time)
    }
  }

  /// All of it, once it is sealed.
  public var value: UnsafeRawBufferPointer { unsafe UnsafeRawBufferPointer(start: memory, count: used) }

  /// Takes records from the front of `items`, as far as there is room for them.
  ///
  /// - Parameters:
  ///   - items: whole records, no marks.
  ///   - count: how many there are.
  ///   - time: theirs, in milliseconds since 1970.
  /// - Returns: what was taken. None when it is full, or they are older than the record before: times don't go back in a batch. At least one when it is
  ///   empty.
  public func append(_ items: UnsafeRawBufferPointer, count: Int, time: Int64) -> (bytes: Int, records: Int) {
    guard header.records == 0 || time >= header.lastTime else { return (0, 0) }
    let mark = header.records == 0 || time != header.lastTime ? RecordLayout.timeMarkSize : 0
    let room = Self.fullBytes - used - mark
    let part =
      unsafe items.count <= room
      ? (bytes: items.count, records: count)
      // A record that fits no block has one of its own.
      : RecordLayout.prefix(of: items, fitting: room, orFirst: header.records == 0)
    guard part.records > 0, let source = items.baseAddress else { return (0, 0) }
    reserve(used + mark + part.bytes)
    if mark > 0 {
      unsafe RecordLayout.writeTimeMark(time, at: memory + used)
      runs.append((used + mark, 0, time))
    }
    runs[runs.count - 1].records += part.records
    unsafe (memory + used + mark).copyMemory(from: source, byteCount: part.bytes)
    used += mark + part.bytes
    if header.records == 0 { header.firstTime = time }
    header.lastTime = time
    header.records += UInt32(part.records)
    header.recordBytes += UInt32(part.bytes)
    return part
  }

  private func reserve(_ needed: Int) {
    guard needed > capacity else { return }
    // A block that is half full will soon be full: its content isn't moved a second time.
    let grown = max(needed, needed > Self.fullBytes / 2 ? Self.fullBytes : capacity * 4)
    let larger = UnsafeMutableRawPointer.allocate(byteCount: grown, alignment: 16)
    unsafe larger.copyMemory(from: memory, byteCount: used)
    unsafe memory.deallocate()
    unsafe memory = unsafe larger
    capacity = grown
  }

  /// Writes the header and the checksum. Nothing may be appended afterwards.
  public func seal(for topic: TopicID) {
    unsafe header.write(at: memory)
    let checksum = unsafe BatchView.checksum(of: value, topic)
    unsafe memory.storeBytes(of: checksum.littleEndian, as: UInt64.self)
  }
}
