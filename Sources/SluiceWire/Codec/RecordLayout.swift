/// How records lie in a batch: in a PUBLISH, in a DELIVER, and in the log between the two, as the same bytes.
///
/// A batch is a run of *items* without gaps or padding:
///
/// ```
///  31 30 29                                            0
///  +----+----------------------------------------------+---------------------------+
///  |kind| length of the body                           | body …                    |
///  +----+----------------------------------------------+---------------------------+
///       u32, little-endian
/// ```
///
/// - kind 0, a plain record: the body is the payload.
/// - kind 1, a record with attributes: `u8 flags` (1 key, 2 headers), then, by the flags, the key (`u16` length, bytes) and the
///   headers (`u16` count, each `u16` length and name, `u32` length and value). The payload takes the rest of the body.
/// - kind 2, a time mark: the body is an `i64`, milliseconds since 1970. It isn't a record and takes no offset. The records after
///   it, in this batch and in the next ones of the stream, carry its time. Only a broker writes it.
///
/// Offsets aren't stored: they count up from the batch's first.
public enum RecordLayout {
  /// In front of every item.
  public static let wordSize = 4
  /// The size of a time mark with its word.
  public static let timeMarkSize = 12
  /// The longest body that the word can say.
  public static let maximumBody = 0x3FFF_FFFF

  @usableFromInline static let lengthMask: UInt32 = 0x3FFF_FFFF
  @usableFromInline static let kindShift: UInt32 = 30

  /// The kind of an item.
  public enum Kind: UInt32, Sendable {
    case plain = 0
    case attributed = 1
    case timeMark = 2
    case reserved = 3
  }

  /// The item's word at `bytes`.
  @inlinable @inline(__always)
  public static func word(at bytes: UnsafeRawPointer) -> UInt32 {
    unsafe UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self))
  }

  /// The length of the body that a word announces.
  @inlinable @inline(__always)
  public static func length(_ word: UInt32) -> Int {
    Int(word & lengthMask)
  }

  /// True for a record of either kind.
  @inlinable @inline(__always)
  public static func isRecord(_ word: UInt32) -> Bool {
    word < 0x8000_0000
  }

  /// The kind of the item.
  @inlinable @inline(__always)
  public static func kind(_ word: UInt32) -> Kind {
    unsafe Kind(rawValue: word >> kindShift).unsafelyUnwrapped
  }

  /// The word of an item. `length` is 0 to ``maximumBody``.
  @inlinable @inline(__always)
  public static func word(_ kind: Kind, length: Int) -> UInt32 {
    kind.rawValue << kindShift | UInt32(length)
  }

  /// Writes a time mark, ``timeMarkSize`` bytes.
  @inlinable
  public static func writeTimeMark(_ milliseconds: Int64, at bytes: UnsafeMutableRawPointer) {
    unsafe bytes.storeBytes(of: word(.timeMark, length: 8).littleEndian, as: UInt32.self)
    unsafe bytes.storeBytes(of: milliseconds.littleEndian, toByteOffset: wordSize, as: Int64.self)
  }

  /// The bytes of the item that this word begins, its word included.
  @inlinable @inline(__always)
  public static func itemSize(_ word: UInt32) -> Int {
    wordSize &+ length(word)
  }

  /// The time in the mark at `bytes`. It must be one.
  @inlinable @inline(__always)
  public static func time(ofMarkAt bytes: UnsafeRawPointer) -> Int64 {
    unsafe Int64(littleEndian: bytes.loadUnaligned(fromByteOffset: wordSize, as: Int64.self))
  }
}
