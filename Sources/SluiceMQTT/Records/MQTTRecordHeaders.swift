/// Maps the parts of a message to a record, so that clients of every protocol can use it.
///
/// | message | record |
/// |---|---|
/// | payload | payload |
/// | QoS, retain, payload format | header `mqtt`: one character, see ``MQTTRecordFlags`` |
/// | content type | header `content-type` |
/// | response topic | header `reply-to`, with the broker's separators; `mqtt-reply-to` if the broker can't have such a topic |
/// | correlation data | header `correlation-id` |
/// | message expiry | header `mqtt-expiry`, seconds as digits |
/// | user property `sluice-key` | key |
/// | other user properties | headers of the same names; those with a name from this table get the prefix `mqtt-user-` |
///
/// The header `mqtt-retained-at` is for brokers: see ``retainedAt``.
///
/// A record that wasn't published over MQTT has no header `mqtt`: it is delivered at the subscription's QoS.
package enum MQTTRecordHeaders {
  package static let flags = "mqtt"
  package static let contentType = "content-type"
  package static let replyTo = "reply-to"
  package static let foreignReplyTo = "mqtt-reply-to"
  package static let correlationID = "correlation-id"
  package static let expiry = "mqtt-expiry"
  /// In a retained message that a node of a cluster has written again: the offset of the record that it replaces, as digits. Clients don't see it.
  package static let retainedAt = "mqtt-retained-at"
  package static let key = "sluice-key"
  package static let userPrefix = "mqtt-user-"

  /// A header's name, recognised by its bytes.
  enum Known {
    case flags, contentType, replyTo, foreignReplyTo, correlationID, expiry, retainedAt, user, other
  }

  @inline(__always)
  static func known(_ name: UnsafeRawBufferPointer) -> Known {
    guard name.count >= 4 else { return .other }
    switch unsafe name[0] {
    case UInt8(ascii: "m"):
      if unsafe name.count == 4 && name.loadUnaligned(as: UInt32.self).littleEndian == 0x7474_716D {
        return .flags
      }
      if unsafe isEqual(name, expiry) { return .expiry }
      if unsafe isEqual(name, foreignReplyTo) { return .foreignReplyTo }
      if unsafe isEqual(name, retainedAt) { return .retainedAt }
      if name.count >= 10, unsafe name[..<10].elementsEqual(userPrefix.utf8) { return .user }
    case UInt8(ascii: "c"):
      if unsafe isEqual(name, contentType) { return .contentType }
      if unsafe isEqual(name, correlationID) { return .correlationID }
    case UInt8(ascii: "r"): if unsafe isEqual(name, replyTo) { return .replyTo }
    default: break
    }
    return .other
  }

  /// In a message of a client with a subscription that leaves out its own messages: the gateway recognises them by it.
  package static let publisher = "sluice-publisher"

  /// Whether a header is only for the MQTT gateway: other gateways that send headers as text leave it out.
  package static func isInternal(_ name: UnsafeRawBufferPointer) -> Bool {
    switch unsafe known(name) {
    case .flags, .retainedAt: true
    case .other: unsafe isEqual(name, publisher)
    default: false
    }
  }

  static func isEqual(_ name: UnsafeRawBufferPointer, _ text: String) -> Bool {
    unsafe name.count == text.utf8.count && name.elementsEqual(text.utf8)
  }
}

/// The character of the header `mqtt`, from `0` to `~`. Two bits are the QoS; the others state whether the message was published as retained, and whether its
/// publisher has declared its payload as text or as bytes. The character can be printed, because programs may display headers.
///
/// ```
///   7   6          5   4   3        2          1   0
/// +---+----------+-------+--------+----------+-------+
/// | 0 | is bytes | 1   1 | is text| retained |  QoS  |
/// +---+----------+-------+--------+----------+-------+
/// ```
package struct MQTTRecordFlags: Hashable, Sendable {
  /// The publisher's declaration of the payload: the values of the property Payload Format Indicator.
  package enum Format: UInt32, Hashable, Sendable, CaseIterable {
    case bytes = 0
    case text = 1
  }

  private static let isBytes: UInt8 = 0x40

  package var byte: UInt8

  /// - Parameter format: nil if the publisher has declared none.
  package init(qos: MQTTQoS, isRetained: Bool, format: Format? = nil) {
    byte = UInt8(ascii: "0") | qos.rawValue | (isRetained ? 4 : 0)
    switch format {
    case .text: byte |= 8
    case .bytes: byte |= Self.isBytes
    case nil: break
    }
  }

  package init(byte: UInt8) { self.byte = byte }

  package var qos: MQTTQoS { MQTTQoS(rawValue: byte & 3) ?? .exactlyOnce }
  package var isRetained: Bool { byte & 4 != 0 }
  package var format: Format? { byte & 8 != 0 ? .text : byte & Self.isBytes != 0 ? .bytes : nil }
}
