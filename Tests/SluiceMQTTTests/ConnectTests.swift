import SluiceMQTT
import TestSupport
import Testing

@Suite("MQTT connections")
struct ConnectTests {
  @Test("asks the broker about CONNECT, and answers CONNACK", arguments: MQTTVersion.allCases)
  func accept(_ version: MQTTVersion) {
    var rig = SessionRig(version)
    let connect = MQTTConnect(
      version, clientID: "me", keepAlive: 60, username: "u", password: [1])
    rig.send(.connect(connect))
    #expect(rig.asked == [.connect(connect)])
    #expect(rig.packets == [])
    rig.admit("me")
    var properties = MQTTProperties()
    if version == .v5 {
      properties.append(.receiveMaximum, 1024)
      properties.append(.maximumPacketSize, 1 << 20)
      properties.append(.topicAliasMaximum, 32)
    }
    #expect(rig.packets == [.connack(MQTTConnack(.success, properties: properties))])
    #expect(rig.asked == [])
    #expect(rig.session.isOpen)
  }

  @Test("a client that takes no packet as long as CONNACK is dropped, and its will isn't published")
  func connackTooLong() {
    var rig = SessionRig(.v5)
    let properties = MQTTProperties { $0.append(.maximumPacketSize, 8) }
    let will = MQTTConnect.Will(topic: "w", payload: [1])
    rig.send(.connect(MQTTConnect(.v5, clientID: "c", will: will, properties: properties)))
    _ = rig.asked
    rig.admit("c")
    #expect(rig.packets.isEmpty)
    #expect(rig.asked == [.end(.packetTooLarge)])
    #expect(rig.departure != nil && rig.departure?.will == nil)
  }

  @Test("CONNACK tells everything that isn't as the client has asked or as the standard assumes")
  func connackProperties() {
    var rules = MQTTSessionRules()
    rules.maximumSessionExpiry = 100
    rules.maximumKeepAlive = 30
    rules.maximumQoS = .atLeastOnce
    rules.takesRetained = false
    rules.takesShared = false
    rules.responseTopic = "_inbox/c"
    var rig = SessionRig(.v5, rules)
    let asked = MQTTProperties {
      $0.append(.sessionExpiry, .max)
      $0.append(.requestResponseInformation, 1)
    }
    rig.send(.connect(MQTTConnect(.v5, clientID: "", properties: asked)))
    _ = rig.asked
    rig.admit("auto-1")
    let told = MQTTProperties {
      $0.append(.sessionExpiry, 100)
      $0.append(.receiveMaximum, 1024)
      $0.append(.maximumQoS, 1)
      $0.append(.retainAvailable, 0)
      $0.append(.maximumPacketSize, 1 << 20)
      $0.append(.assignedClientIdentifier, "auto-1")
      $0.append(.topicAliasMaximum, 32)
      $0.append(.sharedSubscriptionAvailable, 0)
      $0.append(.serverKeepAlive, 30)
      $0.append(.responseInformation, "_inbox/c")
    }
    #expect(rig.packets == [.connack(MQTTConnack(.success, properties: told))])
    #expect(rig.session.deadline == 45_000_000_000)
  }

  @Test("tells no response information that wasn't asked for")
  func noResponseInformation() {
    var rules = MQTTSessionRules()
    rules.responseTopic = "_inbox/c"
    var rig = SessionRig(.v5, rules)
    rig.send(.connect(MQTTConnect(.v5, clientID: "c")))
    rig.admit()
    guard case .connack(let connack)? = rig.packets.first else {
      Issue.record("there is no CONNACK")
      return
    }
    #expect(connack.properties.string(.responseInformation) == nil)
  }

  @Test("a second CONNECT is a protocol error", arguments: MQTTVersion.allCases)
  func second(_ version: MQTTVersion) {
    var rig = SessionRig.connected(version)
    rig.send(.connect(MQTTConnect(version, clientID: "c")))
    #expect(rig.asked == [.end(.protocolError)])
    #expect(rig.bytes.first == (version == .v5 ? 0xE0 : nil))
  }

  @Test("AUTH without a method is a protocol error")
  func strayAuthentication() {
    var rig = SessionRig.connected()
    rig.send(.auth(MQTTNotice(.auth, .reauthenticate)))
    #expect(rig.asked == [.end(.protocolError)])
  }

  @Test("a client without an identifier gets one, unless it wants a session kept by MQTT 3.1.1")
  func emptyIdentifier() {
    for (version, clean) in [(MQTTVersion.v5, true), (.v5, false), (.v311, true)] {
      var rig = SessionRig(version)
      rig.send(.connect(MQTTConnect(version, clientID: "", cleanStart: clean)))
      rig.admit("auto-1")
      #expect(rig.session.isOpen)
    }
    var rig = SessionRig(.v311)
    rig.send(.connect(MQTTConnect(.v311, clientID: "", cleanStart: false)))
    #expect(rig.bytes == [0x20, 2, 0, 2])
    #expect(rig.asked == [.end(.clientIdentifierNotValid)])
  }

