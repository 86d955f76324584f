import SluiceWire

/// What walking over items in the log needs beyond their words. All items here were checked when they came in, so that a
/// word that isn't a record's is a time mark's.
extension RecordLayout {
  /// The bytes of the item that this word begins, its word included.
  @inline(__always)
  static func itemSize(_ word: UInt32) -> Int {
    wordSize &+ length(word)
  }

  /// The time that the mark at `bytes` tells.
  @inline(__always)
  static func time(ofMarkAt bytes: UnsafeRawPointer) -> Int64 {
    Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: wordSize, as: Int64.self))
  }
}
