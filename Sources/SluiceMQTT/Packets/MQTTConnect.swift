/// CONNECT: a client opens a session.
package struct MQTTConnect: Hashable, Sendable {
  /// The message that is published if the connection ends without a normal disconnection.
  package struct Will: Hashable, Sendable {
    package var topic: String
    package var payload: [UInt8]
    package var qos: MQTTQoS
    package var isRetained: Bool
    package var properties = MQTTProperties()

    package init(topic: String, payload: [UInt8], qos: MQTTQoS = .atMostOnce, isRetained: Bool = false) {
      self.topic = topic
      self.payload = payload
      self.qos = qos
      self.isRetained = isRetained
    }

    /// Seconds from the end of the connection to the publication.
    package var delay: UInt32 { properties.number(.willDelay) ?? 0 }

    /// Calls `body` with the message to publish, valid during the call only.
    package func withMessage<Result>(_ body: (MQTTPublish) -> Result) -> Result {
      // The delay is the will's, not the message's.
      var properties = MQTTProperties()
      self.properties.withView { view in
        view.forEachProperty { if $0.property != .willDelay { properties.append($0) } }
      }
      return unsafe Array(topic.utf8).withUnsafeBytes { topic in
        unsafe payload.withUnsafeBytes { payload in
          properties.withView { view in
            body(
              unsafe MQTTPublish(
                topic: topic, payload: payload, qos: qos, isRetained: isRetained, properties: view))
          }
        }
      }
    }
  }

  package var version: MQTTVersion
  /// Whether the client is a bridge, which forwards messages of another broker: it sets a bit of the protocol level, as Mosquitto does in MQTT 3.1.1.
  package var isBridge = false
  /// Clean session in MQTT 3.1.1.
  package var cleanStart: Bool
  /// Seconds; 0 for none.
  package var keepAlive: UInt16
  package var clientID: String
  package var will: Will?
  package var username: String?
  package var password: [UInt8]?
  package var properties = MQTTProperties()

  package init(
    _ version: MQTTVersion, clientID: String, cleanStart: Bool = true, keepAlive: UInt16 = 0,
    will: Will? = nil, username: String? = nil, password: [UInt8]? = nil,
    properties: MQTTProperties = MQTTProperties()
  ) {
    self.version = version
    self.clientID = clientID
    self.cleanStart = cleanStart
    self.keepAlive = keepAlive
    self.will = will
    self.username = username
    self.password = password
    self.properties = properties
  }

  /// Seconds for which the session outlives the connection; all ones: forever.
  package var sessionExpiry: UInt32 {
    version == .v5 ? properties.number(.sessionExpiry) ?? 0 : (cleanStart ? 0 : .max)
  }

  /// The level of a bridge that speaks MQTT 3.1.1.
  private static let bridgeLevel: UInt8 = 0x84

  /// - Throws: ``MQTTReason/unsupportedVersion`` for another protocol or level.
  init(_ header: MQTTHeader, _ body: UnsafeRawBufferPointer) throws(MQTTError) {
    var reader = unsafe MQTTReader(body)
    let name = try reader.string("the protocol name")
    let level = try reader.byte("the protocol level")
    guard name == "MQTT", let version = MQTTVersion(rawValue: level == Self.bridgeLevel ? 4 : level) else {
      throw MQTTError(
        .unsupportedVersion,
        "the client speaks \(name == "MQTT" || name == "MQIsdp" ? name : "another protocol") level \(level); MQTT 3.1.1 (level 4) and MQTT 5 (level 5) are served"
      )
    }
    self.version = version
    isBridge = level == Self.bridgeLevel
    guard version == .v311 || header.isMinimal else {
      throw .malformed("the remaining length isn't encoded in the fewest bytes")
    }
    let flags = try reader.byte("the connect flags")
    guard flags & 1 == 0 else { throw .malformed("the reserved connect flag is set") }
    cleanStart = flags & 2 != 0
    keepAlive = try reader.short("the keep alive time")
    if version == .v5 { properties = MQTTProperties(try MQTTPropertyView(&reader, in: .connect)) }
    clientID = try reader.string("the client identifier")
    will = try Self.will(flags, &reader, version)
    if flags & 0x80 != 0 { username = try reader.string("the user name") }
    guard version == .v5 || flags & 0xC0 != 0x40 else {
      throw .malformed("there is a password without a user name")
    }
    if flags & 0x40 != 0 { password = unsafe Array(try reader.binary("the password")) }
    guard reader.count == 0 else { throw .malformed("CONNECT has \(reader.count) bytes too many") }
  }

  private static func will(
    _ flags: UInt8, _ reader: inout MQTTReader, _ version: MQTTVersion
  ) throws(MQTTError) -> Will? {
    guard flags & 4 != 0 else {
      guard flags & 0x38 == 0 else { throw .malformed("there is a QoS or a retain flag, but no will") }
      return nil
    }
    guard let qos = MQTTQoS(rawValue: flags >> 3 & 3) else { throw .malformed("the will has QoS 3") }
    var properties = MQTTProperties()
    if version == .v5 { properties = MQTTProperties(try MQTTPropertyView(&reader, in: .will)) }
    let topic = try unsafe reader.text("the will's topic")
    guard unsafe !topic.isEmpty else { throw .violation("the will's topic is empty") }
    try unsafe MQTTText.checkTopicName(topic, as: "the will's topic")
    let payload = try unsafe reader.binary("the will's payload")
    var will = unsafe Will(
      topic: String(decoding: topic, as: UTF8.self), payload: Array(payload), qos: qos,
      isRetained: flags & 0x20 != 0)
    will.properties = properties
    return will
  }

  func encode(into writer: inout MQTTWriter) {
    writer.packet(.connect) { writer in
      writer.string("MQTT")
      writer.byte(isBridge ? Self.bridgeLevel : version.rawValue)
      writer.byte(flags)
      writer.short(keepAlive)
      if version == .v5 { properties.encode(into: &writer) }
      writer.string(clientID)
      if let will {
        if version == .v5 { will.properties.encode(into: &writer) }
        writer.string(will.topic)
        writer.binary(will.payload)
      }
      if let username { writer.string(username) }
      if let password { writer.binary(password) }
    }
  }

  private var flags: UInt8 {
    var flags: UInt8 = cleanStart ? 2 : 0
    if let will { flags |= 4 | will.qos.rawValue << 3 | (will.isRetained ? 0x20 : 0) }
    if username != nil { flags |= 0x80 }
    if password != nil { flags |= 0x40 }
    return flags
  }

  /// The version in a CONNECT, whose other contents aren't read; nil for an unknown version.
  static func version(in body: UnsafeRawBufferPointer) -> MQTTVersion? {
    var reader = unsafe MQTTReader(body)
    guard (try? reader.string("")) == "MQTT", let level = try? reader.byte("") else { return nil }
    return MQTTVersion(rawValue: level == bridgeLevel ? 4 : level)
  }

  /// The answer to a client with an unsupported version. It has the format of MQTT 3.1.1 if the client's CONNECT has, regardless of its level; otherwise that
  /// of the nearest version that the client may support.
  ///
  /// - Parameter body: the body of its CONNECT, which may be invalid.
  package static func refusal(ofVersionIn body: UnsafeRawBufferPointer) -> [UInt8] {
    var reader = unsafe MQTTReader(body)
    let name = try? reader.string("")
    let level = try? reader.byte("")
    if name == "MQTT", let level, level > MQTTVersion.v5.rawValue, unsafe !hasOldForm(body) {
      return [0x20, 3, 0, 0x84, 0]
    }
    return name == "MQTT" || name == "MQIsdp" ? [0x20, 2, 0, 1] : []
  }
}

