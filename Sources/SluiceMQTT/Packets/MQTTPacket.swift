/// A control packet. Only ``publish(_:)`` refers to the memory from which it was read; the others own their contents.
@safe
package enum MQTTPacket {
  case connect(MQTTConnect)
  case connack(MQTTConnack)
  case publish(MQTTPublish)
  /// PUBACK, PUBREC, PUBREL, PUBCOMP.
  case acknowledgement(MQTTAcknowledgement)
  case subscribe(MQTTSubscribe)
  case unsubscribe(MQTTUnsubscribe)
  /// SUBACK, UNSUBACK.
  case answers(MQTTFilterAnswers)
  case pingreq
  case pingresp
  case disconnect(MQTTNotice)
  case auth(MQTTNotice)

  /// Reads a packet.
  ///
  /// - Parameters:
  ///   - version: the version agreed on by CONNECT; CONNECT itself contains it.
  ///   - sender: the end that has sent it.
  /// - Throws: ``MQTTReason/malformedPacket`` for a packet that can't be read, ``MQTTReason/protocolError`` for one that the standard forbids, and other
  ///   reasons that the standard names.
  package init(
    _ header: MQTTHeader, _ body: UnsafeRawBufferPointer, _ version: MQTTVersion, from sender: MQTTSender
  ) throws(MQTTError) {
    if header.type == .publish {
      self = unsafe .publish(try MQTTPublish(header, body, version, from: sender))
      try Self.checkLength(header, version)
      return
    }
    if header.type == .connect {
      self = unsafe .connect(try MQTTConnect(header, body))
      return
    }
    try Self.checkLength(header, version)
    guard sender.sends(header.type, version) else {
      throw .violation("a \(sender) doesn't send \(header.type)")
    }
    switch header.type {
    case .connack: self = unsafe .connack(try MQTTConnack(body, version))
    case .puback, .pubrec, .pubrel, .pubcomp:
      self = unsafe .acknowledgement(try MQTTAcknowledgement(header.type, body, version, from: sender))
    case .subscribe: self = unsafe .subscribe(try MQTTSubscribe(body, version))
    case .unsubscribe: self = unsafe .unsubscribe(try MQTTUnsubscribe(body, version))
    case .suback, .unsuback: self = unsafe .answers(try MQTTFilterAnswers(header.type, body, version))
    case .disconnect: self = unsafe .disconnect(try MQTTNotice(.disconnect, body, version, from: sender))
    case .auth: self = unsafe .auth(try MQTTNotice(.auth, body, version, from: sender))
    case .pingreq, .pingresp, .connect, .publish:
      guard unsafe body.isEmpty else { throw .malformed("\(header.type) has a body") }
      self = header.type == .pingreq ? .pingreq : .pingresp
    }
  }

  @inline(__always)
  private static func checkLength(_ header: MQTTHeader, _ version: MQTTVersion) throws(MQTTError) {
    guard header.isMinimal || version == .v311 else {
      throw .malformed("the remaining length isn't encoded in the fewest bytes")
    }
  }

  /// Appends the packet.
  package func encode(into bytes: inout [UInt8], _ version: MQTTVersion) {
    if case .publish(let publish) = self { return publish.encode(into: &bytes, version) }
    var writer = MQTTWriter(bytes)
    bytes = []
    switch self {
    case .connect(let packet): packet.encode(into: &writer)
    case .connack(let packet): packet.encode(into: &writer, version)
    case .publish: break
    case .acknowledgement(let packet): packet.encode(into: &writer, version)
    case .subscribe(let packet): packet.encode(into: &writer, version)
    case .unsubscribe(let packet): packet.encode(into: &writer, version)
    case .answers(let packet): packet.encode(into: &writer, version)
    case .pingreq: writer.packet(.pingreq) { _ in }
    case .pingresp: writer.packet(.pingresp) { _ in }
    case .disconnect(let packet), .auth(let packet): packet.encode(into: &writer, version)
    }
    bytes = writer.bytes
  }
}
