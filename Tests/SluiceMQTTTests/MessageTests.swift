import SluiceMQTT
import SluiceWire
import TestSupport
import Testing

@Suite("MQTT messages as they are delivered")
struct MessageTests {
  private static let atLeastOnce = MQTTSubscriptionOptions(.atLeastOnce)
  private static let exactlyOnce = MQTTSubscriptionOptions(.exactlyOnce)

  private static func place(_ offset: UInt64) -> MQTTPlace { MQTTPlace(topic: 7, offset: offset) }

  @Test("message expiry goes down by the time that a message has waited, and ends it")
  func expiry() {
    var rig = SessionRig.connected()
    rig.subscribe("a", Self.atLeastOnce)
    let properties = MQTTProperties { $0.append(.messageExpiry, 10) }
    rig.deliver(properties: properties, age: 3500)
    #expect(rig.packets == [received("a", "p", .atLeastOnce, 1) { $0.append(.messageExpiry, 7) }])
    rig.deliver(properties: properties, age: 10_000)
    #expect(rig.packets == [])
    rig.deliver(properties: properties, age: -5)
    #expect(rig.packets == [received("a", "p", .atLeastOnce, 2) { $0.append(.messageExpiry, 10) }])
  }

  @Test("a message that has expired is sent again all the same, if it was sent before")
  func expiredUnderWay() {
    var rig = SessionRig.connected(expiry: 100)
    rig.subscribe("a", Self.exactlyOnce)
    rig.deliver(properties: MQTTProperties { $0.append(.messageExpiry, 10) })
    rig.lose()
    var next = SessionRig.connected(clean: false, expiry: 100, state: rig.departure?.state)
    next.fetched(
      1, "a", "p", Self.place(0), properties: MQTTProperties { $0.append(.messageExpiry, 10) }, age: 60_000)
    #expect(
      next.packets == [
        received("a", "p", .exactlyOnce, 1, isDuplicate: true) { $0.append(.messageExpiry, 0) }
      ])
  }

  @Test(
    "response topics come unaltered, those that the broker can't have among them",
    arguments: ["r/1", "a.b", "/x", "$y"])
  func responseTopics(_ topic: String) {
    var rig = SessionRig.connected()
    rig.subscribe("a", Self.atLeastOnce)
    let properties = MQTTProperties { $0.append(.responseTopic, topic) }
    rig.deliver(properties: properties)
    #expect(rig.packets == [received("a", "p", .atLeastOnce, 1) { $0 = properties }])
  }

  @Test("the properties of a message come as they were, and user properties in their order")
  func properties() {
    var rig = SessionRig.connected()
    rig.subscribe("a", Self.atLeastOnce)
    let properties = MQTTProperties {
      $0.append(.contentType, "text/plain")
      $0.append(.responseTopic, "r/1")
      $0.append(.correlationData, [0, 255])
      $0.append(user: "b", "1")
      $0.append(user: "a", "2")
      $0.append(user: "b", "1")
      $0.append(user: "mqtt", "x")
      $0.append(user: "content-type", "y")
      $0.append(user: "", "")
      $0.append(.payloadFormat, 1)
    }
    rig.deliver(properties: properties)
    #expect(rig.packets == [received("a", "p", .atLeastOnce, 1) { $0 = properties }])
    var old = SessionRig.connected(.v311)
    old.subscribe("a", Self.atLeastOnce)
    old.deliver(properties: properties)
    #expect(old.packets == [received("a", "p", .atLeastOnce, 1)])
  }

  @Test(
    "the payload format comes as it was: text, bytes, or nothing said of it",
    arguments: [nil, 0, 1] as [UInt32?])
  func payloadFormat(format: UInt32?) {
    let properties = MQTTProperties { if let format { $0.append(.payloadFormat, format) } }
    for wasRetained in [false, true] {
      var rig = SessionRig.connected()
      rig.subscribe("a", Self.atLeastOnce)
      rig.deliver(isRetained: true, wasRetained: wasRetained, properties: properties)
      #expect(
        rig.packets == [received("a", "p", .atLeastOnce, 1, isRetained: true) { $0 = properties }])
    }
  }

  @Test("the header with a message's flags is a character that can be printed")
  func printableFlags() {
    for qos in [MQTTQoS.atMostOnce, .atLeastOnce, .exactlyOnce] {
      for format in MQTTRecordFlags.Format.allCases.map(Optional.some) + [nil] {
        for isRetained in [false, true] {
          let flags = MQTTRecordFlags(qos: qos, isRetained: isRetained, format: format)
          #expect((0x30...0x7E).contains(flags.byte))
          let again = MQTTRecordFlags(byte: flags.byte)
          #expect((again.qos, again.isRetained, again.format) == (qos, isRetained, format))
        }
      }
    }
  }

  @Test("sets aliases for the first topics where the client allows them, and no more")
  func aliases() {
    var rig = SessionRig.connected { $0.append(.topicAliasMaximum, 1) }
    rig.subscribe("#", MQTTSubscriptionOptions(.atMostOnce))
    rig.deliver("a", topicNumber: 1)
    rig.deliver("a", topicNumber: 1)
    rig.deliver("b", topicNumber: 2)
    #expect(
      rig.packets == [
        received("a") { $0.append(.topicAlias, 1) }, received("") { $0.append(.topicAlias, 1) },
        received("b"),
      ])
    var none = SessionRig.connected()
    none.subscribe("#", MQTTSubscriptionOptions(.atMostOnce))
    none.deliver("a")
    #expect(none.packets == [received("a")])
  }

  @Test("a message that is too long sets no alias")
  func aliasOfLongMessage() {
    var rig = SessionRig.connected {
      $0.append(.topicAliasMaximum, 1)
      $0.append(.maximumPacketSize, 20)
    }
    rig.subscribe("#", MQTTSubscriptionOptions(.atMostOnce))
    rig.deliver("a", "much too long for this client", topicNumber: 1)
    rig.deliver("b", topicNumber: 2)
    #expect(rig.packets == [received("b") { $0.append(.topicAlias, 1) }])
  }

  @Test("no local leaves out what the client itself has published")
  func noLocal() {
    for (noLocal, count) in [(true, 1), (false, 2)] {
      var rig = SessionRig.connected(expiry: 100)
      rig.subscribe("a", MQTTSubscriptionOptions(.atLeastOnce, noLocal: noLocal))
      rig.deliver(isOwn: true)
      rig.deliver()
      #expect(rig.packets.count == count)
    }
  }

  @Test(
    "RETAIN is set for retained messages of a new subscription, and else as published where that is asked for"
  )
  func retain() {
    for (asPublished, expected) in [(true, [true, true, false]), (false, [true, false, false])] {
      var rig = SessionRig.connected()
      rig.subscribe("a", MQTTSubscriptionOptions(.atMostOnce, retainAsPublished: asPublished))
      rig.deliver(isRetained: true, wasRetained: true)
      rig.deliver(wasRetained: true)
      rig.deliver()
      let flags = rig.packets.map { packet in
        if case .publish(let message) = packet { message.isRetained } else { false }
      }
      #expect(flags == expected)
    }
  }

  @Test("a message has the identifier of its subscription")
  func subscriptionIdentifier() {
    var rig = SessionRig.connected()
    rig.subscribe("a", Self.atLeastOnce) { $0.append(.subscriptionIdentifier, 300) }
    rig.deliver()
    #expect(rig.packets == [received("a", "p", .atLeastOnce, 1) { $0.append(.subscriptionIdentifier, 300) }])
  }

  @Test("overlapping subscriptions each deliver a copy, with their own identifiers and QoS")
  func overlapping() {
    var rig = SessionRig.connected()
    rig.subscribe("a", Self.atLeastOnce) { $0.append(.subscriptionIdentifier, 1) }
    rig.subscribe("#", Self.exactlyOnce) { $0.append(.subscriptionIdentifier, 2) }
    rig.deliver(on: 0)
    rig.deliver(on: 1)
    #expect(
      rig.packets == [
        received("a", "p", .atLeastOnce, 1) { $0.append(.subscriptionIdentifier, 1) },
        received("a", "p", .exactlyOnce, 2) { $0.append(.subscriptionIdentifier, 2) },
      ])
  }

  @Test("the end of a topic comes as a message with properties, to clients that have properties")
  func ended() {
    var rig = SessionRig.connected()
    rig.subscribe("a", Self.atLeastOnce)
    rig.topicEnded("a")
    rig.topicEnded("a", failure: (200, "it broke"))
    #expect(
      rig.packets == [
        received("a", "") { $0.append(user: "sluice-ended", "finished") },
        received("a", "") {
          $0.append(user: "sluice-ended", "failure")
          $0.append(user: "sluice-code", "200")
          $0.append(user: "sluice-message", "it broke")
        },
      ])
    var old = SessionRig.connected(.v311)
    old.subscribe("a", Self.atLeastOnce)
    old.topicEnded("a")
    #expect(old.packets == [])
  }

  @Test("a message without properties is the record that the general layout says")
  func plainRecord() throws {
    for (qos, isRetained) in [(MQTTQoS.atMostOnce, false), (.exactlyOnce, true)] {
      var batch: [UInt8] = [9]
      [1, 2, 3].withUnsafeBytes { (payload: UnsafeRawBufferPointer) in
        let payload = UnsafeRawBufferPointer(rebasing: payload[..<3])
        let message = MQTTPublish(topic: payload, payload: payload, qos: qos, isRetained: isRetained)
        #expect(MQTTRecordWriter.append(message, to: &batch))
      }
      var expected = BatchBuilder()
      let flags = MQTTRecordFlags(qos: qos, isRetained: isRetained)
      try batch.suffix(3).withUnsafeBytes { payload in
        try expected.append(key: nil, headers: [(Array("mqtt".utf8), [flags.byte])], payload: payload)
      }
      #expect(batch == [9] + expected.bytes)
    }
  }
}
