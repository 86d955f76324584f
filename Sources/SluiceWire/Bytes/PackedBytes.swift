/// Writes values in as few bytes as they need, for this process to read again with ``PackedReader``: no format that is stored or sent.
///
/// A number takes seven bits a byte, the lowest first; the high bit says that more follow.
package struct PackedWriter {
  private var buffer: [UInt8] = []

  package init() {
    buffer.reserveCapacity(256)
  }

  /// What was written, in an array of just that size.
  package var bytes: [UInt8] { buffer.map(\.self) }

  /// - Precondition: the value isn't negative.
  package mutating func number(_ value: some FixedWidthInteger) {
    var rest = UInt64(value)
    while rest >= 0x80 {
      buffer.append(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    buffer.append(UInt8(rest))
  }

  /// At most eight flags, which share a byte.
  package mutating func flags(_ flags: Bool...) {
    assert(flags.count <= 8, "flags share a byte")
    var byte: UInt8 = 0
    for (place, flag) in flags.enumerated() where flag { byte |= 1 << place }
    buffer.append(byte)
  }

  package mutating func text(_ text: String) {
    number(text.utf8.count)
    buffer.append(contentsOf: text.utf8)
  }
}

/// Reads what a ``PackedWriter`` of this process has written, in the same order.
package struct PackedReader {
  private let bytes: [UInt8]
  private var place = 0

  package init(_ bytes: [UInt8]) {
    self.bytes = bytes
  }

  package mutating func number<Number: FixedWidthInteger>(_: Number.Type = Number.self) -> Number {
    var value: UInt64 = 0
    var shift: UInt64 = 0
    while true {
      let byte = bytes[place]
      place += 1
      value |= UInt64(byte & 0x7F) << shift
      if byte < 0x80 { return Number(value) }
      shift += 7
    }
  }

  /// Flags in a byte, the first one lowest.
  package struct Flags {
    fileprivate let byte: UInt8

    package subscript(place: Int) -> Bool { byte & 1 << place != 0 }
  }

  package mutating func flags() -> Flags {
    defer { place += 1 }
    return Flags(byte: bytes[place])
  }

  package mutating func text() -> String {
    let count = number(Int.self)
    defer { place += count }
    return String(decoding: bytes[place..<place + count], as: UTF8.self)
  }
}
