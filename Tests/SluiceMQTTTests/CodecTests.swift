import SluiceMQTT
import TestSupport
import Testing

extension PacketCollector: IncrementalDecoder {}

@Suite("MQTT codec")
struct CodecTests {
  @Test("reads the bytes of the standards", arguments: goldenPackets)
  func read(_ golden: GoldenPacket) throws {
    #expect(try OwnedPacket.all(in: golden.bytes, golden.version, from: golden.sender) == [golden.packet])
  }

  @Test("writes the bytes of the standards", arguments: goldenPackets)
  func write(_ golden: GoldenPacket) {
    #expect(golden.packet.encoded(golden.version) == golden.bytes)
  }

  @Test("all 15 types of packets are in the table, for both versions")
  func everyType() {
    for version in MQTTVersion.allCases {
      let types = Set(goldenPackets.filter { $0.version == version }.map { $0.bytes[0] >> 4 })
      #expect(types == Set(1...(version == .v5 ? 15 : 14)))
    }
  }

  @Test("refuses what the standards forbid, with the right reason", arguments: badPackets)
  func refuse(_ bad: BadPacket) {
    let bytes = [UInt8](hex: bad.hex)
    for chunks in [[bytes], bytes.map { [$0] }] {
      let collector = PacketCollector(bad.version, from: bad.sender, maximumPacket: 1024)
      do {
        for chunk in chunks { #expect(try chunk.withUnsafeBytes { try collector.feed($0) }.isEmpty) }
        Issue.record("it was taken")
      } catch { #expect((error as? MQTTError)?.reason == bad.reason, "\(error)") }
    }
  }

  @Test("gives the same packets however the stream is cut", arguments: MQTTVersion.allCases, [true, false])
  func cuts(_ version: MQTTVersion, _ isClient: Bool) throws {
    let sender: MQTTSender = isClient ? .client : .server
    var examples = goldenPackets.filter { $0.version == version && $0.sender == sender }.map {
      (bytes: $0.bytes, output: $0.packet)
    }
    let long = OwnedPacket.publish(
      OwnedPacket.Publish(topic: "long", payload: [UInt8](repeating: 7, count: 300)))
    examples.append((bytes: long.encoded(version), output: long))
    var verifier = DecoderVerifier(random: SeededRandom.printed()) { PacketCollector(version, from: sender) }
    try verifier.verify(examples)
  }

  @Test("takes MQTT 3.1.1's remaining length in any number of bytes")
  func lenient() throws {
    let packets = try OwnedPacket.all(in: [0x30, 0x83, 0x00, 0, 1, 0x61], .v311, from: .client)
    #expect(packets == [.publish(OwnedPacket.Publish(topic: "a", payload: []))])
  }

  @Test("holds what has arrived of a packet, not what its header announces")
  func held() throws {
    let collector = PacketCollector(.v5, from: .client, maximumPacket: 300_000_000)
    _ = try [UInt8](hex: "30 ffffff7f 00").withUnsafeBytes { try collector.feed($0) }
    #expect(collector.heldBytes < 100)
  }

  @Test("a connection begins with CONNECT")
  func opening() {
    for (sender, byte) in [(MQTTSender.client, 0xC0 as UInt8), (.client, 0x30), (.server, 0xD0)] {
      var decoder = MQTTDecoder(maximumPacket: 1024, from: sender)
      #expect(throws: MQTTError.self) {
        try [byte, 0].withUnsafeBytes { bytes in try decoder.decode(bytes) { _, _ in true } }
      }
    }
  }

  @Test("keeps U+FEFF in strings, and takes control characters and non-characters")
  func byteOrderMark() throws {
    let topic = "\u{FEFF}a\u{1}\u{FFFE}"
    let packet = OwnedPacket.publish(OwnedPacket.Publish(topic: topic, payload: []))
    guard case .publish(let read)? = try OwnedPacket.all(in: packet.encoded(.v5), .v5, from: .client).first
    else { throw TestFailure("there is no packet") }
    #expect(Array(read.topic.utf8) == Array(topic.utf8))
  }

  @Test("writes lengths in the fewest bytes", arguments: [0, 127, 128, 16_383, 16_384, 2_097_151, 2_097_152])
  func lengths(_ length: Int) throws {
    let payload = [UInt8](repeating: 1, count: length)
    let packet = OwnedPacket.publish(OwnedPacket.Publish(topic: "a", payload: payload))
    let bytes = packet.encoded(.v311)
    #expect(bytes.count == 1 + MQTTLength.size(length + 3) + 3 + length)
    let collector = PacketCollector(.v311, from: .client, maximumPacket: 4 << 20)
    #expect(try bytes.withUnsafeBytes { try collector.feed($0) } == [packet])
  }

  @Test("answers a CONNECT of another version in a form that its client may know")
  func otherVersions() {
    func refusal(_ hex: String) -> [UInt8] {
      [UInt8](hex: hex).withUnsafeBytes { MQTTConnect.refusal(ofVersionIn: $0) }
    }
    #expect(refusal("0006 4d5149736470 03 02 003c 0000") == [0x20, 2, 0, 1])
    #expect(refusal("0004 4d515454 06 02") == [0x20, 3, 0, 0x84, 0])
    #expect(refusal("0004 4d515454 06 02 003c 00 0001 61") == [0x20, 3, 0, 0x84, 0])
    #expect(refusal("0004 4d515454 85 02 003c 00 0001 61") == [0x20, 3, 0, 0x84, 0])
    #expect(refusal("0004 4d515454 06 02 003c 0001 61") == [0x20, 2, 0, 1])
    #expect(refusal("0006 4d5149736470 83 02 003c 0000") == [0x20, 2, 0, 1])
    #expect(refusal("0004 4d515454 03 02") == [0x20, 2, 0, 1])
    #expect(refusal("0004 48545450 05 02") == [])
    #expect(refusal("") == [])
  }

  @Test("every reason stands in the packets that the standard's table names, and in no others")
  func reasons() {
    let types: [MQTTPacketType] = [
      .connack, .puback, .pubrec, .pubrel, .pubcomp, .suback, .unsuback, .disconnect, .auth,
    ]
    for code in UInt8.min...UInt8.max {
      let reason = MQTTReason(rawValue: code)
      for sender in [MQTTSender.client, .server] {
        let found = types.filter { sender.sends($0, .v5) && reason.isAllowed(in: $0, from: sender) }
        let expected = (reasonTable[code] ?? "").split(separator: " ").filter { name in
          // A letter after a name denotes the only sender.
          !name.hasSuffix("/s") && sender == .client || !name.hasSuffix("/c") && sender == .server
        }.map { $0.prefix { $0 != "/" } }
        let names = found.map { "\($0)".uppercased() }
        #expect(Set(names) == Set(expected.map(String.init)), "\(reason) of a \(sender)")
      }
    }
  }

  @Test("every property stands where the standard's table says, and nowhere else")
  func places() {
    // Packets that can have properties: the first byte, and the bytes before the properties.
    let packets: [(String, UInt8, String, MQTTSender)] = [
      ("CONNECT", 0x10, "0004 4d515454 05 02 0000", .client), ("CONNACK", 0x20, "00 00", .server),
      ("PUBLISH", 0x30, "0001 61", .server), ("PUBACK", 0x40, "0001 00", .client),
      ("PUBREC", 0x50, "0001 00", .client), ("PUBREL", 0x62, "0001 00", .client),
      ("PUBCOMP", 0x70, "0001 00", .client), ("SUBSCRIBE", 0x82, "0001", .client),
      ("SUBACK", 0x90, "0001", .server), ("UNSUBSCRIBE", 0xA2, "0001", .client),
      ("UNSUBACK", 0xB0, "0001", .server), ("DISCONNECT", 0xE0, "00", .client), ("AUTH", 0xF0, "00", .server),
    ]
    let rest = [
      "CONNECT": "0000", "SUBSCRIBE": "0001 61 00", "SUBACK": "00", "UNSUBSCRIBE": "0001 61",
      "UNSUBACK": "00",
    ]
    for property in MQTTProperty.allCases {
      var properties = MQTTProperties()
      if property == .authenticationData { properties.append(.authenticationMethod, "m") }
      switch property {
      case .userProperty: properties.append(user: "k", "v")
      case .contentType, .responseTopic, .assignedClientIdentifier, .authenticationMethod, .reasonString,
        .responseInformation, .serverReference:
        properties.append(property, "s")
      case .correlationData, .authenticationData: properties.append(property, [1])
      default: properties.append(property, 1)
      }
      let found = packets.filter { name, first, before, sender in
        let body =
          [UInt8](hex: before) + [UInt8(properties.bytes.count)] + properties.bytes
          + [UInt8](hex: rest[name] ?? "")
        let packet = [first, UInt8(body.count)] + body
        return (try? OwnedPacket.all(in: packet, .v5, from: sender)) != nil
      }.map(\.0)
      #expect(found == propertyTable[property]?.split(separator: " ").map(String.init), "\(property)")
    }
  }
}

/// Table 2-4 of MQTT 5.
private let propertyTable: [MQTTProperty: String] = {
  let all =
    "CONNECT CONNACK PUBLISH PUBACK PUBREC PUBREL PUBCOMP SUBSCRIBE SUBACK UNSUBSCRIBE UNSUBACK DISCONNECT AUTH"
  return [
    .payloadFormat: "PUBLISH", .messageExpiry: "PUBLISH", .contentType: "PUBLISH", .responseTopic: "PUBLISH",
    .correlationData: "PUBLISH", .subscriptionIdentifier: "PUBLISH SUBSCRIBE",
    .sessionExpiry: "CONNECT CONNACK DISCONNECT", .assignedClientIdentifier: "CONNACK",
    .serverKeepAlive: "CONNACK", .authenticationMethod: "CONNECT CONNACK AUTH",
    .authenticationData: "CONNECT CONNACK AUTH", .requestProblemInformation: "CONNECT", .willDelay: "",
    .requestResponseInformation: "CONNECT", .responseInformation: "CONNACK",
    .serverReference: "CONNACK DISCONNECT",
    .reasonString: "CONNACK PUBACK PUBREC PUBREL PUBCOMP SUBACK UNSUBACK DISCONNECT AUTH",
    .receiveMaximum: "CONNECT CONNACK", .topicAliasMaximum: "CONNECT CONNACK", .topicAlias: "PUBLISH",
    .maximumQoS: "CONNACK", .retainAvailable: "CONNACK", .userProperty: all,
    .maximumPacketSize: "CONNECT CONNACK", .wildcardSubscriptionAvailable: "CONNACK",
    .subscriptionIdentifierAvailable: "CONNACK", .sharedSubscriptionAvailable: "CONNACK",
  ]
}()

/// Table 2-6 of MQTT 5. CONNACK, SUBACK and UNSUBACK are a server's.
private let reasonTable: [UInt8: String] = {
  let (connack, suback, unsuback) = ("CONNACK/s", "SUBACK/s", "UNSUBACK/s")
  let received = "PUBACK PUBREC"
  let (any, server) = ("DISCONNECT", "DISCONNECT/s")
  return [
    0x00: "\(connack) \(received) PUBREL PUBCOMP \(suback) \(unsuback) AUTH/s \(any)", 0x01: suback,
    0x02: suback,
    0x04: "DISCONNECT/c", 0x10: received, 0x11: unsuback, 0x18: "AUTH", 0x19: "AUTH/c",
    0x80: "\(connack) \(received) \(suback) \(unsuback) \(any)", 0x81: "\(connack) \(any)",
    0x82: "\(connack) \(any)", 0x83: "\(connack) \(received) \(suback) \(unsuback) \(any)", 0x84: connack,
    0x85: connack, 0x86: connack, 0x87: "\(connack) \(received) \(suback) \(unsuback) \(server)",
    0x88: connack,
    0x89: "\(connack) \(server)", 0x8A: connack, 0x8B: server, 0x8C: connack, 0x8D: server, 0x8E: server,
    0x8F: "\(suback) \(unsuback) \(server)", 0x90: "\(connack) \(received) \(any)",
    0x91: "\(received) \(suback) \(unsuback)", 0x92: "PUBREL PUBCOMP", 0x93: any, 0x94: any,
    0x95: "\(connack) \(any)", 0x96: any, 0x97: "\(connack) \(received) \(suback) \(any)", 0x98: any,
    0x99: "\(connack) \(received) \(any)", 0x9A: "\(connack) \(server)", 0x9B: "\(connack) \(server)",
    0x9C: "\(connack) \(server)", 0x9D: "\(connack) \(server)", 0x9E: "\(suback) \(server)",
    0x9F: "\(connack) \(server)", 0xA0: server, 0xA1: "\(suback) \(server)", 0xA2: "\(suback) \(server)",
  ]
}()
