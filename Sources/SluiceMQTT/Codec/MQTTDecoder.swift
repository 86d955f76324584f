/// The fixed header of a packet.
///
/// ```
///   7 6 5 4 3 2 1 0
///  +-------+-------+---------------------------+----------
///  | type  | flags | remaining length          | body …
///  +-------+-------+---------------------------+----------
///                   1 to 4 bytes, seven bits each, the lowest first
/// ```
package struct MQTTHeader: Hashable, Sendable {
  package var type: MQTTPacketType
  package var flags: UInt8
  /// The length of the body, in bytes.
  package var length: Int
  /// The length of the header itself.
  package var size: Int
  /// Whether the length is encoded in the fewest bytes, as MQTT 5 requires.
  package var isMinimal: Bool
}

/// Splits a stream of bytes into packets, regardless of how the transport divided it into chunks.
///
/// A packet that is complete within a chunk is passed on in place, without a copy. Only a packet that spans chunks is assembled in the decoder's own memory.
/// That memory grows with the bytes received, never with the length that a header announces, and is released with the packet.
package struct MQTTDecoder: Sendable {
  /// The longest accepted packet, including its header, in bytes. A change applies from the next packet on.
  package var maximumPacket: Int

  /// How many bytes of the last chunk were consumed: all, unless the caller stopped early.
  package private(set) var takenBytes = 0

  private var partial: [UInt8] = []
  private let sender: MQTTSender
  /// Set until the header of the first packet has arrived: it must be CONNECT, or from a server CONNACK or AUTH.
  private var isOpening = true

  /// - Parameters:
  ///   - maximumPacket: the longest accepted packet, including its header, in bytes.
  ///   - sender: the end that sends the packets.
  package init(maximumPacket: Int, from sender: MQTTSender) {
    self.maximumPacket = maximumPacket
    self.sender = sender
  }

  /// A decoder between packets, for a connection whose first packet has arrived.
  init(goingOnWith maximumPacket: Int, from sender: MQTTSender) {
    self.init(maximumPacket: maximumPacket, from: sender)
    isOpening = false
  }

  /// Bytes of an incomplete packet; not 0 at the end of a stream means that it was cut off.
  package var pendingBytes: Int { partial.count }

  /// Bytes of memory allocated for that packet.
  package var heldBytes: Int { partial.capacity }

  /// Passes every packet that `chunk` completes to `body`, valid during the call only.
  ///
  /// `body` returns false to stop after this packet. ``takenBytes`` then is the position behind it, and the caller passes the remaining bytes again later.
  ///
  /// - Throws: ``MQTTReason/malformedPacket`` for an invalid type, flags or length; ``MQTTReason/packetTooLarge`` for a packet beyond the limit, as soon as
  ///   its header has arrived; any error of `body`. The decoder can't be used after that.
  package mutating func decode(
    _ chunk: UnsafeRawBufferPointer, _ body: (MQTTHeader, UnsafeRawBufferPointer) throws(MQTTError) -> Bool
  ) throws(MQTTError) {
    var rest = unsafe chunk
    takenBytes = chunk.count
    if !partial.isEmpty {
      guard try unsafe complete(&rest, body) else {
        takenBytes = chunk.count - rest.count
        return
      }
    }
    while unsafe !rest.isEmpty {
      let found = unsafe try header(rest)
      guard let header = found, rest.count >= header.size + header.length else {
        return unsafe partial.append(contentsOf: rest)
      }
      let end = header.size + header.length
      let packet = unsafe UnsafeRawBufferPointer(rebasing: rest[header.size..<end])
      unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[end...])
      guard try unsafe body(header, packet) else {
        takenBytes = chunk.count - rest.count
        return
      }
    }
  }

  /// Adds bytes to the packet that an earlier chunk began. Returns false if the chunk is consumed, or `body` stopped.
  private mutating func complete(
    _ rest: inout UnsafeRawBufferPointer,
    _ body: (MQTTHeader, UnsafeRawBufferPointer) throws(MQTTError) -> Bool
  ) throws(MQTTError) -> Bool {
    var found = try pendingHeader()
    while found == nil {
      guard let byte = unsafe rest.first else { return false }
      partial.append(byte)
      unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[1...])
      found = try pendingHeader()
    }
    guard let header = found else { return false }
    let taken = min(header.size + header.length - partial.count, rest.count)
    unsafe partial.append(contentsOf: rest[..<taken])
    unsafe rest = unsafe UnsafeRawBufferPointer(rebasing: rest[taken...])
    guard partial.count == header.size + header.length else { return false }
    let packet = partial
    partial = []
    return try unsafe packet.withUnsafeBufferPointer { packet throws(MQTTError) in
      try unsafe body(
        header, UnsafeRawBufferPointer(rebasing: UnsafeRawBufferPointer(packet)[header.size...]))
    }
  }

  private mutating func pendingHeader() throws(MQTTError) -> MQTTHeader? {
    let isOpening = isOpening
    let found = try unsafe partial.withUnsafeBufferPointer { bytes throws(MQTTError) in
      try unsafe Self.header(UnsafeRawBufferPointer(bytes), sender, isOpening, maximumPacket)
    }
    if found != nil { self.isOpening = false }
    return found
  }

  private mutating func header(_ bytes: UnsafeRawBufferPointer) throws(MQTTError) -> MQTTHeader? {
    let found = try unsafe Self.header(bytes, sender, isOpening, maximumPacket)
    if found != nil { isOpening = false }
    return found
  }

  /// The header at the start of `bytes`; nil if it is incomplete.
  @inline(__always)
  private static func header(
    _ bytes: UnsafeRawBufferPointer, _ sender: MQTTSender, _ isOpening: Bool, _ maximumPacket: Int
  ) throws(MQTTError) -> MQTTHeader? {
    let first = unsafe bytes[0]
    guard let type = MQTTPacketType(rawValue: first >> 4) else {
      throw .malformed("packet type 0 isn't defined")
    }
    let flags = first & 0x0F
    guard type.flags == nil || type.flags == flags, flags & 0x06 != 0x06 else {
      throw .malformed("\(type) has the flags \(flags), which are reserved")
    }
    guard sender.sends(type, .v5) else { throw .violation("a \(sender) doesn't send \(type)") }
    if isOpening {
      guard type == .connect || sender == .server && (type == .connack || type == .auth) else {
        throw .violation("the first packet is \(type); it must be CONNECT")
      }
    }
    var length = 0
    for place in 1...4 {
      guard bytes.count > place else { return nil }
      let byte = unsafe bytes[place]
      length |= Int(byte & 0x7F) << ((place - 1) * 7)
      guard byte & 0x80 == 0 else { continue }
      guard length <= maximumPacket - place - 1 else {
        throw MQTTError(
          .packetTooLarge,
          "a \(type) packet of \(length + place + 1) bytes is longer than the limit of \(maximumPacket)")
      }
      let isMinimal = byte != 0 || place == 1
      return MQTTHeader(type: type, flags: flags, length: length, size: place + 1, isMinimal: isMinimal)
    }
    throw .malformed("the remaining length has more than four bytes")
  }
}
