/// Up to eight bytes of fields, assembled in a register so that they are appended at once.
struct SmallFields {
  /// The most bytes of them.
  static let capacity = 8

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

  /// Writes the fields, and moves `end` behind them. The size of a register must be free there.
  @inline(__always)
  func write(at end: inout UnsafeMutableRawPointer) {
    unsafe end.storeBytes(of: bits.littleEndian, as: UInt64.self)
    unsafe end += count
  }
}
