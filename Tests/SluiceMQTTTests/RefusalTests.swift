import SluiceMQTT
import TestSupport
import Testing

@Suite("MQTT clients that are refused")
struct RefusalTests {
  @Test(
    "refuses other versions in a form that their clients may know",
    arguments: [
      ("10 0e 0006 4d5149736470 03 02 003c 0000", "20020001"),
      ("10 0c 0004 4d515454 03 02 003c 0000", "20020001"),
      ("10 0d 0004 4d515454 06 02 003c 00 0000", "2003008400"), ("10 0c 0004 48545450 05 02 003c 0000", ""),
    ])
  func otherVersions(_ connect: String, _ answer: String) {
    var rig = SessionRig()
    rig.send(bytes: [UInt8](hex: connect))
    #expect(rig.bytes == [UInt8](hex: answer))
    #expect(rig.asked == [.end(.unsupportedVersion)])
  }

  @Test("ends a connection that doesn't begin with CONNECT, without an answer")
  func otherFirst() {
    for bytes in ["c000", "3003000161", "e000", "f000", "474554202f"] {
      var rig = SessionRig()
      rig.send(bytes: [UInt8](hex: bytes))
      #expect(rig.bytes == [])
      #expect(rig.asked.count == 1)
      #expect(!rig.session.isOpen)
    }
  }

  @Test("refuses a CONNECT that isn't in order: with CONNACK in MQTT 5, with the end in 3.1.1")
  func malformed() {
    var rig = SessionRig()
    rig.send(bytes: [UInt8](hex: "10 0d 0004 4d515454 05 03 003c 00 0000"))
    guard case .connack(let connack)? = rig.packets.first else {
      Issue.record("there is no CONNACK")
      return
    }
    #expect(connack.reason == .malformedPacket)
    #expect(connack.properties.string(.reasonString)?.contains("reserved") == true)
    #expect(rig.asked == [.end(.malformedPacket)])
    var old = SessionRig(.v311)
    old.send(bytes: [UInt8](hex: "10 0c 0004 4d515454 04 03 003c 0000"))
    #expect(old.bytes == [])
    #expect(old.asked == [.end(.malformedPacket)])
  }

  @Test("refuses enhanced authentication and says what is served instead")
  func enhancedAuthentication() {
    var rig = SessionRig()
    let properties = MQTTProperties { $0.append(.authenticationMethod, "SCRAM-SHA-256") }
    rig.send(.connect(MQTTConnect(.v5, clientID: "c", properties: properties)))
    guard case .connack(let connack)? = rig.packets.first else {
      Issue.record("there is no CONNACK")
      return
    }
    #expect(connack.reason == .badAuthenticationMethod)
    #expect(connack.properties.string(.reasonString)?.contains("password") == true)
    #expect(rig.asked == [.end(.badAuthenticationMethod)])
  }

  @Test("a refusal of the broker is told by CONNACK: the return codes of 3.1.1 say less")
  func refused() {
    let codes: [(MQTTReason, UInt8)] = [
      (.clientIdentifierNotValid, 2), (.serverUnavailable, 3), (.badCredentials, 4), (.notAuthorized, 5),
      (.serverBusy, 3), (.banned, 5), (.quotaExceeded, 3),
    ]
    for (reason, code) in codes {
      var old = SessionRig(.v311)
      old.send(.connect(MQTTConnect(.v311, clientID: "c")))
      old.refuse(reason)
      #expect(old.bytes == [0x20, 2, 0, code])
      var rig = SessionRig()
      rig.send(.connect(MQTTConnect(.v5, clientID: "c")))
      _ = rig.asked
      rig.refuse(reason)
      let properties = MQTTProperties { $0.append(.reasonString, "why") }
      #expect(rig.packets == [.connack(MQTTConnack(reason, properties: properties))])
      #expect(rig.asked == [.end(reason)])
      #expect(rig.departure == nil)
    }
  }

  @Test("nothing is taken behind CONNECT when it is refused")
  func earlyRefused() {
    var rig = SessionRig()
    rig.send(.connect(MQTTConnect(.v5, clientID: "c")))
    rig.refuse(.notAuthorized)
    _ = (rig.packets, rig.asked)
    rig.publish("a")
    #expect(rig.asked == [])
    #expect(rig.packets == [])
  }

  @Test(
    "a will's topic that the broker can't have refuses the client: MQTT 3.1.1 can't say so, and serves it without"
  )
  func willTopic() {
    var rig = SessionRig()
    let will = MQTTConnect.Will(topic: String(repeating: "a", count: 10_000), payload: [])
    var old = SessionRig.connected(.v311, will: will)
    #expect(old.unnamed == [will.topic])
    old.lose()
    #expect(old.asked == [.end(.unspecified)])
    #expect(old.departure?.will == nil)
    rig.send(.connect(MQTTConnect(.v5, clientID: "c", will: will)))
    #expect(rig.asked == [.end(.topicNameInvalid)])
    #expect(rig.bytes.first == 0x20)
  }

  @Test("a will that isn't served refuses the client")
  func willLimits() {
    var rules = MQTTSessionRules()
    rules.maximumQoS = .atMostOnce
    rules.takesRetained = false
    for (qos, isRetained, reason) in [
      (MQTTQoS.atLeastOnce, false, MQTTReason.qosNotSupported), (.atMostOnce, true, .retainNotSupported),
    ] {
      var rig = SessionRig(.v5, rules)
      let will = MQTTConnect.Will(topic: "w", payload: [], qos: qos, isRetained: isRetained)
      rig.send(.connect(MQTTConnect(.v5, clientID: "c", will: will)))
      #expect(rig.asked == [.end(reason)])
    }
  }

  @Test("leaves out the sentence where the client takes no packet that long")
  func shortRefusal() {
    var rig = SessionRig()
    let properties = MQTTProperties {
      $0.append(.maximumPacketSize, 10)
      $0.append(.authenticationMethod, "m")
    }
    rig.send(.connect(MQTTConnect(.v5, clientID: "c", properties: properties)))
    #expect(rig.bytes == [0x20, 3, 0, 0x8C, 0])
  }
}
