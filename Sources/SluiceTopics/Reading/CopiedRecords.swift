import SluiceLog
import SluiceWire

/// A block of memory that this object owns.
@safe
package final class OwnedBytes {
  package let bytes: UnsafeMutableRawBufferPointer

  package init(_ source: UnsafeRawBufferPointer) {
    unsafe bytes = .allocate(byteCount: source.count, alignment: 1)
    unsafe bytes.copyMemory(from: source)
  }

  /// A block to be filled.
  package init(count: Int) {
    unsafe bytes = .allocate(byteCount: count, alignment: 16)
  }

  deinit {
    unsafe bytes.deallocate()
  }
}

/// Copies of records, as items, in one block of memory: runs of consecutive offsets, each preceded by room for a header of the receiver.
///
/// ```
/// | headroom | items of a run | headroom | items of the next run | …
/// ```
///
/// Until the receiver writes its header, the headroom describes the run: first offset, number of records, bytes of items. If most offsets are missing, nearly
/// every record is a run of its own; one block sends them as one piece of memory.
@safe
package struct CopiedRecords {
  /// The least headroom.
  private static let description = 16

  private let headroom: Int
  /// The most records, about the most bytes, and the most bytes of one run.
  private let limit: UInt64
  private let bytes: Int
  private let largest: Int

  private var block: OwnedBytes?
  private var used = 0
  /// The run being filled: where its headroom is, and its records.
  private var start = 0
  private var run: (firstOffset: UInt64, count: UInt32) = (0, 0)
  private var isFull = false

  /// The offset of the first record taken.
  package private(set) var firstOffset: UInt64 = 0
  /// The offset after the last record taken.
  package private(set) var endOffset: UInt64 = 0
  /// The number of records taken, and their bytes.
  package private(set) var count: UInt64 = 0
  package private(set) var recordBytes = 0
  /// The time of the last mark.
  package private(set) var time: Int64?

  /// - Parameters:
  ///   - headroom: at least 16 bytes.
  ///   - largest: the most bytes of a run. The first record is taken however long it is; if it is longer than that, it is the only one.
  ///   - time: the time of the previous mark; nil if the first record needs one.
  init(records: UInt64, bytes: Int, largest: Int, headroom: Int, time: Int64?) {
    assert(headroom >= Self.description)
    limit = records
    self.bytes = bytes
    self.largest = largest
    self.headroom = headroom
    self.time = time
  }

  /// Copies a record. Returns false if it isn't taken because there is no room.
  package mutating func take(_ record: CompactedRecord) -> Bool {
    let item = unsafe record.item
    guard !isFull, count < limit else { return false }
    if item.count > largest {
      guard count == 0 else { return false }
      isFull = true
    }
    if count == 0 { firstOffset = record.offset }
    endOffset = record.offset + 1
    let room = headroom + RecordLayout.timeMarkSize + item.count
    if let block {
      guard unsafe used + room <= block.bytes.count else { return false }
    } else {
      block = OwnedBytes(count: max(bytes, room))
    }
    let isNext = run.count > 0 && record.offset == run.firstOffset + UInt64(run.count)
    if !isNext || used - start - headroom + RecordLayout.timeMarkSize + item.count > largest {
      describeRun()
      start = used
      used += headroom
      run = (record.offset, 0)
    }
    let base = unsafe block.unsafelyUnwrapped.bytes.baseAddress.unsafelyUnwrapped
    if record.time != time {
      unsafe RecordLayout.writeTimeMark(record.time, at: base + used)
      used += RecordLayout.timeMarkSize
      time = record.time
    }
    unsafe (base + used).copyMemory(from: item.baseAddress.unsafelyUnwrapped, byteCount: item.count)
    used += item.count
    run.count += 1
    count += 1
    recordBytes += item.count
    return true
  }

  /// Completes the runs after the last record. There must be at least one record.
  package mutating func finish() {
    describeRun()
  }

  private func describeRun() {
    guard run.count > 0, let base = unsafe block?.bytes.baseAddress else { return }
    let header = unsafe base + start
    unsafe header.storeBytes(of: run.firstOffset, as: UInt64.self)
    unsafe header.storeBytes(of: run.count, toByteOffset: 8, as: UInt32.self)
    unsafe header.storeBytes(of: UInt32(used - start - headroom), toByteOffset: 12, as: UInt32.self)
  }

  /// Passes the headroom of every run to the caller, to be filled, with the description of the run; returns the block. Can be called once.
  package func fill(
    _ write: (_ header: UnsafeMutableRawPointer, _ firstOffset: UInt64, _ count: UInt32, _ bytes: Int) -> Void
  ) -> (owner: OwnedBytes, bytes: UnsafeRawBufferPointer)? {
    guard let block, let base = unsafe block.bytes.baseAddress else { return nil }
    var position = 0
    while position < used {
      let header = unsafe base + position
      let length = unsafe Int(header.loadUnaligned(fromByteOffset: 12, as: UInt32.self))
      unsafe write(
        header, header.loadUnaligned(as: UInt64.self),
        header.loadUnaligned(fromByteOffset: 8, as: UInt32.self),
        length)
      position += headroom + length
    }
    return unsafe (block, UnsafeRawBufferPointer(rebasing: block.bytes[..<used]))
  }
}
