/// The head of a frame, before the payload.
///
/// ```
///   0                   1                   2                   3
///   0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
///  +-+-+-+-+-------+-+-------------+-------------------------------+
///  |F|R|R|R| opcode|M| length      | length, 16 or 64 bits, where  |
///  |I|S|S|S|  (4)  |A|   (7)       | the seven bits are 126 or 127 |
///  |N|V|V|V|       |S|             |                               |
///  +-+-+-+-+-------+-+-------------+ - - - - - - - - - - - - - - - +
///  | masking key, four bytes, where M is 1                         |
///  +---------------------------------------------------------------+
/// ```
struct WebSocketFrameHead: Hashable {
  var isFinal: Bool
  /// R1: the message that begins with the frame is compressed, if that was agreed on (RFC 7692, section 6).
  var isCompressed: Bool
  var opcode: WebSocketOpcode
  var length: UInt64
  var mask: WebSocketMask?

  /// The longest, in bytes.
  static let largestSize = 14

  /// Its length, by the first two bytes; 2 while fewer have arrived.
  static func size(_ bytes: UnsafeRawBufferPointer) -> Int {
    guard bytes.count >= 2 else { return 2 }
    let second = unsafe bytes[1]
    let mask = second & 0x80 == 0 ? 0 : 4
    switch second & 0x7F {
    case 126: return 4 + mask
    case 127: return 10 + mask
    default: return 2 + mask
    }
  }

  /// Checks the first bytes, so that a fault is found before the rest of the head has arrived.
  ///
  /// - Parameter compression: whether messages may be compressed.
  static func checkStart(
    _ bytes: UnsafeRawBufferPointer, at side: WebSocketSide, compression: Bool
  ) throws(WebSocketError) {
    guard let first = unsafe bytes.first else { return }
    guard first & (compression ? 0x30 : 0x70) == 0 else {
      throw WebSocketError(
        .protocolError,
        compression
          ? "a frame has reserved bits set that permessage-deflate has no meaning for"
          : "a frame has reserved bits set, but no extension was agreed on")
    }
    guard let opcode = WebSocketOpcode(rawValue: first & 0x0F) else {
      throw WebSocketError(.protocolError, "opcode \(first & 0x0F) isn't defined")
    }
    guard first & 0x40 == 0 || opcode == .text || opcode == .binary else {
      throw WebSocketError(
        .protocolError, "a \(opcode) frame is marked as compressed; only the first frame of a message is")
    }
    guard !opcode.isControl || first & 0x80 != 0 else {
      throw WebSocketError(.protocolError, "a \(opcode) frame is fragmented; control frames can't be")
    }
    guard bytes.count > 1 else { return }
    let second = unsafe bytes[1]
    guard (second & 0x80 != 0) == (side == .server) else {
      let message =
        side == .server
        ? "a frame isn't masked; a client masks every frame" : "a frame is masked; a server doesn't mask"
      throw WebSocketError(.protocolError, message)
    }
    guard !opcode.isControl || second & 0x7F <= 125 else {
      throw WebSocketError(.protocolError, "a \(opcode) frame has a payload of more than 125 bytes")
    }
  }

  /// Reads a head that is there as a whole and whose start has been checked.
  init(_ bytes: UnsafeRawBufferPointer) throws(WebSocketError) {
    let (first, second) = unsafe (bytes[0], bytes[1])
    isFinal = first & 0x80 != 0
    isCompressed = first & 0x40 != 0
    opcode = unsafe WebSocketOpcode(rawValue: first & 0x0F).unsafelyUnwrapped
    var end = 2
    switch second & 0x7F {
    case 126:
      length = unsafe UInt64(UInt16(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt16.self)))
      end = 4
    case 127:
      length = unsafe UInt64(bigEndian: bytes.loadUnaligned(fromByteOffset: 2, as: UInt64.self))
      end = 10
    case let short: length = UInt64(short)
    }
    guard length < 1 << 63 else {
      throw WebSocketError(.protocolError, "the first bit of a 64-bit length is set")
    }
    guard end == 2 || length > (end == 4 ? 125 : 0xFFFF) else {
      throw WebSocketError(.protocolError, "a length of \(length) isn't encoded in the fewest bytes")
    }
    if second & 0x80 != 0 {
      mask = unsafe WebSocketMask((bytes[end], bytes[end + 1], bytes[end + 2], bytes[end + 3]))
    }
  }
}
