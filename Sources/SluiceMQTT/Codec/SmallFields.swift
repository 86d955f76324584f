/// Up to eight bytes of fields, put together in a register, so that they are appended at once.
struct SmallFields {
  private var bits: UInt64 = 0
  private var count = 0

  @inline(__always)
  mutating func byte(_ value: UInt8) {
    bits |= UInt64(value) << UInt64(truncatingIfNeeded: count &* 8)
    count &+= 1
  }

  @inline(__always)
  mutating func short(_ value: UInt16) {
    byte(UInt8(truncatingIfNeeded: value >> 8))
    byte(UInt8(truncatingIfNeeded: value))
  }

  /// At most ``MQTTLength/largest``.
  @inline(__always)
  mutating func variable(_ value: UInt32) {
    var rest = value
    while rest >= 0x80 {
      byte(UInt8(truncatingIfNeeded: rest) | 0x80)
      rest >>= 7
    }
    byte(UInt8(truncatingIfNeeded: rest))
  }

  @inline(__always)
  func append(to bytes: inout [UInt8]) {
    guard count > 0 else { return }
    unsafe withUnsafeBytes(of: bits.littleEndian) { fields in
      unsafe bytes.append(contentsOf: UnsafeRawBufferPointer(rebasing: fields[..<count]))
    }
  }
}
