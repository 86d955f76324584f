/// A value of `topics`, little-endian:
///
/// ```
/// 0 u64 first offset · 8 u64 head · 16 u64 bytes before · 24 u64 bytes through · 32 i64 last time · 40 row
/// ```
///
/// The row's bytes are taken over as they are when only the extent changes.
struct TopicEntry {
  static let extentSize = 40

  var extent: StoredExtent
  /// As ``StoredTopic/encoded()`` has made it.
  var row: [UInt8]

  init(_ row: StoredTopic) {
    extent = StoredExtent()
    self.row = row.encoded()
  }

  /// Nil when it is too short for one.
  init?(_ bytes: UnsafeRawBufferPointer) {
    guard let extent = Self.extent(bytes) else { return nil }
    self.extent = extent
    row = Array(bytes[Self.extentSize...])
  }

  static func extent(_ bytes: UnsafeRawBufferPointer) -> StoredExtent? {
    guard bytes.count >= extentSize else { return nil }
    func number(_ position: Int) -> UInt64 {
      UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
    }
    var extent = StoredExtent()
    extent.firstOffset = number(0)
    extent.head = number(8)
    extent.bytesBefore = number(16)
    extent.bytesThrough = number(24)
    extent.lastTime = Int64(bitPattern: number(32))
    guard extent.firstOffset <= extent.head, extent.bytesBefore <= extent.bytesThrough else { return nil }
    return extent
  }

  var count: Int { Self.extentSize + row.count }

  /// - Parameter bytes: ``count`` of them.
  func write(to bytes: UnsafeMutableRawBufferPointer) {
    func write(_ number: UInt64, _ position: Int) {
      bytes.storeBytes(of: number.littleEndian, toByteOffset: position, as: UInt64.self)
    }
    write(extent.firstOffset, 0)
    write(extent.head, 8)
    write(extent.bytesBefore, 16)
    write(extent.bytesThrough, 24)
    write(UInt64(bitPattern: extent.lastTime), 32)
    UnsafeMutableRawBufferPointer(rebasing: bytes[Self.extentSize...]).copyBytes(from: row)
  }
}

extension TopicEntry {
  init(extent: StoredExtent, row: [UInt8]) {
    self.extent = extent
    self.row = row
  }
}
