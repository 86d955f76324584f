/// The options of a subscription.
package struct MQTTSubscriptionOptions: Hashable, Sendable {
  /// When retained messages are sent for a SUBSCRIBE. The number is the one on the wire.
  package enum RetainHandling: UInt8, Hashable, Sendable, CaseIterable {
    case send = 0
    case sendIfNew = 1
    case doNotSend = 2
  }

  package var qos: MQTTQoS
  /// Whether the client's own messages aren't delivered to it.
  package var noLocal: Bool
  package var retainAsPublished: Bool
  package var retainHandling: RetainHandling

  package init(
    _ qos: MQTTQoS, noLocal: Bool = false, retainAsPublished: Bool = false,
    retainHandling: RetainHandling = .send
  ) {
    self.qos = qos
    self.noLocal = noLocal
    self.retainAsPublished = retainAsPublished
    self.retainHandling = retainHandling
  }

  init(_ byte: UInt8, _ version: MQTTVersion) throws(MQTTError) {
    let reserved: UInt8 = version == .v5 ? 0xC0 : 0xFC
    guard byte & reserved == 0 else { throw .malformed("reserved bits of the subscription options are set") }
    guard let qos = MQTTQoS(rawValue: byte & 3) else {
      throw version == .v5 ? .violation("the subscription asks for QoS 3") : .malformed("QoS 3 isn't defined")
    }
    guard let handling = RetainHandling(rawValue: byte >> 4 & 3) else {
      throw .violation("retain handling 3 isn't defined")
    }
    self.init(
      qos, noLocal: byte & 4 != 0, retainAsPublished: byte & 8 != 0, retainHandling: handling)
  }

  /// The encoding of MQTT 5.
  package var byte: UInt8 {
    qos.rawValue | (noLocal ? 4 : 0) | (retainAsPublished ? 8 : 0) | retainHandling.rawValue << 4
  }
}

/// SUBSCRIBE: requests subscriptions, each answered in SUBACK.
package struct MQTTSubscribe: Hashable, Sendable {
  package struct Item: Hashable, Sendable {
    package var filter: String
    package var options: MQTTSubscriptionOptions

    package init(_ filter: String, _ options: MQTTSubscriptionOptions) {
      self.filter = filter
      self.options = options
    }
  }

  package var packetID: UInt16
  package var items: [Item]
  package var properties: MQTTProperties

  package init(_ packetID: UInt16, _ items: [Item], properties: MQTTProperties = MQTTProperties()) {
    self.packetID = packetID
    self.items = items
    self.properties = properties
  }

  init(_ body: UnsafeRawBufferPointer, _ version: MQTTVersion) throws(MQTTError) {
    var reader = unsafe MQTTReader(body)
    packetID = try reader.short("the packet identifier")
    guard packetID != 0 else { throw .malformed("the packet identifier is 0") }
    properties = MQTTProperties()
    if version == .v5 { properties = MQTTProperties(try MQTTPropertyView(&reader, in: .subscribe)) }
    items = []
    while reader.count > 0 {
      let filter = try reader.string("a topic filter")
      items.append(Item(filter, try MQTTSubscriptionOptions(try reader.byte("the options"), version)))
    }
    guard !items.isEmpty else { throw .violation("SUBSCRIBE has no topic filter") }
  }

  func encode(into writer: inout MQTTWriter, _ version: MQTTVersion) {
    writer.packet(.subscribe) { writer in
      writer.short(packetID)
      if version == .v5 { properties.encode(into: &writer) }
      for item in items {
        writer.string(item.filter)
        writer.byte(version == .v5 ? item.options.byte : item.options.qos.rawValue)
      }
    }
  }
}

/// UNSUBSCRIBE: ends subscriptions, each answered in UNSUBACK.
package struct MQTTUnsubscribe: Hashable, Sendable {
  package var packetID: UInt16
  package var filters: [String]
  package var properties: MQTTProperties

  package init(_ packetID: UInt16, _ filters: [String], properties: MQTTProperties = MQTTProperties()) {
    self.packetID = packetID
    self.filters = filters
    self.properties = properties
  }

  init(_ body: UnsafeRawBufferPointer, _ version: MQTTVersion) throws(MQTTError) {
    var reader = unsafe MQTTReader(body)
    packetID = try reader.short("the packet identifier")
    guard packetID != 0 else { throw .malformed("the packet identifier is 0") }
    properties = MQTTProperties()
    if version == .v5 { properties = MQTTProperties(try MQTTPropertyView(&reader, in: .unsubscribe)) }
    filters = []
    while reader.count > 0 { filters.append(try reader.string("a topic filter")) }
    guard !filters.isEmpty else { throw .violation("UNSUBSCRIBE has no topic filter") }
  }

  func encode(into writer: inout MQTTWriter, _ version: MQTTVersion) {
    writer.packet(.unsubscribe) { writer in
      writer.short(packetID)
      if version == .v5 { properties.encode(into: &writer) }
      for filter in filters { writer.string(filter) }
    }
  }
}

/// SUBACK or UNSUBACK: the result for each topic filter, in their order.
package struct MQTTFilterAnswers: Hashable, Sendable {
  package var type: MQTTPacketType
  package var packetID: UInt16
  /// Empty in an UNSUBACK of MQTT 3.1.1.
  package var reasons: [MQTTReason]
  package var properties: MQTTProperties

  package init(
    _ type: MQTTPacketType, _ packetID: UInt16, _ reasons: [MQTTReason],
    properties: MQTTProperties = MQTTProperties()
  ) {
    self.type = type
    self.packetID = packetID
    self.reasons = reasons
    self.properties = properties
  }

  init(
    _ type: MQTTPacketType, _ body: UnsafeRawBufferPointer, _ version: MQTTVersion
  ) throws(MQTTError) {
    self.type = type
    var reader = unsafe MQTTReader(body)
    packetID = try reader.short("the packet identifier")
    guard packetID != 0 else { throw .malformed("the packet identifier is 0") }
    properties = MQTTProperties()
    if version == .v5 {
      let place: MQTTPropertyPlaces = type == .suback ? .suback : .unsuback
      properties = MQTTProperties(try MQTTPropertyView(&reader, in: place))
    }
    reasons = unsafe reader.rest.map { MQTTReason(rawValue: $0) }
    let allowed: (MQTTReason) -> Bool =
      version == .v5
      ? { $0.isAllowed(in: type, from: .server) } : { $0.rawValue <= 2 || $0 == .unspecified }
    guard reasons.allSatisfy(allowed) else { throw .violation("a reason isn't one of \(type)") }
    guard version == .v311 && type == .unsuback ? reasons.isEmpty : !reasons.isEmpty else {
      throw .malformed("\(type) has \(reasons.count) reasons")
    }
  }

  func encode(into writer: inout MQTTWriter, _ version: MQTTVersion) {
    writer.packet(type) { writer in
      writer.short(packetID)
      if version == .v5 { properties.encode(into: &writer) }
      if version == .v311 && type == .unsuback { return }
      for reason in reasons {
        // MQTT 3.1.1 has one code for every failure.
        writer.byte(version == .v311 && reason.isFailure ? 0x80 : reason.rawValue)
      }
    }
  }
}
