import SluiceMQTT
import TestSupport
import Testing

@Suite("MQTT messages of clients")
struct InboundTests {
  private static func message(
    _ topic: String = "a/b", _ qos: MQTTQoS = .atMostOnce, _ packetID: UInt16 = 0, isDuplicate: Bool = false
  ) -> OwnedPacket.Publish {
    OwnedPacket.Publish(
      topic: topic, payload: Array("p".utf8), qos: qos, packetID: packetID, isDuplicate: isDuplicate)
  }

  @Test("opens a publication for each topic once, and publishes at QoS 0 without an answer")
  func qos0() {
    var rig = SessionRig.connected()
    rig.publish("a/b")
    rig.publish("a/b")
    rig.publish("c")
    let expected: [Asked] = [
      .open(0, "a.b"), .publish(Self.message(), 0, sequence: nil),
      .publish(Self.message(), 0, sequence: nil), .open(1, "c"),
      .publish(Self.message("c"), 1, sequence: nil),
    ]
    #expect(rig.asked == expected)
    #expect(rig.packets == [])
  }

  @Test("answers PUBACK when the message is in the log, with its identifier", arguments: MQTTVersion.allCases)
  func qos1(_ version: MQTTVersion) {
    var rig = SessionRig.connected(version)
    rig.publish("a/b", "p", .atLeastOnce, 7)
    rig.publish("a/b", "p", .atLeastOnce, 8)
    #expect(rig.packets == [])
    #expect(rig.asked.last == .publish(Self.message("a/b", .atLeastOnce, 8), 0, sequence: nil))
    rig.appended(7)
    rig.appended(8)
    #expect(rig.packets == [acknowledgement(.puback, 7), acknowledgement(.puback, 8)])
    rig.appended(9)
    #expect(rig.packets == [])
  }

  @Test(
    "a message at QoS 2 is published once, with a sequence, however often it comes",
    arguments: MQTTVersion.allCases)
  func qos2(_ version: MQTTVersion) {
    var rig = SessionRig.connected(version)
    rig.publish("a/b", "p", .exactlyOnce, 7)
    rig.publish("a/b", "p", .exactlyOnce, 7, isDuplicate: true)
    let published = Asked.publish(Self.message("a/b", .exactlyOnce, 7), 0, sequence: 0)
    #expect(rig.asked == [.open(0, "a.b"), published])
    #expect(rig.packets == [])
    rig.appended(7)
    #expect(rig.packets == [acknowledgement(.pubrec, 7)])
    rig.publish("a/b", "p", .exactlyOnce, 7, isDuplicate: true)
    #expect(rig.packets == [acknowledgement(.pubrec, 7)])
    #expect(rig.asked == [])
    rig.send(.pubrel, 7)
    #expect(rig.packets == [acknowledgement(.pubcomp, 7)])
    // The identifier is free again.
    rig.publish("a/b", "p", .exactlyOnce, 7)
    #expect(rig.asked == [.publish(Self.message("a/b", .exactlyOnce, 7), 0, sequence: 1)])
  }

  @Test("answers PUBREL for what isn't there: with a reason in MQTT 5")
  func strayRelease() {
    for (version, reason) in [(MQTTVersion.v5, MQTTReason.packetIdentifierNotFound), (.v311, .success)] {
      var rig = SessionRig.connected(version)
      rig.send(.pubrel, 9)
      #expect(rig.packets == [acknowledgement(.pubcomp, 9, reason)])
    }
  }

  @Test("a message at QoS 2 that has expired is acknowledged to its end")
  func expired() {
    var rig = SessionRig.connected()
    rig.publish("a", "p", .exactlyOnce, 1, isDuplicate: false, isRetained: false) {
      $0.append(.messageExpiry, 1)
    }
    rig.time += 5000
    rig.now += 5_000_000_000
    rig.appended(1)
    rig.send(.pubrel, 1)
    #expect(rig.packets == [acknowledgement(.pubrec, 1), acknowledgement(.pubcomp, 1)])
  }

