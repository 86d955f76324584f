import SluiceWire

/// PUBLISH, in place: all its contents are parts of the packet's memory.
@safe
package struct MQTTPublish {
  package var isDuplicate: Bool
  package var qos: MQTTQoS
  package var isRetained: Bool
  /// Empty if a topic alias replaces it.
  package var topic: UnsafeRawBufferPointer
  /// 0 at QoS 0.
  package var packetID: UInt16
  package var properties: MQTTPropertyView
  package var payload: UnsafeRawBufferPointer

  package init(
    topic: UnsafeRawBufferPointer, payload: UnsafeRawBufferPointer, qos: MQTTQoS = .atMostOnce,
    packetID: UInt16 = 0, isDuplicate: Bool = false, isRetained: Bool = false,
    properties: MQTTPropertyView = .none
  ) {
    unsafe self.topic = unsafe topic
    unsafe self.payload = unsafe payload
    self.qos = qos
    self.packetID = packetID
    self.isDuplicate = isDuplicate
    self.isRetained = isRetained
    self.properties = properties
  }

  init(
    _ header: MQTTHeader, _ body: UnsafeRawBufferPointer, _ version: MQTTVersion, from sender: MQTTSender
  ) throws(MQTTError) {
    guard let qos = MQTTQoS(rawValue: header.flags >> 1 & 3) else { throw .malformed("PUBLISH has QoS 3") }
    self.qos = qos
    isDuplicate = header.flags & 8 != 0
    isRetained = header.flags & 1 != 0
    guard qos != .atMostOnce || !isDuplicate else {
      throw .malformed("PUBLISH with QoS 0 is marked as a duplicate")
    }
    var reader = unsafe MQTTReader(body)
    unsafe topic = try reader.text("the topic name")
    packetID = 0
    if qos > .atMostOnce {
      packetID = try reader.short("the packet identifier")
      guard packetID != 0 else { throw .malformed("the packet identifier is 0") }
    }
    properties = version == .v5 ? try MQTTPropertyView(&reader, in: .publish) : .none
    if unsafe topic.isEmpty {
      guard version == .v5, properties.number(.topicAlias) != nil else {
        throw .violation("PUBLISH has neither a topic name nor a topic alias")
      }
    } else {
      try unsafe MQTTText.checkTopicName(topic, as: "the topic name")
    }
    guard sender == .server || properties.number(.subscriptionIdentifier) == nil else {
      throw .violation("a client's PUBLISH has a subscription identifier")
    }
    unsafe payload = unsafe reader.rest
  }

  /// The bytes of the packet with its header.
  package func size(_ version: MQTTVersion) -> Int {
    let body = bodySize(version)
    return 1 + MQTTLength.size(body) + body
  }

  private func bodySize(_ version: MQTTVersion) -> Int {
    let properties = unsafe properties.bytes.count
    return unsafe 2 + topic.count + (qos == .atMostOnce ? 0 : 2)
      + (version == .v5 ? MQTTLength.size(properties) + properties : 0) + payload.count
  }

  /// Appends the packet. It must not be longer than ``MQTTLength/largest``.
  package func encode(into bytes: inout [UInt8], _ version: MQTTVersion) {
    let first =
      MQTTPacketType.publish.rawValue << 4 | (isDuplicate ? 8 : 0) | qos.rawValue << 1 | (isRetained ? 1 : 0)
    let size = bodySize(version)
    // Each run of small fields is assembled in a register.
    unsafe bytes.append(room: size + 2 * SmallFields.capacity) { end in
      var fields = SmallFields()
      fields.byte(first)
      fields.variable(UInt32(size))
      unsafe fields.short(UInt16(topic.count))
      unsafe fields.write(at: &end)
      unsafe end.write(topic)
      fields = SmallFields()
      if qos > .atMostOnce { fields.short(packetID) }
      if version == .v5 { unsafe fields.variable(UInt32(properties.bytes.count)) }
      unsafe fields.write(at: &end)
      if version == .v5 { unsafe end.write(properties.bytes) }
      unsafe end.write(payload)
    }
  }
}
