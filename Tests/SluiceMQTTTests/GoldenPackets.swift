import SluiceMQTT
import TestSupport

/// A packet and its bytes, written by hand from the standards.
struct GoldenPacket: CustomStringConvertible, Sendable {
  var name: String
  var version: MQTTVersion
  var sender: MQTTSender
  var hex: String
  var packet: OwnedPacket

  var bytes: [UInt8] { [UInt8](hex: hex) }
  var description: String { "\(name), \(version)" }

  init(
    _ name: String, _ version: MQTTVersion, _ hex: String, _ packet: OwnedPacket,
    from sender: MQTTSender = .client
  ) {
    self.name = name
    self.version = version
    self.hex = hex
    self.packet = packet
    self.sender = sender
  }
}

private func user(_ properties: inout MQTTProperties) { properties.append(user: "k", "v") }

let goldenPackets: [GoldenPacket] = goldenOfBoth + golden311 + golden5

/// Packets that are the same in both versions.
private let goldenOfBoth: [GoldenPacket] = MQTTVersion.allCases.flatMap { version in
  [
    GoldenPacket("PUBACK", version, "40 02 000a", .acknowledgement(MQTTAcknowledgement(.puback, 10))),
    GoldenPacket("PUBREC", version, "50 02 ffff", .acknowledgement(MQTTAcknowledgement(.pubrec, 65535))),
    GoldenPacket("PUBREL", version, "62 02 000a", .acknowledgement(MQTTAcknowledgement(.pubrel, 10))),
    GoldenPacket("PUBCOMP", version, "70 02 0100", .acknowledgement(MQTTAcknowledgement(.pubcomp, 256))),
    GoldenPacket("PINGREQ", version, "c0 00", .pingreq),
    GoldenPacket("PINGRESP", version, "d0 00", .pingresp, from: .server),
    GoldenPacket("DISCONNECT", version, "e0 00", .disconnect(MQTTNotice(.disconnect))),
  ]
}

private let bridge: MQTTConnect = {
  var connect = MQTTConnect(.v311, clientID: "a", keepAlive: 60)
  connect.isBridge = true
  return connect
}()

private let golden311: [GoldenPacket] = [
  GoldenPacket(
    "CONNECT", .v311, "10 0c 0004 4d515454 04 02 003c 0000",
    .connect(MQTTConnect(.v311, clientID: "", keepAlive: 60))),
  GoldenPacket("CONNECT of a bridge", .v311, "10 0d 0004 4d515454 84 02 003c 0001 61", .connect(bridge)),
  GoldenPacket(
    "CONNECT with everything", .v311,
    "10 19 0004 4d515454 04 ee 0000 0001 61 0001 77 0001 78 0001 75 0001 70",
    .connect(
      MQTTConnect(
        .v311, clientID: "a",
        will: MQTTConnect.Will(topic: "w", payload: [0x78], qos: .atLeastOnce, isRetained: true),
        username: "u", password: [0x70]))),
  GoldenPacket(
    "CONNACK", .v311, "20 02 01 00", .connack(MQTTConnack(.success, isSessionPresent: true)), from: .server),
  GoldenPacket("CONNACK refused", .v311, "20 02 00 05", .connack(MQTTConnack(.notAuthorized)), from: .server),
  GoldenPacket(
    "PUBLISH at QoS 0", .v311, "30 07 0003 612f62 6869",
    .publish(OwnedPacket.Publish(topic: "a/b", payload: Array("hi".utf8)))),
  GoldenPacket(
    "PUBLISH at QoS 1", .v311, "3b 09 0003 612f62 000a 6869",
    .publish(
      OwnedPacket.Publish(
        topic: "a/b", payload: Array("hi".utf8), qos: .atLeastOnce, packetID: 10, isDuplicate: true,
        isRetained: true))),
  GoldenPacket(
    "PUBLISH at QoS 2", .v311, "34 05 0001 61 0001",
    .publish(OwnedPacket.Publish(topic: "a", payload: [], qos: .exactlyOnce, packetID: 1))),
  GoldenPacket(
    "SUBSCRIBE", .v311, "82 0c 0001 0003 612f23 01 0001 2b 02",
    .subscribe(
      MQTTSubscribe(
        1,
        [
          MQTTSubscribe.Item("a/#", MQTTSubscriptionOptions(.atLeastOnce)),
          MQTTSubscribe.Item("+", MQTTSubscriptionOptions(.exactlyOnce)),
        ]))),
  GoldenPacket(
    "SUBACK", .v311, "90 05 0001 01 02 80",
    .answers(MQTTFilterAnswers(.suback, 1, [.grantedQoS1, .grantedQoS2, .unspecified])), from: .server),
  GoldenPacket(
    "UNSUBSCRIBE", .v311, "a2 07 0001 0003 612f23", .unsubscribe(MQTTUnsubscribe(1, ["a/#"]))),
  GoldenPacket("UNSUBACK", .v311, "b0 02 0001", .answers(MQTTFilterAnswers(.unsuback, 1, [])), from: .server),
]

