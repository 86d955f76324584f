// Integers that are mostly small, in what a broker stores and keeps; frames have none.

extension ByteWriter {
  /// Seven bits a byte, the lowest first; the highest bit says that more follow.
  package mutating func compact(_ value: UInt64) {
    var rest = value
    while rest >= 0x80 {
      integer(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    integer(UInt8(rest))
  }
}

extension ByteReader {
  package mutating func compact(_ what: StaticString) throws(WireError) -> UInt64 {
    var value: UInt64 = 0
    for shift in stride(from: 0, to: 64, by: 7) {
      let byte: UInt8 = try integer(what)
      // The tenth has room for a single bit.
      if shift == 63, byte > 1 { break }
      value |= UInt64(byte & 0x7F) << UInt64(shift)
      if byte < 0x80 { return value }
    }
    throw WireError(.malformedFrame, "\(what) doesn't fit in 64 bits")
  }
}
