/// DISCONNECT or AUTH: a reason and properties.
package struct MQTTNotice: Hashable, Sendable {
  package var type: MQTTPacketType
  package var reason: MQTTReason
  package var properties: MQTTProperties

  package init(
    _ type: MQTTPacketType, _ reason: MQTTReason = .success, properties: MQTTProperties = MQTTProperties()
  ) {
    self.type = type
    self.reason = reason
    self.properties = properties
  }

  init(
    _ type: MQTTPacketType, _ body: UnsafeRawBufferPointer, _ version: MQTTVersion, from sender: MQTTSender
  ) throws(MQTTError) {
    self.type = type
    reason = .success
    properties = MQTTProperties()
    var reader = unsafe MQTTReader(body)
    guard version == .v5 else {
      guard reader.count == 0 else { throw .malformed("\(type) has \(reader.count) bytes too many") }
      return
    }
    guard reader.count > 0 else { return }
    reason = MQTTReason(rawValue: try reader.byte("the reason code"))
    guard reason.isAllowed(in: type, from: sender) else {
      throw .violation("the reason \(reason) isn't one of a \(sender)'s \(type)")
    }
    guard reader.count > 0 else { return }
    properties = MQTTProperties(try MQTTPropertyView(&reader, in: type == .auth ? .auth : .disconnect))
    guard reader.count == 0 else { throw .malformed("\(type) has \(reader.count) bytes too many") }
    guard sender == .client || properties.number(.sessionExpiry) == nil else {
      throw .violation("a server's DISCONNECT has a session expiry interval")
    }
  }

  func encode(into writer: inout MQTTWriter, _ version: MQTTVersion) {
    writer.packet(type) { writer in
      guard version == .v5, reason != .success || !properties.isEmpty else { return }
      writer.byte(reason.rawValue)
      if !properties.isEmpty { properties.encode(into: &writer) }
    }
  }
}
