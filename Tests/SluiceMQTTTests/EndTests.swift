import SluiceMQTT
import TestSupport
import Testing

@Suite("MQTT ends of connections")
struct EndTests {
  private static let will: MQTTConnect.Will = {
    var will = MQTTConnect.Will(topic: "w", payload: [1], qos: .atLeastOnce, isRetained: true)
    will.properties.append(.willDelay, 30)
    will.properties.append(user: "b", "1")
    will.properties.append(user: "a", "2")
    return will
  }()

  @Test("a normal disconnection drops the will", arguments: MQTTVersion.allCases)
  func normal(_ version: MQTTVersion) {
    var rig = SessionRig.connected(version, will: MQTTConnect.Will(topic: "w", payload: [1]))
    rig.send(.disconnect(MQTTNotice(.disconnect)))
    #expect(rig.asked == [.end(.success)])
    #expect(rig.packets == [])
    #expect(rig.departure?.will == nil)
    #expect(rig.departure?.state == nil)
  }

  @Test("a disconnection with another reason leaves the will, with its properties in their order")
  func withWill() {
    for reason in [MQTTReason.disconnectWithWill, .unspecified] {
      var rig = SessionRig.connected(expiry: 100, will: Self.will)
      rig.send(.disconnect(MQTTNotice(.disconnect, reason)))
      #expect(rig.departure?.will == Self.will)
      #expect(rig.departure?.willDelay == 30)
    }
  }

  @Test("a lost connection leaves the will; its delay ends with the session")
  func lost() {
    for (expiry, delay) in [(100 as UInt32, 30 as UInt32), (10, 10), (0, 0)] {
      var rig = SessionRig.connected(expiry: expiry, will: Self.will)
      rig.lose()
      #expect(rig.asked == [.end(.unspecified)])
      #expect(rig.departure?.will == Self.will)
      #expect(rig.departure?.willDelay == delay)
      #expect(rig.departure?.expiry == expiry)
      #expect((rig.departure?.state != nil) == (expiry > 0))
      rig.lose()
      #expect(rig.asked == [])
    }
  }

  @Test("MQTT 3.1.1 keeps a session that isn't clean for ever, and others not at all")
  func expiryOf311() {
    for (expiry, expected) in [(1 as UInt32, UInt32.max), (0, 0)] {
      var rig = SessionRig.connected(.v311, expiry: expiry)
      rig.lose()
      #expect(rig.departure?.expiry == expected)
    }
  }

  @Test("DISCONNECT may set another session expiry, but not where CONNECT has none")
  func newExpiry() {
    for (before, after, isTaken) in [
      (10 as UInt32, 0 as UInt32, true), (10, 20, true), (0, 0, true), (0, 5, false),
    ] {
      var rig = SessionRig.connected(expiry: before)
      let properties = MQTTProperties { $0.append(.sessionExpiry, after) }
      rig.send(.disconnect(MQTTNotice(.disconnect, properties: properties)))
      #expect(rig.asked == [.end(isTaken ? .success : .protocolError)])
      #expect(rig.departure?.expiry == (isTaken ? after : before))
    }
  }

  @Test(
    "a session that is taken over tells its client, and leaves its state", arguments: MQTTVersion.allCases)
  func takenOver(_ version: MQTTVersion) {
    var rig = SessionRig.connected(version, expiry: 100)
    rig.takeOver()
    let properties = MQTTProperties {
      $0.append(.reasonString, "another connection has the same client identifier")
    }
    let told: [OwnedPacket] = [
      .disconnect(MQTTNotice(.disconnect, .sessionTakenOver, properties: properties))
    ]
    #expect(rig.packets == (version == .v5 ? told : []))
    #expect(rig.asked == [.end(.sessionTakenOver)])
    #expect(rig.departure?.state != nil)
    #expect(rig.departure?.clientID == "c")
  }

  @Test("the broker's end is told with its reason")
  func shutDown() {
    var rig = SessionRig.connected()
    rig.shutDown()
    guard case .disconnect(let notice)? = rig.packets.first else {
      Issue.record("there is no DISCONNECT")
      return
    }
    #expect(notice.reason == .serverShuttingDown)
    rig.shutDown()
    #expect(rig.packets == [])
  }

  @Test("leaves out the sentence where the client takes no packet that long")
  func tooLong() {
    // CONNACK just fits.
    var rig = SessionRig.connected { $0.append(.maximumPacketSize, 16) }
    rig.shutDown()
    #expect(rig.bytes == [0xE0, 1, 0x8B])
  }

  @Test("a malformed packet is told with its reason, and leaves the will", arguments: MQTTVersion.allCases)
  func malformed(_ version: MQTTVersion) {
    var rig = SessionRig.connected(version, will: MQTTConnect.Will(topic: "w", payload: [1]))
    rig.send(bytes: [0xC1, 0])
    #expect(rig.asked == [.end(.malformedPacket)])
    #expect(rig.departure?.will != nil)
    let bytes = rig.bytes
    #expect(version == .v5 ? bytes.starts(with: [0xE0]) && bytes[2] == 0x81 : bytes == [])
  }

  @Test("a packet beyond the limit is told with its reason")
  func packetTooLarge() {
    var rig = SessionRig.connected()
    rig.send(bytes: [0x30, 0xFF, 0xFF, 0xFF, 0x7F])
    #expect(rig.asked == [.end(.packetTooLarge)])
  }

  @Test("nothing is taken behind DISCONNECT")
  func behind() {
    var rig = SessionRig.connected()
    rig.send(.disconnect(MQTTNotice(.disconnect)), .pingreq)
    #expect(rig.packets == [])
    #expect(rig.asked == [.end(.success)])
    rig.send(.pingreq)
    #expect(rig.packets == [])
  }

  @Test("a will is a message with its flags, and its user properties in their order")
  func willMessage() {
    for isRetained in [true, false] {
      var will = Self.will
      will.isRetained = isRetained
      let message = will.withMessage { OwnedPacket(.publish($0)) }
      #expect(
        message
          == received("w", "\u{1}", .atLeastOnce, isRetained: isRetained) {
            $0.append(user: "b", "1")
            $0.append(user: "a", "2")
          })
    }
  }
}
