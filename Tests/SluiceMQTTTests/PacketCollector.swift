import SluiceMQTT

/// An ``MQTTDecoder`` in the middle of a connection that collects packets.
final class PacketCollector {
  private var decoder: MQTTDecoder
  private let version: MQTTVersion
  private let sender: MQTTSender

  init(_ version: MQTTVersion, from sender: MQTTSender, maximumPacket: Int = 1 << 20) {
    self.version = version
    self.sender = sender
    decoder = MQTTDecoder(maximumPacket: maximumPacket, from: sender)
    // The packet that opens every connection.
    let opening: [UInt8] = sender == .client ? [0x10, 0] : [0x20, 0]
    try? opening.withUnsafeBytes { bytes in try decoder.decode(bytes) { _, _ in true } }
  }

  var isBetweenOutputs: Bool { decoder.pendingBytes == 0 }
  var heldBytes: Int { decoder.heldBytes }

  /// The packets collected so far.
  private(set) var packets: [OwnedPacket] = []

  func feed(_ chunk: UnsafeRawBufferPointer) throws -> [OwnedPacket] {
    packets = []
    try take(chunk)
    return packets
  }

  /// Decodes the next bytes, and collects the completed packets.
  func take(_ chunk: UnsafeRawBufferPointer) throws {
    try decoder.decode(chunk) { header, body throws(MQTTError) in
      packets.append(OwnedPacket(try MQTTPacket(header, body, version, from: sender)))
      return true
    }
  }
}
