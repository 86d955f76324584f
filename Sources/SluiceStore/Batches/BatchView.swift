import CXXHash
import SluiceWire

/// A stored batch with a verified checksum, in place. Valid as long as its bytes are.
@safe
public struct BatchView {
  public let header: BatchHeader
  public let items: UnsafeRawBufferPointer

  /// Nil when the checksum or the offset is wrong.
  public init?(_ bytes: UnsafeRawBufferPointer, of topic: TopicID, at offset: UInt64) {
    guard bytes.count > BatchHeader.size, let base = bytes.baseAddress else { return nil }
    let checksum = unsafe UInt64(littleEndian: base.loadUnaligned(as: UInt64.self))
    guard unsafe checksum == Self.checksum(of: bytes, topic) else { return nil }
    header = unsafe BatchHeader(at: base)
    guard header.firstOffset == offset, header.records > 0 else { return nil }
    unsafe items = unsafe UnsafeRawBufferPointer(rebasing: bytes[BatchHeader.size...])
  }

  static func checksum(of value: UnsafeRawBufferPointer, _ topic: TopicID) -> UInt64 {
    unsafe xxh3_64bits(value.baseAddress! + 8, value.count - 8, topic.rawValue)
  }

  /// The first record with this time or a later one; nil when there is none.
  public func firstOffset(atOrAfter time: Int64) -> UInt64? {
    guard header.lastTime >= time else { return nil }
    var offset = header.firstOffset
    var isReached = false
    var position = 0
    while unsafe position < items.count, let base = unsafe items.baseAddress {
      let word = unsafe RecordLayout.word(at: base + position)
      if RecordLayout.isRecord(word) {
        if isReached { return offset }
        offset += 1
      } else {
        isReached = unsafe RecordLayout.time(ofMarkAt: base + position) >= time
      }
      position += RecordLayout.itemSize(word)
    }
    return nil
  }
}
