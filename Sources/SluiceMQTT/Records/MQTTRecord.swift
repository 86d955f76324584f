import SluiceWire

/// The place of a record: a topic, by the broker's number for it, and an offset.
package struct MQTTPlace: Hashable, Sendable {
  package var topic: UInt32
  package var offset: UInt64

  package init(topic: UInt32, offset: UInt64) {
    self.topic = topic
    self.offset = offset
  }
}

/// A record that the broker delivers, in place.
@safe
package struct MQTTRecord {
  /// The topic's name in MQTT.
  package var topic: UnsafeRawBufferPointer
  package var place: MQTTPlace
  /// When it was appended, in milliseconds since 1970.
  package var time: Int64
  /// Whether its body has a key or headers before the payload.
  package var isAttributed: Bool
  package var body: UnsafeRawBufferPointer
  /// Whether this client has published it.
  package var isOwn: Bool
  /// Whether it is delivered because it is retained, not because it was just published.
  package var isRetained: Bool

  package init(
    topic: UnsafeRawBufferPointer, place: MQTTPlace, time: Int64, isAttributed: Bool,
    body: UnsafeRawBufferPointer, isOwn: Bool = false, isRetained: Bool = false
  ) {
    unsafe self.topic = unsafe topic
    self.place = place
    self.time = time
    self.isAttributed = isAttributed
    unsafe self.body = unsafe body
    self.isOwn = isOwn
    self.isRetained = isRetained
  }

  /// The parts of the record that a message contains.
  @safe
  struct Parts {
    var payload: UnsafeRawBufferPointer
    /// For a record that wasn't published over MQTT: no format, and the highest QoS.
    var flags = MQTTRecordFlags(byte: MQTTQoS.exactlyOnce.rawValue)
    /// Seconds from the record's time; nil for no expiry.
    var expiry: UInt32?
  }

  /// Reads the record, and appends its properties to `properties`. A record that can't be read, which no broker delivers, counts as one without headers.
  func parts(_ properties: inout MQTTProperties, _ version: MQTTVersion) -> Parts {
    guard isAttributed, let attributes = try? unsafe RecordAttributes(body) else {
      return unsafe Parts(payload: body)
    }
    var parts = unsafe Parts(payload: attributes.payload)
    // The key of a retained record is the topic's name.
    if version == .v5, !isRetained, let key = unsafe attributes.key, unsafe MQTTText.isValid(key) {
      unsafe Array(MQTTRecordHeaders.key.utf8).withUnsafeBytes {
        unsafe properties.append(userName: $0, raw: key)
      }
    }
    unsafe attributes.forEachHeader { name, value in
      let known = unsafe MQTTRecordHeaders.known(name)
      switch known {
      case .flags:
        if value.count == 1 { parts.flags = unsafe MQTTRecordFlags(byte: value[0]) }
      case .retainedAt: break
      case .other where unsafe MQTTRecordHeaders.isEqual(name, MQTTRecordHeaders.publisher): break
      case .expiry: parts.expiry = unsafe UInt32(String(decoding: value, as: UTF8.self))
      default:
        guard version == .v5, value.count <= MQTTText.maximumLength else { return }
        unsafe Self.append(known, name, value, &properties)
      }
    }
    if version == .v5, let format = parts.flags.format { properties.append(.payloadFormat, format.rawValue) }
    return parts
  }

  private static func append(
    _ known: MQTTRecordHeaders.Known, _ name: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer,
    _ properties: inout MQTTProperties
  ) {
    if known == .correlationID { return unsafe properties.append(.correlationData, raw: value) }
    // Values that aren't text are left out: properties of other types can't contain them.
    guard unsafe MQTTText.isValid(value), unsafe MQTTText.isValid(name) else { return }
    switch known {
    case .contentType: unsafe properties.append(.contentType, raw: value)
    case .foreignReplyTo: unsafe properties.append(.responseTopic, raw: value)
    case .replyTo:
      let topic = unsafe String(decoding: value, as: UTF8.self)
      properties.append(.responseTopic, MQTTTopicName.name(ofBroker: topic))
    case .user:
      unsafe properties.append(userName: UnsafeRawBufferPointer(rebasing: name[10...]), raw: value)
    default: unsafe properties.append(userName: name, raw: value)
    }
  }
}