private let golden5: [GoldenPacket] = [
  GoldenPacket(
    "CONNECT", .v5, "10 0d 0004 4d515454 05 02 003c 00 0000",
    .connect(MQTTConnect(.v5, clientID: "", keepAlive: 60))),
  GoldenPacket(
    "CONNECT with a password alone", .v5, "10 12 0004 4d515454 05 40 0000 00 0001 61 0002 0001",
    .connect(MQTTConnect(.v5, clientID: "a", cleanStart: false, password: [0, 1]))),
  GoldenPacket(
    "CONNECT with every property", .v5,
    """
    10 58 0004 4d515454 05 14 0000
    24 110000000a 210014 2700000100 220005 1901 1700 2600016b000176 1500016d 1600020102
    0001 61
    1f 1800000005 0101 020000003c 03000174 08000172 090001ff 2600016b000176
    0001 77 0001 78
    """,
    .connect(connectWithEveryProperty)),
  GoldenPacket("CONNACK", .v5, "20 03 00 00 00", .connack(MQTTConnack(.success)), from: .server),
  GoldenPacket(
    "CONNACK refused", .v5, "20 03 00 8c 00", .connack(MQTTConnack(.badAuthenticationMethod)), from: .server),
  GoldenPacket(
    "CONNACK with every property", .v5,
    """
    20 3f 01 00
    3c 1100000005 21000a 2401 2500 2700000064 12000163 220002 1f000172 2600016b000176
    2801 2901 2a01 13001e 1a000169 1c000173 1500016d 16000164
    """,
    .connack(MQTTConnack(.success, isSessionPresent: true, properties: connackProperties)), from: .server),
  GoldenPacket(
    "PUBLISH with every property", .v5,
    "32 27 0001 74 0007 20 0101 0200000001 230003 08000172 09000109 2600016b000176 0b8101 03000174 70",
    .publish(
      OwnedPacket.Publish(
        topic: "t", payload: [0x70], qos: .atLeastOnce, packetID: 7, properties: publishProperties)),
    from: .server),
  GoldenPacket(
    "PUBLISH by its alias", .v5, "30 06 0000 03 230001",
    .publish(
      OwnedPacket.Publish(topic: "", payload: [], properties: MQTTProperties { $0.append(.topicAlias, 1) }))),
  GoldenPacket(
    "PUBACK with a reason", .v5, "40 03 0001 10",
    .acknowledgement(MQTTAcknowledgement(.puback, 1, .noMatchingSubscribers)), from: .server),
  GoldenPacket(
    "PUBACK with properties", .v5, "40 08 0001 97 04 1f000171",
    .acknowledgement(
      MQTTAcknowledgement(
        .puback, 1, .quotaExceeded, properties: MQTTProperties { $0.append(.reasonString, "q") })),
    from: .server),
  GoldenPacket(
    "PUBREC with a reason", .v5, "50 03 0001 83",
    .acknowledgement(MQTTAcknowledgement(.pubrec, 1, .implementationSpecific))),
  GoldenPacket(
    "PUBREL with a reason", .v5, "62 03 0001 92",
    .acknowledgement(MQTTAcknowledgement(.pubrel, 1, .packetIdentifierNotFound))),
  GoldenPacket(
    "PUBCOMP with a reason", .v5, "70 03 0001 92",
    .acknowledgement(MQTTAcknowledgement(.pubcomp, 1, .packetIdentifierNotFound))),
  GoldenPacket(
    "SUBSCRIBE", .v5, "82 09 0001 02 0b05 0001 61 2d",
    .subscribe(
      MQTTSubscribe(
        1,
        [
          MQTTSubscribe.Item(
            "a",
            MQTTSubscriptionOptions(
              .atLeastOnce, noLocal: true, retainAsPublished: true, retainHandling: .doNotSend))
        ], properties: MQTTProperties { $0.append(.subscriptionIdentifier, 5) }))),
  GoldenPacket(
    "SUBACK", .v5, "90 06 0001 00 00 01 a2",
    .answers(MQTTFilterAnswers(.suback, 1, [.success, .grantedQoS1, .wildcardSubscriptionsNotSupported])),
    from: .server),
  GoldenPacket("UNSUBSCRIBE", .v5, "a2 06 0001 00 0001 61", .unsubscribe(MQTTUnsubscribe(1, ["a"]))),
  GoldenPacket(
    "UNSUBACK", .v5, "b0 05 0001 00 00 11",
    .answers(MQTTFilterAnswers(.unsuback, 1, [.success, .noSubscriptionExisted])), from: .server),
  GoldenPacket(
    "DISCONNECT with the will", .v5, "e0 01 04", .disconnect(MQTTNotice(.disconnect, .disconnectWithWill))),
  GoldenPacket(
    "DISCONNECT with an expiry", .v5, "e0 07 00 05 1100000000",
    .disconnect(MQTTNotice(.disconnect, properties: MQTTProperties { $0.append(.sessionExpiry, 0) }))),
  GoldenPacket(
    "DISCONNECT of a server", .v5, "e0 01 8e", .disconnect(MQTTNotice(.disconnect, .sessionTakenOver)),
    from: .server),
  GoldenPacket("AUTH", .v5, "f0 00", .auth(MQTTNotice(.auth)), from: .server),
  GoldenPacket(
    "AUTH with a method", .v5, "f0 06 18 04 1500016d",
    .auth(
      MQTTNotice(
        .auth, .continueAuthentication,
        properties: MQTTProperties { $0.append(.authenticationMethod, "m") }))),
]

