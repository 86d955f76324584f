import SluiceMQTT

/// Bytes that a decoder must reject, with the reason.
struct BadPacket: CustomStringConvertible, Sendable {
  var name: String
  var version: MQTTVersion
  var sender: MQTTSender
  var hex: String
  var reason: MQTTReason

  var description: String { "\(name), \(version)" }

  init(
    _ name: String, _ version: MQTTVersion, _ hex: String, _ reason: MQTTReason = .malformedPacket,
    from sender: MQTTSender = .client
  ) {
    self.name = name
    self.version = version
    self.hex = hex
    self.reason = reason
    self.sender = sender
  }
}

let badPackets: [BadPacket] = badOfBoth + bad311 + bad5

private let badOfBoth: [BadPacket] = MQTTVersion.allCases.flatMap { version in
  [
    BadPacket("packet type 0", version, "00 00"),
    BadPacket("a length of five bytes", version, "30 80808080 01"),
    BadPacket("reserved flags of PINGREQ", version, "c1 00"),
    BadPacket("reserved flags of SUBSCRIBE", version, "80 06 0001 0001 61 00"),
    BadPacket("reserved flags of UNSUBSCRIBE", version, "a0 05 0001 0001 61"),
    BadPacket("reserved flags of PUBREL", version, "60 02 0001"),
    BadPacket("reserved flags of PUBACK", version, "42 02 0001"),
    BadPacket("reserved flags of DISCONNECT", version, "e1 00"),
    BadPacket("reserved flags of AUTH", version, "f1 00"),
    BadPacket("QoS 3", version, "36 05 0001 61 0001"),
    BadPacket("a duplicate at QoS 0", version, "38 03 0001 61"),
    BadPacket("packet identifier 0", version, "32 06 0001 61 0000 00"),
    BadPacket("packet identifier 0 in PUBACK", version, "40 02 0000"),
    BadPacket("packet identifier 0 in SUBSCRIBE", version, "82 07 0000 00 0001 61 00"),
    BadPacket("a topic that is cut short", version, "30 03 0002 61"),
    BadPacket("U+0000 in a topic", version, "30 04 0001 00 00"),
    BadPacket("a surrogate in a topic", version, "30 06 0003 eda080 00"),
    BadPacket("an overlong form in a topic", version, "30 05 0002 c080 00"),
    BadPacket("a wildcard in a topic", version, "30 04 0001 23 00", .topicNameInvalid),
    BadPacket("no topic", version, "30 03 0000 00", .protocolError),
    BadPacket("PINGREQ with a body", version, "c0 01 00"),
    BadPacket("PUBACK without an identifier", version, "40 01 00"),
    BadPacket("CONNACK of a client", version, "20 03 00 00 00", .protocolError),
    BadPacket("SUBSCRIBE of a server", version, "82 07 0001 00 0001 61 00", .protocolError, from: .server),
    BadPacket("PINGRESP of a client", version, "d0 00", .protocolError),
    BadPacket("reserved acknowledge flags", version, "20 03 02 00 00", from: .server),
    BadPacket("protocol level 3", version, "10 0e 0006 4d5149736470 03 02 003c 0000", .unsupportedVersion),
    BadPacket("protocol level 6", version, "10 0d 0004 4d515454 06 02 003c 00 0000", .unsupportedVersion),
    BadPacket("another protocol", version, "10 0c 0004 4d515458 04 02 003c 0000", .unsupportedVersion),
    BadPacket("a packet beyond the limit", version, "30 8108", .packetTooLarge),
  ]
}