extension MQTTConnect {
  /// Whether a CONNECT can be read completely as one of MQTT 3.1.1, except for its level.
  private static func hasOldForm(_ body: UnsafeRawBufferPointer) -> Bool {
    var bytes = unsafe Array(body)
    let level = 2 + "MQTT".utf8.count
    guard level < bytes.count else { return false }
    bytes[level] = MQTTVersion.v311.rawValue
    let header = MQTTHeader(
      type: .connect, flags: 0, length: bytes.count, size: bytes.count + 2, isMinimal: true)
    return unsafe bytes.withUnsafeBytes { (try? unsafe MQTTConnect(header, $0)) != nil }
  }
}

/// CONNACK: the server's answer to CONNECT.
package struct MQTTConnack: Hashable, Sendable {
  package var isSessionPresent: Bool
  package var reason: MQTTReason
  package var properties: MQTTProperties

  package init(
    _ reason: MQTTReason, isSessionPresent: Bool = false, properties: MQTTProperties = MQTTProperties()
  ) {
    self.reason = reason
    self.isSessionPresent = isSessionPresent
    self.properties = properties
  }

  init(_ body: UnsafeRawBufferPointer, _ version: MQTTVersion) throws(MQTTError) {
    var reader = unsafe MQTTReader(body)
    let flags = try reader.byte("the acknowledge flags")
    guard flags & 0xFE == 0 else { throw .malformed("reserved acknowledge flags are set") }
    isSessionPresent = flags & 1 != 0
    let code = try reader.byte("the reason code")
    if version == .v5 {
      reason = MQTTReason(rawValue: code)
      guard reason.isAllowed(in: .connack, from: .server) else {
        throw .violation("the reason \(reason) isn't one of CONNACK")
      }
      properties = MQTTProperties(try MQTTPropertyView(&reader, in: .connack))
    } else {
      guard let reason = Self.reasons.first(where: { $0.code == code })?.reason else {
        throw .violation("the return code \(code) isn't defined")
      }
      self.reason = reason
      properties = MQTTProperties()
    }
    guard reader.count == 0 else { throw .malformed("CONNACK has \(reader.count) bytes too many") }
    guard !reason.isFailure || !isSessionPresent else {
      throw .violation("a CONNACK that refuses says that there is a session")
    }
  }

  func encode(into writer: inout MQTTWriter, _ version: MQTTVersion) {
    writer.packet(.connack) { writer in
      writer.byte(isSessionPresent ? 1 : 0)
      if version == .v5 {
        writer.byte(reason.rawValue)
        properties.encode(into: &writer)
      } else {
        writer.byte(Self.returnCode(reason))
      }
    }
  }

  /// The return codes of MQTT 3.1.1 and their equivalents in MQTT 5.
  private static let reasons: [(code: UInt8, reason: MQTTReason)] = [
    (0, .success), (1, .unsupportedVersion), (2, .clientIdentifierNotValid), (3, .serverUnavailable),
    (4, .badCredentials), (5, .notAuthorized),
  ]

  /// The return code of MQTT 3.1.1 that is closest to a reason.
  static func returnCode(_ reason: MQTTReason) -> UInt8 {
    if let pair = reasons.first(where: { $0.reason == reason }) { return pair.code }
    return reason == .banned ? 5 : 3
  }
}