private let connectWithEveryProperty: MQTTConnect = {
  var will = MQTTConnect.Will(topic: "w", payload: [0x78], qos: .exactlyOnce)
  will.properties = MQTTProperties {
    $0.append(.willDelay, 5)
    $0.append(.payloadFormat, 1)
    $0.append(.messageExpiry, 60)
    $0.append(.contentType, "t")
    $0.append(.responseTopic, "r")
    $0.append(.correlationData, [0xFF])
    user(&$0)
  }
  let properties = MQTTProperties {
    $0.append(.sessionExpiry, 10)
    $0.append(.receiveMaximum, 20)
    $0.append(.maximumPacketSize, 256)
    $0.append(.topicAliasMaximum, 5)
    $0.append(.requestResponseInformation, 1)
    $0.append(.requestProblemInformation, 0)
    user(&$0)
    $0.append(.authenticationMethod, "m")
    $0.append(.authenticationData, [1, 2])
  }
  return MQTTConnect(.v5, clientID: "a", cleanStart: false, will: will, properties: properties)
}()

private let connackProperties = MQTTProperties {
  $0.append(.sessionExpiry, 5)
  $0.append(.receiveMaximum, 10)
  $0.append(.maximumQoS, 1)
  $0.append(.retainAvailable, 0)
  $0.append(.maximumPacketSize, 100)
  $0.append(.assignedClientIdentifier, "c")
  $0.append(.topicAliasMaximum, 2)
  $0.append(.reasonString, "r")
  user(&$0)
  $0.append(.wildcardSubscriptionAvailable, 1)
  $0.append(.subscriptionIdentifierAvailable, 1)
  $0.append(.sharedSubscriptionAvailable, 1)
  $0.append(.serverKeepAlive, 30)
  $0.append(.responseInformation, "i")
  $0.append(.serverReference, "s")
  $0.append(.authenticationMethod, "m")
  $0.append(.authenticationData, [0x64])
}

private let publishProperties = MQTTProperties {
  $0.append(.payloadFormat, 1)
  $0.append(.messageExpiry, 1)
  $0.append(.topicAlias, 3)
  $0.append(.responseTopic, "r")
  $0.append(.correlationData, [9])
  user(&$0)
  $0.append(.subscriptionIdentifier, 129)
  $0.append(.contentType, "t")
}
