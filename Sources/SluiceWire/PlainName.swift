/// Recognizes valid names and patterns of ASCII, which nearly all are, by a look at their bytes.
///
/// A text that isn't recognized may still be valid: ``TopicName`` and ``TopicPattern`` then check its characters, and say what is wrong.
enum PlainName {
  private static let dot = UInt8(ascii: ".")
  private static let star = UInt8(ascii: "*")
  private static let rest = UInt8(ascii: ">")
  /// 1 in each byte of a word, and the highest bit of each byte.
  private static let ones: UInt64 = 0x0101_0101_0101_0101
  private static let highs: UInt64 = 0x8080_8080_8080_8080

  /// Whether the text is a name of visible ASCII.
  static func isName(_ text: String) -> Bool {
    (unsafe text.utf8.withContiguousStorageIfAvailable { unsafe isName(UnsafeRawBufferPointer($0)) }) ?? false
  }

  /// Whether the text is a pattern of visible ASCII.
  static func isPattern(_ text: String) -> Bool {
    (unsafe text.utf8.withContiguousStorageIfAvailable { unsafe isPattern($0) }) ?? false
  }

  /// Looks at eight bytes at a time. The bytes of the last word that aren't there are filled with letters.
  private static func isName(_ bytes: UnsafeRawBufferPointer) -> Bool {
    guard (1...TopicName.maximumLength).contains(bytes.count), unsafe bytes[0] != UInt8(ascii: "$") else {
      return false
    }
    // A dot at the start is one too many, like one behind a dot.
    var formerDots = highs
    var position = 0
    while position + 8 <= bytes.count {
      let word = unsafe UInt64(littleEndian: bytes.loadUnaligned(fromByteOffset: position, as: UInt64.self))
      guard isPlain(word, &formerDots) else { return false }
      position += 8
    }
    if position < bytes.count {
      var word = ones &* UInt64(UInt8(ascii: "x"))
      for index in position..<bytes.count {
        let shift = UInt64(8 * (index - position))
        word = unsafe word & ~(0xFF << shift) | UInt64(bytes[index]) << shift
      }
      guard isPlain(word, &formerDots) else { return false }
    }
    return unsafe bytes[bytes.count - 1] != dot
  }

  /// Whether a name may have these eight bytes.
  ///
  /// - Parameter formerDots: the highest bits of the dots among the eight bytes before.
  @inline(__always)
  private static func isPlain(_ word: UInt64, _ formerDots: inout UInt64) -> Bool {
    guard word & highs == 0 else { return false }
    // No byte has its highest bit, so that no sum carries into the next byte.
    let visible = word &+ ones &* (0x80 - 0x21)
    let isDelete = equal(word, 0x7F)
    let dots = equal(word, dot)
    let behindDots = dots << 8 | formerDots >> 56
    formerDots = dots
    return visible & highs == highs
      && isDelete | equal(word, star) | equal(word, rest) | (dots & behindDots) == 0
  }

  /// The highest bit of each byte that is `byte`.
  @inline(__always)
  private static func equal(_ word: UInt64, _ byte: UInt8) -> UInt64 {
    ~((word ^ ones &* UInt64(byte)) &+ ones &* 0x7F) & highs
  }

  private static func isPattern(_ bytes: UnsafeBufferPointer<UInt8>) -> Bool {
    guard (1...TopicName.maximumLength).contains(bytes.count), unsafe bytes[0] != UInt8(ascii: "$") else {
      return false
    }
    var former = dot
    for index in 0..<bytes.count {
      let byte = unsafe bytes[index]
      switch byte {
      case 0...0x20, 0x7F...0xFF: return false
      case dot: if former == dot { return false }
      // Each is a token of its own, and no token follows the second one.
      case star:
        let isLast = index + 1 == bytes.count
        guard unsafe former == dot && (isLast || bytes[index + 1] == dot) else { return false }
      case rest: guard former == dot, index + 1 == bytes.count else { return false }
      default: break
      }
      former = byte
    }
    return former != dot
  }
}