private let bad311: [BadPacket] = [
  BadPacket("the reserved connect flag", .v311, "10 0c 0004 4d515454 04 03 003c 0000"),
  BadPacket("a will's QoS without a will", .v311, "10 0c 0004 4d515454 04 0a 003c 0000"),
  BadPacket("a will's retain flag without a will", .v311, "10 0c 0004 4d515454 04 22 003c 0000"),
  BadPacket("a will at QoS 3", .v311, "10 12 0004 4d515454 04 1e 003c 0000 0001 61 0001 62"),
  BadPacket("a password without a user", .v311, "10 0f 0004 4d515454 04 42 003c 0000 0001 61"),
  BadPacket("a will that is missing", .v311, "10 0c 0004 4d515454 04 06 003c 0000"),
  BadPacket("a user that is missing", .v311, "10 0c 0004 4d515454 04 82 003c 0000"),
  BadPacket("bytes behind CONNECT", .v311, "10 0d 0004 4d515454 04 02 003c 0000 00"),
  BadPacket("a client identifier that isn't UTF-8", .v311, "10 0d 0004 4d515454 04 02 003c 0001 ff"),
  BadPacket("a user name that isn't UTF-8", .v311, "10 0f 0004 4d515454 04 82 003c 0000 0001 ff"),
  BadPacket("a will's topic that isn't UTF-8", .v311, "10 11 0004 4d515454 04 06 003c 0000 0001 ff 0000"),
  BadPacket("no client identifier", .v311, "10 0a 0004 4d515454 04 02 003c"),
  BadPacket("reserved bits of a subscription", .v311, "82 06 0001 0001 61 04"),
  BadPacket("a subscription at QoS 3", .v311, "82 06 0001 0001 61 03"),
  BadPacket("SUBSCRIBE without a filter", .v311, "82 02 0001", .protocolError),
  BadPacket("UNSUBSCRIBE without a filter", .v311, "a2 02 0001", .protocolError),
  BadPacket("a filter without a QoS", .v311, "82 05 0001 0001 61"),
  BadPacket("a filter that isn't UTF-8", .v311, "a2 05 0001 0001 ff"),
  BadPacket("DISCONNECT with a body", .v311, "e0 01 00"),
  BadPacket("PUBACK with a reason", .v311, "40 03 0001 00"),
  BadPacket("AUTH", .v311, "f0 00", .protocolError),
  BadPacket("DISCONNECT of a server", .v311, "e0 00", .protocolError, from: .server),
  BadPacket("an undefined return code", .v311, "20 02 00 06", .protocolError, from: .server),
  BadPacket("an undefined answer", .v311, "90 03 0001 03", .protocolError, from: .server),
  BadPacket("a session behind a refusal", .v311, "20 02 01 05", .protocolError, from: .server),
]

