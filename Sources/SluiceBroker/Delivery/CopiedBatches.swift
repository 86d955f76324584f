import SluiceLog
import SluiceWire

/// DELIVER frames with copies of records, one for each run of offsets without a gap, in one block of memory.
///
/// Where there are gaps nearly every record has a frame of its own. Slices of the log's kind would take two vectors of a write for
/// each; as a copy it is one for all.
struct CopiedBatches {
  private static let headerBytes = FrameHeader.size + DeliverHeader.size

  let stream: UInt32
  /// The most records, about the most bytes, and the most of one batch.
  private let limit: UInt64
  private let bytes: Int
  private let largest: Int

  private var block: OwnedBytes?
  private var used = 0
  /// The frame being filled: where it begins, and its records.
  private var start = 0
  private var run: (firstOffset: UInt64, count: UInt32) = (0, 0)

  /// Records taken, and the bytes of these.
  private(set) var count: UInt64 = 0
  private(set) var recordBytes = 0
  /// Of the last mark.
  private(set) var time: Int64?
  /// The record that wasn't taken fits no frame.
  private(set) var tooLong = false

  /// - Parameter time: of the last mark before, on the stream; nil when there was none.
  init(stream: UInt32, records: UInt64, bytes: Int, largest: Int, time: Int64?) {
    self.stream = stream
    limit = records
    self.bytes = bytes
    self.largest = largest
    self.time = time
  }

  /// Returns false when the record isn't taken, because there is no room. The first is, unless it is too long.
  mutating func take(_ record: CompactedRecord) -> Bool {
    let item = unsafe record.item
    guard item.count <= largest else {
      tooLong = count == 0
      return false
    }
    guard count < limit else { return false }
    let room = Self.headerBytes + RecordLayout.timeMarkSize + item.count
    if let block {
      guard unsafe used + room <= block.bytes.count else { return false }
    } else {
      block = OwnedBytes(count: max(bytes, room))
    }
    let isNext = run.count > 0 && record.offset == run.firstOffset + UInt64(run.count)
    if !isNext || used - start - Self.headerBytes + RecordLayout.timeMarkSize + item.count > largest {
      closeFrame()
      start = used
      used += Self.headerBytes
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

  private func closeFrame() {
    guard run.count > 0, let base = unsafe block?.bytes.baseAddress else { return }
    unsafe DeliverHeader(firstOffset: run.firstOffset, count: run.count)
      .write(at: base + start, stream: stream, batchLength: used - start - Self.headerBytes)
  }

  /// The frames; nil when no record was taken.
  mutating func finish() -> HeldBytes? {
    guard count > 0, let block else { return nil }
    closeFrame()
    return unsafe .records(block, UnsafeRawBufferPointer(rebasing: block.bytes[..<used]))
  }
}
