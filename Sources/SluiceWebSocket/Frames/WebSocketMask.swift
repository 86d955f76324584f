/// The masking of a client's payloads (RFC 6455, section 5.3): byte `i` is combined with byte `i mod 4` of the key.
package struct WebSocketMask: Hashable, Sendable {
  /// The key's bytes in memory order, rotated so that its first byte is for the next byte of the payload.
  private var key: UInt32

  /// - Parameter key: four bytes, in the order in which the frame has them.
  package init(_ key: (UInt8, UInt8, UInt8, UInt8)) {
    self.key = UInt32(key.0) | UInt32(key.1) << 8 | UInt32(key.2) << 16 | UInt32(key.3) << 24
  }

  /// The four bytes, in the order of the frame, while no payload has been masked.
  package var bytes: [UInt8] { (0..<4).map { UInt8(truncatingIfNeeded: key >> ($0 * 8)) } }

  /// Masks or unmasks the next bytes of a payload in place, and stores the position in the key for the next call.
  package mutating func apply(to bytes: UnsafeMutableRawBufferPointer) {
    guard let start = bytes.baseAddress else { return }
    let word = UInt64(key) | UInt64(key) << 32
    let mask = word.littleEndian
    let count = bytes.count
    var offset = 0
    while offset &+ 32 <= count {
      for step in 0..<4 {
        let place = offset &+ step &* 8
        let masked = unsafe start.loadUnaligned(fromByteOffset: place, as: UInt64.self) ^ mask
        unsafe start.storeBytes(of: masked, toByteOffset: place, as: UInt64.self)
      }
      offset &+= 32
    }
    while offset &+ 8 <= count {
      let masked = unsafe start.loadUnaligned(fromByteOffset: offset, as: UInt64.self) ^ mask
      unsafe start.storeBytes(of: masked, toByteOffset: offset, as: UInt64.self)
      offset &+= 8
    }
    var rest = word
    while offset < count {
      let masked =
        unsafe start.load(fromByteOffset: offset, as: UInt8.self) ^ UInt8(truncatingIfNeeded: rest)
      unsafe start.storeBytes(of: masked, toByteOffset: offset, as: UInt8.self)
      rest >>= 8
      offset &+= 1
    }
    let turn = UInt32(count & 3) &* 8
    if turn != 0 { key = key >> turn | key << (32 &- turn) }
  }
}
