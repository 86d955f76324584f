/// Checks text that comes in pieces, cut anywhere, and finds a fault at the first byte with which the text can't be UTF-8 any more.
///
/// Overlong forms, surrogates and scalars beyond U+10FFFF are faults (RFC 3629).
package struct UTF8Validator: Hashable, Sendable {
  /// Continuation bytes that the scalar under way still needs.
  private var missing: UInt8 = 0
  /// The range of the next continuation byte.
  private var lowest: UInt8 = 0x80
  private var highest: UInt8 = 0xBF

  package init() {}

  /// Whether the text may end here.
  package var isBetweenScalars: Bool { missing == 0 }

  /// Returns false at the first byte that is wrong. The validator isn't usable after that.
  package mutating func take(_ bytes: UnsafeRawBufferPointer) -> Bool {
    var offset = 0
    let count = bytes.count
    while offset < count {
      if missing == 0 {
        // Most text is ASCII: eight bytes at a time.
        while unsafe offset &+ 8 <= count
          && bytes.loadUnaligned(fromByteOffset: offset, as: UInt64.self) & 0x8080_8080_8080_8080 == 0
        { offset &+= 8 }
        guard offset < count else { return true }
      }
      let byte = unsafe bytes[offset]
      offset &+= 1
      if missing > 0 {
        guard byte >= lowest, byte <= highest else { return false }
        (lowest, highest) = (0x80, 0xBF)
        missing &-= 1
      } else if byte >= 0x80 {
        guard begin(byte) else { return false }
      }
    }
    return true
  }

  /// The first byte of a scalar of several.
  private mutating func begin(_ byte: UInt8) -> Bool {
    switch byte {
    case 0xC2...0xDF: missing = 1
    case 0xE0: (missing, lowest) = (2, 0xA0)
    case 0xED: (missing, highest) = (2, 0x9F)
    case 0xE1...0xEF: missing = 2
    case 0xF0: (missing, lowest) = (3, 0x90)
    case 0xF1...0xF3: missing = 3
    case 0xF4: (missing, highest) = (3, 0x8F)
    default: return false
    }
    return true
  }
}
