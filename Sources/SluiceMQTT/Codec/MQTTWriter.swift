/// Appends big-endian fields to a growing buffer.
package struct MQTTWriter {
  package var bytes: [UInt8]

  package init(_ bytes: consuming [UInt8] = []) {
    self.bytes = bytes
  }

  mutating func byte(_ value: UInt8) { bytes.append(value) }

  mutating func short(_ value: UInt16) {
    bytes.append(UInt8(value >> 8))
    bytes.append(UInt8(value & 0xFF))
  }

  mutating func long(_ value: UInt32) {
    short(UInt16(value >> 16))
    short(UInt16(value & 0xFFFF))
  }

  /// At most ``MQTTLength/largest``.
  mutating func variable(_ value: UInt32) {
    var rest = value
    while rest >= 0x80 {
      bytes.append(UInt8(rest & 0x7F) | 0x80)
      rest >>= 7
    }
    bytes.append(UInt8(rest))
  }

  mutating func binary(_ value: UnsafeRawBufferPointer) {
    short(UInt16(value.count))
    unsafe bytes.append(contentsOf: value)
  }

  mutating func binary(_ value: [UInt8]) {
    short(UInt16(value.count))
    bytes.append(contentsOf: value)
  }

  /// Shortened at a scalar boundary if it exceeds the longest string.
  mutating func string(_ value: String) { binary(Array(value.cutForMQTT.utf8)) }

  /// Writes the bytes that `body` appends, preceded by their length as a variable byte integer.
  mutating func sized(_ body: (inout MQTTWriter) -> Void) {
    let start = bytes.count
    body(&self)
    var length = MQTTWriter()
    length.variable(UInt32(bytes.count - start))
    bytes.insert(contentsOf: length.bytes, at: start)
  }

  /// Writes a packet: its first byte, the remaining length, and the bytes that `body` appends.
  mutating func packet(_ type: MQTTPacketType, flags: UInt8? = nil, _ body: (inout MQTTWriter) -> Void) {
    byte(type.rawValue << 4 | (flags ?? type.flags ?? 0))
    sized(body)
  }
}

/// Lengths as variable byte integers.
package enum MQTTLength {
  /// The largest number that four bytes can encode: the longest body of a packet.
  package static let largest = 268_435_455

  /// The bytes that the encoding of a length takes.
  package static func size(_ value: Int) -> Int {
    switch value {
    case ..<128: 1
    case ..<16_384: 2
    case ..<2_097_152: 3
    default: 4
    }
  }
}

extension String {
  /// The longest prefix of whole scalars that fits into a string of the protocol.
  fileprivate var cutForMQTT: Substring {
    guard utf8.count > MQTTText.maximumLength else { return self[...] }
    var end = utf8.index(utf8.startIndex, offsetBy: MQTTText.maximumLength)
    while utf8[end] & 0xC0 == 0x80 { end = utf8.index(before: end) }
    return self[..<end]
  }
}