  @Test("takes identifiers of up to 255 bytes, with any characters")
  func identifiers() {
    let plain = "0123456789abcdefghijklA"
    for (identifier, isTaken) in [
      (plain, true), (String(repeating: "é", count: 127), true),
      (String(repeating: "x", count: 256), false),
    ] {
      var rig = SessionRig()
      rig.send(.connect(MQTTConnect(.v5, clientID: identifier)))
      let asked = rig.asked
      #expect(
        asked
          == (isTaken
            ? [.connect(MQTTConnect(.v5, clientID: identifier))] : [.end(.clientIdentifierNotValid)]))
    }
  }

  @Test("bytes behind CONNECT wait for the broker's answer")
  func early() {
    var rig = SessionRig()
    let connect = OwnedPacket.connect(MQTTConnect(.v5, clientID: "c")).encoded(.v5)
    let ping = OwnedPacket.pingreq.encoded(.v5)
    #expect(rig.send(bytes: connect + ping) == connect.count)
    #expect(rig.send(bytes: ping) == 0)
    rig.admit()
    _ = rig.packets
    #expect(rig.send(bytes: ping) == 2)
    #expect(rig.packets == [.pingresp])
  }

  @Test("drops a client that sends no CONNECT")
  func timeout() {
    var rig = SessionRig()
    rig.send(bytes: [0x10, 0x20])
    rig.tick(9.9)
    #expect(rig.asked == [])
    rig.tick(10)
    #expect(rig.asked == [.end(.keepAliveTimeout)])
  }

  @Test(
    "drops a client that is silent for one and a half of its keep alive time", arguments: MQTTVersion.allCases
  )
  func keepAlive(_ version: MQTTVersion) {
    let will = MQTTConnect.Will(topic: "w", payload: [1])
    var rig = SessionRig.connected(version, will: will)
    rig.now = 5_000_000_000
    rig.send(.pingreq)
    #expect(rig.packets == [.pingresp])
    rig.tick(19.9)
    #expect(rig.asked == [])
    rig.tick(20)
    #expect(rig.asked == [.end(.keepAliveTimeout)])
    #expect(rig.departure?.will == will)
    #expect(rig.bytes.first == (version == .v5 ? 0xE0 : nil))
  }

  @Test("a keep alive time of 0 has no end")
  func noKeepAlive() {
    var rig = SessionRig()
    rig.send(.connect(MQTTConnect(.v5, clientID: "c")))
    rig.admit()
    #expect(rig.session.deadline == nil)
  }

  @Test("a session that is kept goes on, and a clean one forgets it")
  func sessions() throws {
    let state = MQTTSessionState().encoded()
    for (version, clean) in [(MQTTVersion.v5, false), (.v5, true), (.v311, false), (.v311, true)] {
      var rig = SessionRig(version)
      rig.send(.connect(MQTTConnect(version, clientID: "c", cleanStart: clean)))
      _ = rig.asked
      rig.admit(state: state)
      guard case .connack(let connack)? = rig.packets.first else { throw TestFailure("there is no CONNACK") }
      #expect(connack.isSessionPresent == !clean)
      #expect(rig.asked == (clean ? [.forget] : []))
    }
    var rig = SessionRig()
    rig.send(.connect(MQTTConnect(.v5, clientID: "c", cleanStart: false)))
    rig.admit()
    guard case .connack(let connack)? = rig.packets.first else { throw TestFailure("there is no CONNACK") }
    #expect(!connack.isSessionPresent)
  }

  @Test("a stored session that can't be read is none")
  func damagedState() throws {
    var rig = SessionRig()
    rig.send(.connect(MQTTConnect(.v5, clientID: "c", cleanStart: false)))
    _ = rig.asked
    rig.admit(state: [9, 9])
    guard case .connack(let connack)? = rig.packets.first else { throw TestFailure("there is no CONNACK") }
    #expect(!connack.isSessionPresent)
    #expect(rig.asked == [.forget])
  }

  @Test("packets that only a server sends end the connection")
  func serverPackets() {
    for hex in ["2003000000", "9004000100 00", "b004000100 00", "d000"] {
      var rig = SessionRig.connected()
      rig.send(bytes: [UInt8](hex: hex))
      #expect(rig.asked == [.end(.protocolError)])
    }
  }

  @Test("CONNACK is the first packet, in front of what is sent again, and comes once")
  func connackFirst() throws {
    for version in MQTTVersion.allCases {
      var before = SessionRig.connected(version, expiry: 100)
      before.subscribe("a", MQTTSubscriptionOptions(.exactlyOnce))
      before.deliver()
      before.send(.pubrec, 1)
      before.lose()
      var rig = SessionRig(version)
      rig.send(.connect(MQTTConnect(version, clientID: "c", cleanStart: false)))
      #expect(rig.packets == [])
      rig.admit(state: before.departure?.state)
      let packets = rig.packets
      guard case .connack? = packets.first else { throw TestFailure("CONNACK isn't the first packet") }
      #expect(packets.dropFirst() == [acknowledgement(.pubrel, 1)])
      rig.admit()
      #expect(rig.packets == [])
    }
  }
}
