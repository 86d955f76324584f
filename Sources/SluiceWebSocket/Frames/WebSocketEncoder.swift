/// Appends frames to a buffer of outgoing bytes.
package enum WebSocketEncoder {
  /// Appends a frame.
  ///
  /// - Parameters:
  ///   - isFinal: whether the message ends with it.
  ///   - isCompressed: whether it begins a compressed message.
  ///   - mask: a client's mask for the payload; nil for a server.
  package static func append(
    _ opcode: WebSocketOpcode, _ payload: UnsafeRawBufferPointer, isFinal: Bool = true,
    isCompressed: Bool = false, mask: WebSocketMask? = nil, to bytes: inout [UInt8]
  ) {
    appendHead(
      opcode, length: payload.count, isFinal: isFinal, isCompressed: isCompressed, mask: mask, to: &bytes)
    let start = bytes.count
    unsafe bytes.append(contentsOf: payload)
    if var mask {
      unsafe bytes.withUnsafeMutableBytes { bytes in
        unsafe mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: bytes[start...]))
      }
    }
  }

  /// Appends the head of a payload of `length` bytes that the caller sends from elsewhere.
  package static func appendHead(
    _ opcode: WebSocketOpcode, length: Int, isFinal: Bool = true, isCompressed: Bool = false,
    mask: WebSocketMask? = nil, to bytes: inout [UInt8]
  ) {
    bytes.append((isFinal ? 0x80 : 0) | (isCompressed ? 0x40 : 0) | opcode.rawValue)
    let masked: UInt8 = mask == nil ? 0 : 0x80
    switch length {
    case ...125: bytes.append(masked | UInt8(length))
    case ...0xFFFF:
      bytes.append(masked | 126)
      bytes.append(UInt8(length >> 8))
      bytes.append(UInt8(length & 0xFF))
    default:
      bytes.append(masked | 127)
      for shift in stride(from: 56, through: 0, by: -8) {
        bytes.append(UInt8(truncatingIfNeeded: length >> shift))
      }
    }
    if let mask { bytes.append(contentsOf: mask.bytes) }
  }

  /// Appends a Close frame. The reason is cut between two scalars if it is longer than 123 bytes. ``WebSocketCloseCode/noStatus`` and other
  /// codes that aren't allowed on the wire give an empty frame.
  package static func appendClose(
    _ code: WebSocketCloseCode, reason: String, mask: WebSocketMask? = nil, to bytes: inout [UInt8]
  ) {
    var payload: [UInt8] = []
    if code.isAllowedOnWire {
      payload = [UInt8(code.rawValue >> 8), UInt8(code.rawValue & 0xFF)]
      for scalar in reason.unicodeScalars {
        let next = UTF8.encode(scalar).map { Array($0) } ?? []
        guard payload.count + next.count <= WebSocketOpcode.largestControlPayload else { break }
        payload += next
      }
    }
    unsafe payload.withUnsafeBytes { unsafe append(.close, $0, mask: mask, to: &bytes) }
  }
}
