/// The header before the items of a stored batch, little-endian:
///
/// ```
/// 0 u64 checksum · 8 u64 first offset · 16 u64 bytes before · 24 i64 first time · 32 i64 last time
/// 40 u32 records · 44 u32 bytes of records · 48 items
/// ```
///
/// The checksum is XXH3 with 64 bits of all that follows it, seeded with the topic's number, so that a batch isn't taken for another topic's.
public struct BatchHeader: Hashable, Sendable {
  public static let size = 48

  public var firstOffset: UInt64
  /// Bytes of the topic's records before this batch, since it began; time marks aren't counted.
  public var bytesBefore: UInt64
  /// The times of the first and of the last record, in milliseconds since 1970.
  public var firstTime: Int64
  public var lastTime: Int64
  /// At least 1.
  public var records: UInt32
  /// Bytes of the records, each with its length word; time marks aren't counted.
  public var recordBytes: UInt32

  public init(
    firstOffset: UInt64, bytesBefore: UInt64, firstTime: Int64, lastTime: Int64, records: UInt32,
    recordBytes: UInt32
  ) {
    self.firstOffset = firstOffset
    self.bytesBefore = bytesBefore
    self.firstTime = firstTime
    self.lastTime = lastTime
    self.records = records
    self.recordBytes = recordBytes
  }

  /// The offset behind the last record.
  public var endOffset: UInt64 { firstOffset &+ UInt64(records) }

  /// Bytes of the topic's records up to the end of this batch.
  var bytesThrough: UInt64 { bytesBefore + UInt64(recordBytes) }

  /// Whether that offset is behind all of a stored batch's records: some are missing there. A batch that says another offset than the one under which it
  /// is stored is damaged, and may have held it.
  package static func isBehind(
    _ offset: UInt64, _ value: UnsafeRawBufferPointer, storedAt first: UInt64
  ) -> Bool {
    guard value.count >= size, let base = value.baseAddress else { return false }
    let header = unsafe BatchHeader(at: base)
    return header.firstOffset == first && header.endOffset > first && header.endOffset <= offset
  }

  func write(at base: UnsafeMutableRawPointer) {
    unsafe base.storeBytes(of: firstOffset.littleEndian, toByteOffset: 8, as: UInt64.self)
    unsafe base.storeBytes(of: bytesBefore.littleEndian, toByteOffset: 16, as: UInt64.self)
    unsafe base.storeBytes(of: firstTime.littleEndian, toByteOffset: 24, as: Int64.self)
    unsafe base.storeBytes(of: lastTime.littleEndian, toByteOffset: 32, as: Int64.self)
    unsafe base.storeBytes(of: records.littleEndian, toByteOffset: 40, as: UInt32.self)
    unsafe base.storeBytes(of: recordBytes.littleEndian, toByteOffset: 44, as: UInt32.self)
  }

  /// Reads the header of a stored batch without verifying its checksum; nil for too few bytes.
  public init?(_ value: UnsafeRawBufferPointer) {
    guard value.count >= Self.size, let base = value.baseAddress else { return nil }
    unsafe self.init(at: base)
  }

  /// - Parameter base: of at least ``size`` bytes.
  package init(at base: UnsafeRawPointer) {
    func load<Number: FixedWidthInteger & BitwiseCopyable>(_ offset: Int, as: Number.Type) -> Number {
      unsafe Number(littleEndian: base.loadUnaligned(fromByteOffset: offset, as: Number.self))
    }
    self.init(
      firstOffset: load(8, as: UInt64.self), bytesBefore: load(16, as: UInt64.self),
      firstTime: load(24, as: Int64.self), lastTime: load(32, as: Int64.self),
      records: load(40, as: UInt32.self), recordBytes: load(44, as: UInt32.self))
  }
}