private let bad5: [BadPacket] = [
  BadPacket("the reserved connect flag", .v5, "10 0d 0004 4d515454 05 03 003c 00 0000"),
  BadPacket("a will's QoS without a will", .v5, "10 0d 0004 4d515454 05 0a 003c 00 0000"),
  BadPacket("a will's retain flag without a will", .v5, "10 0d 0004 4d515454 05 22 003c 00 0000"),
  BadPacket("a will at QoS 3", .v5, "10 14 0004 4d515454 05 1e 003c 00 0000 00 0001 61 0001 62"),
  BadPacket("a will that is missing", .v5, "10 0d 0004 4d515454 05 06 003c 00 0000"),
  BadPacket("a user that is missing", .v5, "10 0d 0004 4d515454 05 82 003c 00 0000"),
  BadPacket("a password that is missing", .v5, "10 0d 0004 4d515454 05 42 003c 00 0000"),
  BadPacket("bytes behind CONNECT", .v5, "10 0e 0004 4d515454 05 02 003c 00 0000 00"),
  BadPacket("a client identifier that isn't UTF-8", .v5, "10 0e 0004 4d515454 05 02 003c 00 0001 ff"),
  BadPacket("a user name that isn't UTF-8", .v5, "10 10 0004 4d515454 05 82 003c 00 0000 0001 ff"),
  BadPacket("a will's topic that isn't UTF-8", .v5, "10 13 0004 4d515454 05 06 003c 00 0000 00 0001 ff 0000"),
  BadPacket("no client identifier", .v5, "10 0b 0004 4d515454 05 02 003c 00"),
  BadPacket("a filter that isn't UTF-8", .v5, "82 07 0001 00 0001 ff 00"),
  BadPacket("a filter to be ended that isn't UTF-8", .v5, "a2 06 0001 00 0001 ff"),
  BadPacket("a content type that isn't UTF-8", .v5, "30 08 0001 61 04 03 0001 ff"),
  BadPacket("a response topic that isn't UTF-8", .v5, "30 08 0001 61 04 08 0001 ff"),
  BadPacket("a length that isn't minimal", .v5, "30 8400 0001 61 00"),
  BadPacket("a CONNECT whose length isn't minimal", .v5, "10 8d00 0004 4d515454 05 02 003c 00 0000"),
  BadPacket("properties whose length isn't minimal", .v5, "30 05 0001 61 8000"),
  BadPacket("an undefined property", .v5, "30 06 0001 61 02 0400"),
  BadPacket("a property of another packet", .v5, "30 09 0001 61 05 1100000001"),
  BadPacket("a property that is cut short", .v5, "30 06 0001 61 02 0200"),
  BadPacket("properties that are cut short", .v5, "30 05 0001 61 05 02"),
  BadPacket("a property twice", .v5, "30 08 0001 61 04 0101 0100", .protocolError),
  BadPacket("a payload format of 2", .v5, "30 06 0001 61 02 0102", .protocolError),
  BadPacket("topic alias 0", .v5, "30 07 0001 61 03 230000", .topicAliasInvalid),
  BadPacket("a subscription identifier of a client", .v5, "30 06 0001 61 02 0b01", .protocolError),
  BadPacket("a wildcard in a response topic", .v5, "30 08 0001 61 04 0800012b", .topicNameInvalid),
  BadPacket("U+0000 in a user property", .v5, "30 0b 0001 61 07 26 0001 00 0001 76"),
  BadPacket("subscription identifier 0", .v5, "82 09 0001 02 0b00 0001 61 00", .protocolError),
  BadPacket(
    "subscription identifiers twice", .v5, "82 0b 0001 04 0b01 0b02 0001 61 00", .protocolError),
  BadPacket("reserved bits of a subscription", .v5, "82 07 0001 00 0001 61 40"),
  BadPacket("a subscription at QoS 3", .v5, "82 07 0001 00 0001 61 03", .protocolError),
  BadPacket("retain handling 3", .v5, "82 07 0001 00 0001 61 30", .protocolError),
  BadPacket("SUBSCRIBE without a filter", .v5, "82 03 0001 00", .protocolError),
  BadPacket("UNSUBSCRIBE without a filter", .v5, "a2 03 0001 00", .protocolError),
  BadPacket("a receive maximum of 0", .v5, "10 10 0004 4d515454 05 02 003c 03 210000 0000", .protocolError),
  BadPacket(
    "a maximum packet size of 0", .v5, "10 12 0004 4d515454 05 02 003c 05 2700000000 0000", .protocolError),
  BadPacket("problem information of 2", .v5, "10 0f 0004 4d515454 05 02 003c 02 1702 0000", .protocolError),
  BadPacket(
    "authentication data alone", .v5, "10 11 0004 4d515454 05 02 003c 04 16000161 0000", .protocolError),
  BadPacket("a will's property in CONNECT", .v5, "10 12 0004 4d515454 05 02 003c 05 1800000001 0000"),
  BadPacket("a PUBACK with a reason of DISCONNECT", .v5, "40 03 0001 8e", .protocolError),
  BadPacket("a DISCONNECT with a reason of servers", .v5, "e0 01 8e", .protocolError),
  BadPacket(
    "a session expiry of a server", .v5, "e0 07 00 05 1100000000", .protocolError, from: .server),
  BadPacket("bytes behind PUBACK", .v5, "40 05 0001 00 00 00"),
  BadPacket("an undefined reason of AUTH", .v5, "f0 01 01", .protocolError),
]