  @Test("keeps the state of QoS 2 before it answers, and goes on with it on the next connection")
  func qos2Survives() {
    var rig = SessionRig.connected(expiry: 100)
    rig.publish("a", "p", .exactlyOnce, 1)
    rig.publish("a", "p", .exactlyOnce, 2)
    _ = rig.asked
    rig.flush()
    #expect(rig.asked == [])
    rig.appended(1)
    rig.flush()
    #expect(rig.asked == [.store])
    // The broker crashes here: only the last stored state remains.
    var next = SessionRig.connected(clean: false, expiry: 100, state: rig.stored)
    next.publish("a", "p", .exactlyOnce, 1, isDuplicate: true)
    #expect(next.packets == [acknowledgement(.pubrec, 1)])
    #expect(next.asked == [])
    // Its sequence is the same: the log has the record, or accepts it now.
    next.publish("a", "p", .exactlyOnce, 2, isDuplicate: true)
    #expect(
      next.asked == [
        .open(0, "a"),
        .publish(Self.message("a", .exactlyOnce, 2, isDuplicate: true), 0, sequence: 1),
      ])
    next.appended(2)
    #expect(next.packets == [acknowledgement(.pubrec, 2)])
    next.publish("a", "p", .exactlyOnce, 3)
    #expect(next.asked == [.publish(Self.message("a", .exactlyOnce, 3), 0, sequence: 2)])
    next.send(.pubrel, 1)
    next.flush()
    #expect(next.asked == [.store])
    #expect(next.packets == [acknowledgement(.pubcomp, 1)])
  }

  @Test("messages that weren't stored get the same sequences when they come again after a crash")
  func sequencesAfterCrash() {
    var rig = SessionRig.connected(expiry: 100)
    rig.publish("a", "p", .exactlyOnce, 1)
    rig.publish("a", "p", .exactlyOnce, 2)
    let sequences: (inout SessionRig) -> [UInt64?] = { rig in
      rig.asked.compactMap { asked -> UInt64?? in
        if case .publish(_, _, let sequence) = asked { sequence } else { nil }
      }
    }
    #expect(sequences(&rig) == [0, 1])
    // No reply was sent, so no state was stored.
    var next = SessionRig.connected(expiry: 100)
    next.publish("a", "p", .exactlyOnce, 1, isDuplicate: true)
    next.publish("a", "p", .exactlyOnce, 2, isDuplicate: true)
    #expect(sequences(&next) == [0, 1])
  }

  @Test(
    "a client that exceeds the receive maximum is disconnected",
    arguments: [MQTTQoS.atLeastOnce, .exactlyOnce])
  func receiveMaximum(_ qos: MQTTQoS) {
    var rules = MQTTSessionRules()
    rules.receiveMaximum = 2
    var rig = SessionRig.connected(.v5, rules)
    rig.publish("a", "p", qos, 1)
    rig.publish("a", "p", qos, 2)
    rig.appended(1)
    if qos == .exactlyOnce { rig.send(.pubrel, 1) }
    rig.publish("a", "p", .atMostOnce)
    rig.publish("a", "p", qos, 3)
    #expect(rig.session.isOpen)
    rig.publish("a", "p", qos, 4)
    #expect(rig.asked.last == .end(.receiveMaximumExceeded))
  }

  @Test("topic aliases stand for topics, until they are set anew")
  func aliases() {
    var rig = SessionRig.connected()
    let alias: (inout MQTTProperties) -> Void = { $0.append(.topicAlias, 32) }
    rig.publish("a", "p", .atMostOnce, 0, isDuplicate: false, isRetained: false, alias)
    rig.publish("", "p", .atMostOnce, 0, isDuplicate: false, isRetained: false, alias)
    rig.publish("b", "p", .atMostOnce, 0, isDuplicate: false, isRetained: false, alias)
    rig.publish("", "p", .atMostOnce, 0, isDuplicate: false, isRetained: false, alias)
    let numbers = rig.asked.compactMap { asked -> UInt16? in
      if case .publish(_, let number, _) = asked { number } else { nil }
    }
    #expect(numbers == [0, 0, 1, 1])
  }

  @Test("aliases beyond the maximum, and aliases that stand for nothing, end the connection")
  func badAliases() {
    for (topic, alias, reason) in [
      ("a", 33 as UInt32, MQTTReason.topicAliasInvalid), ("", 1, .protocolError),
      ("", 33, .topicAliasInvalid),
    ] {
      var rig = SessionRig.connected()
      rig.publish(topic) { $0.append(.topicAlias, alias) }
      #expect(rig.asked == [.end(reason)])
    }
  }

  @Test("an alias keeps no name that the broker can't have, however long it is")
  func longAlias() {
    var rig = SessionRig.connected()
    let alias: (inout MQTTProperties) -> Void = { $0.append(.topicAlias, 1) }
    rig.publish(
      String(repeating: "x", count: 256), "p", .atLeastOnce, 1, isDuplicate: false, isRetained: false, alias)
    #expect(rig.asked == [])
    #expect(rig.packets.count == 1)
    rig.publish("", "p", .atLeastOnce, 2, isDuplicate: false, isRetained: false, alias)
    #expect(rig.asked == [.end(.protocolError)])
  }

  @Test("aliases end with the connection")
  func aliasesEnd() {
    var rig = SessionRig.connected(expiry: 100)
    rig.publish("a") { $0.append(.topicAlias, 1) }
    rig.lose()
    var next = SessionRig.connected(clean: false, expiry: 100, state: rig.departure?.state)
    next.publish("") { $0.append(.topicAlias, 1) }
    #expect(next.asked == [.end(.protocolError)])
  }

  @Test("a retained message is kept for its topic, and published")
  func retained() {
    var rig = SessionRig.connected()
    rig.publish("a/b", "p", isRetained: true)
    rig.publish("a/b", "", isRetained: true)
    var message = Self.message()
    message.isRetained = true
    var empty = message
    empty.payload = []
    #expect(
      rig.asked == [
        .open(0, "a.b"), .retain(message, "a.b"), .publish(message, 0, sequence: nil), .retain(empty, "a.b"),
        .publish(empty, 0, sequence: nil),
      ])
  }

  @Test(
    "a topic that the broker can't have is refused with a reason: MQTT 3.1.1 has none, and is acknowledged")
  func inexpressible() {
    let topic = String(repeating: "a", count: 10_000)
    var rig = SessionRig.connected()
    rig.publish(topic, "p", .atLeastOnce, 1)
    rig.publish("$\(topic)", "p", .exactlyOnce, 2, isRetained: true)
    let packets = rig.packets
    #expect(packets.count == 2)
    for (packet, type) in zip(packets, [MQTTPacketType.puback, .pubrec]) {
      guard case .acknowledgement(let packet) = packet else {
        Issue.record("there is no acknowledgement")
        continue
      }
      #expect(packet.type == type)
      #expect(packet.reason == .topicNameInvalid)
      #expect(packet.properties.string(.reasonString) != nil)
    }
    rig.publish(topic)
    #expect(rig.packets == [])
    #expect(rig.asked == [])
    #expect(rig.unnamed == [topic, "$\(topic)", topic])

    var old = SessionRig.connected(.v311)
    for qos in [MQTTQoS.atMostOnce, .atLeastOnce, .exactlyOnce] {
      old.publish(topic, "p", qos, UInt16(qos.rawValue), isRetained: true)
    }
    // It arrives again before it is released.
    old.publish(topic, "p", .exactlyOnce, 2, isDuplicate: true, isRetained: true)
    old.send(.pubrel, 2)
    #expect(
      old.packets == [
        acknowledgement(.puback, 1), acknowledgement(.pubrec, 2), acknowledgement(.pubrec, 2),
        acknowledgement(.pubcomp, 2),
      ])
    #expect(!old.asked.contains { if case .store = $0 { false } else { true } })
    #expect(old.unnamed.count == 4)
    // The identifier is free for a message that can be published.
    old.publish("a", "p", .exactlyOnce, 2)
    #expect(old.asked.count == 2)
  }

  @Test("what the broker doesn't append is told by a reason: MQTT 3.1.1 has none, and is disconnected")
  func notAppended() {
    var rig = SessionRig.connected()
    rig.publish("a", "p", .atLeastOnce, 1)
    rig.publish("a", "p", .exactlyOnce, 2)
    rig.appended(1, MQTTError(.notAuthorized, "no"))
    rig.appended(2, MQTTError(.quotaExceeded, "full"))
    #expect(
      rig.packets == [
        acknowledgement(.puback, 1, .notAuthorized, "no"),
        acknowledgement(.pubrec, 2, .quotaExceeded, "full"),
      ])
    // The exchange has ended, so the identifier is free.
    rig.send(.pubrel, 2)
    #expect(rig.packets == [acknowledgement(.pubcomp, 2, .packetIdentifierNotFound)])
    var old = SessionRig.connected(.v311)
    old.publish("a", "p", .atLeastOnce, 1)
    old.appended(1, MQTTError(.notAuthorized, "no"))
    #expect(old.asked.last == .end(.notAuthorized))
    #expect(old.bytes == [])
  }

  @Test("sends no sentences to a client that doesn't want them")
  func noProblems() {
    var rig = SessionRig.connected { $0.append(.requestProblemInformation, 0) }
    rig.publish("a", "p", .atLeastOnce, 1)
    rig.appended(1, MQTTError(.notAuthorized, "no"))
    rig.send(.subscribe(MQTTSubscribe(2, [MQTTSubscribe.Item("a#", MQTTSubscriptionOptions(.atMostOnce))])))
    #expect(
      rig.packets == [
        acknowledgement(.puback, 1, .notAuthorized),
        .answers(MQTTFilterAnswers(.suback, 2, [.topicFilterInvalid])),
      ])
  }

  @Test("QoS and retained messages that aren't served end the connection")
  func notServed() {
    var rules = MQTTSessionRules()
    rules.maximumQoS = .atLeastOnce
    rules.takesRetained = false
    var rig = SessionRig.connected(.v5, rules)
    rig.publish("a", "p", .exactlyOnce, 1)
    #expect(rig.asked == [.end(.qosNotSupported)])
    rig = SessionRig.connected(.v5, rules)
    rig.publish("a", isRetained: true)
    #expect(rig.asked == [.end(.retainNotSupported)])
  }

  @Test("publications of the topics that were used longest ago are closed")
  func manyTopics() {
    var rig = SessionRig.connected()
    for topic in 0..<32 { rig.publish("t\(topic)") }
    rig.publish("t0")
    _ = rig.asked
    rig.publish("new")
    #expect(rig.asked.prefix(2) == [.close(1), .open(1, "new")])
    rig.publish("t0")
    #expect(rig.asked.count == 1)
    rig.publish("t1")
    #expect(rig.asked.prefix(2) == [.close(2), .open(2, "t1")])
  }

  @Test("DUP of a client isn't passed on, and doesn't make another message of one at QoS 1")
  func duplicates() {
    var rig = SessionRig.connected()
    rig.publish("a", "p", .atLeastOnce, 1)
    _ = rig.asked
    rig.publish("a", "p", .atLeastOnce, 1, isDuplicate: true)
    #expect(rig.asked == [])
    rig.appended(1)
    // The identifier was free again: this is a new message, whatever DUP says.
    rig.publish("a", "p", .atLeastOnce, 1, isDuplicate: true)
    #expect(rig.asked == [.publish(Self.message("a", .atLeastOnce, 1, isDuplicate: true), 0, sequence: nil)])
  }

  @Test("leaves out sentences where the client takes no packet that long")
  func shortAnswers() {
    var rig = SessionRig.connected { $0.append(.maximumPacketSize, 20) }
    rig.publish("a", "p", .atLeastOnce, 1)
    rig.publish("a", "p", .exactlyOnce, 2)
    rig.appended(1, MQTTError(.notAuthorized, "a long sentence"))
    rig.appended(2, MQTTError(.notAuthorized, "a long sentence"))
    rig.send(.subscribe(MQTTSubscribe(3, [MQTTSubscribe.Item("a#", MQTTSubscriptionOptions(.atMostOnce))])))
    #expect(
      rig.packets == [
        acknowledgement(.puback, 1, .notAuthorized), acknowledgement(.pubrec, 2, .notAuthorized),
        .answers(MQTTFilterAnswers(.suback, 3, [.topicFilterInvalid])),
      ])
  }
}
