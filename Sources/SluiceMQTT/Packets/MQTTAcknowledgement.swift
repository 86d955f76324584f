/// PUBACK, PUBREC, PUBREL or PUBCOMP: a step in the delivery of a message.
package struct MQTTAcknowledgement: Hashable, Sendable {
  package var type: MQTTPacketType
  package var packetID: UInt16
  /// Always ``MQTTReason/success`` in MQTT 3.1.1, which has no reasons.
  package var reason: MQTTReason
  package var properties: MQTTProperties

  package init(
    _ type: MQTTPacketType, _ packetID: UInt16, _ reason: MQTTReason = .success,
    properties: MQTTProperties = MQTTProperties()
  ) {
    self.type = type
    self.packetID = packetID
    self.reason = reason
    self.properties = properties
  }

  init(
    _ type: MQTTPacketType, _ body: UnsafeRawBufferPointer, _ version: MQTTVersion, from sender: MQTTSender
  ) throws(MQTTError) {
    self.type = type
    var reader = unsafe MQTTReader(body)
    packetID = try reader.short("the packet identifier")
    guard packetID != 0 else { throw .malformed("the packet identifier is 0") }
    reason = .success
    properties = MQTTProperties()
    guard version == .v5 else {
      guard reader.count == 0 else { throw .malformed("\(type) has \(reader.count) bytes too many") }
      return
    }
    guard reader.count > 0 else { return }
    reason = MQTTReason(rawValue: try reader.byte("the reason code"))
    guard reason.isAllowed(in: type, from: sender) else {
      throw .violation("the reason \(reason) isn't one of \(type)")
    }
    guard reader.count > 0 else { return }
    properties = MQTTProperties(try MQTTPropertyView(&reader, in: .acknowledgement))
    guard reader.count == 0 else { throw .malformed("\(type) has \(reader.count) bytes too many") }
  }

  func encode(into writer: inout MQTTWriter, _ version: MQTTVersion) {
    guard version == .v5, reason != .success || !properties.isEmpty else {
      writer.byte(type.rawValue << 4 | (type.flags ?? 0))
      writer.byte(2)
      return writer.short(packetID)
    }
    writer.packet(type) { writer in
      writer.short(packetID)
      writer.byte(reason.rawValue)
      if !properties.isEmpty { properties.encode(into: &writer) }
    }
  }
}
