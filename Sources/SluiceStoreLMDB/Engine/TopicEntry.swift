import CXXHash
import SluiceStore

/// A value of `topics`, little-endian:
///
/// ```
/// 0 u64 checksum · 8 u64 first offset · 16 u64 head · 24 u64 bytes before · 32 u64 bytes through · 40 i64 last time · 48 row
/// ```
///
/// The checksum is XXH3 with 64 bits of all that follows it, seeded with the topic's number. The row's bytes are taken over as they are when
/// only the extent changes.
struct TopicEntry {
  static let rowPosition = 48

  var extent: StoredExtent
  /// As `StoredTopic.encoded()` has made it.
  var row: [UInt8]

  init(_ row: StoredTopic) {
    extent = StoredExtent()
    self.row = row.encoded()
  }

  /// Nil when the bytes aren't what was stored for this topic.
  init?(_ bytes: UnsafeRawBufferPointer, of topic: TopicID) {
    guard let extent = unsafe Self.extent(bytes, of: topic) else { return nil }
    self.extent = extent
    row = unsafe Array(bytes[Self.rowPosition...])
  }

  static func extent(_ bytes: UnsafeRawBufferPointer, of topic: TopicID) -> StoredExtent? {
    func number(_ position: Int) -> UInt64 {
      unsafe UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
    }
    guard bytes.count >= rowPosition, unsafe number(0) == checksum(bytes, topic) else { return nil }
    var extent = StoredExtent()
    extent.firstOffset = number(8)
    extent.head = number(16)
    extent.bytesBefore = number(24)
    extent.bytesThrough = number(32)
    extent.lastTime = Int64(bitPattern: number(40))
    return extent
  }

  var count: Int { Self.rowPosition + row.count }

  /// - Parameter bytes: ``count`` of them.
  func write(to bytes: UnsafeMutableRawBufferPointer, for topic: TopicID) {
    func write(_ number: UInt64, _ position: Int) {
      unsafe bytes.storeBytes(of: number.littleEndian, toByteOffset: position, as: UInt64.self)
    }
    write(extent.firstOffset, 8)
    write(extent.head, 16)
    write(extent.bytesBefore, 24)
    write(extent.bytesThrough, 32)
    write(UInt64(bitPattern: extent.lastTime), 40)
    unsafe UnsafeMutableRawBufferPointer(rebasing: bytes[Self.rowPosition...]).copyBytes(from: row)
    unsafe write(Self.checksum(UnsafeRawBufferPointer(bytes), topic), 0)
  }

  private static func checksum(_ bytes: UnsafeRawBufferPointer, _ topic: TopicID) -> UInt64 {
    unsafe xxh3_64bits(bytes.baseAddress! + 8, bytes.count - 8, topic.rawValue)
  }
}

extension TopicEntry {
  init(extent: StoredExtent, row: [UInt8]) {
    self.extent = extent
    self.row = row
  }
}
