/// Writes values in as few bytes as they need, for this process to read again with ``PackedReader``: no format that is stored or sent.
package struct PackedWriter {
  private var writer = ByteWriter()

  package init() {
    writer.bytes.reserveCapacity(256)
  }

  /// The written bytes, in an array of exactly that size.
  package var bytes: [UInt8] { writer.bytes.map(\.self) }

  /// - Precondition: the value isn't negative.
  package mutating func number(_ value: some FixedWidthInteger) { writer.compact(UInt64(value)) }

  /// At most eight flags, which share a byte.
  package mutating func flags(_ flags: Bool...) {
    assert(flags.count <= 8, "flags share a byte")
    var byte: UInt8 = 0
    for (place, flag) in flags.enumerated() where flag { byte |= 1 << place }
    writer.integer(byte)
  }

  package mutating func text(_ text: String) {
    number(text.utf8.count)
    writer.bytes.append(contentsOf: text.utf8)
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
    let read = unsafe bytes.withUnsafeBytes { bytes -> (value: UInt64, left: Int)? in
      var reader = unsafe ByteReader(UnsafeRawBufferPointer(rebasing: bytes[place...]))
      guard let value = try? reader.compact("number") else { return nil }
      return (value, reader.count)
    }
    guard let read else { preconditionFailure("a packed number can't be read") }
    place = bytes.count - read.left
    return Number(read.value)
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
