import SluiceMQTT
import TestSupport
import Testing

@Suite("MQTT messages for clients")
struct OutboundTests {
  private static let atLeastOnce = MQTTSubscriptionOptions(.atLeastOnce)
  private static let exactlyOnce = MQTTSubscriptionOptions(.exactlyOnce)

  private static func place(_ offset: UInt64) -> MQTTPlace { MQTTPlace(topic: 7, offset: offset) }

  @Test(
    "a message has the lower QoS of its publication and its subscription", arguments: MQTTVersion.allCases)
  func qos(_ version: MQTTVersion) {
    for subscribed in MQTTQoS.allCases {
      var rig = SessionRig.connected(version)
      rig.subscribe("a", MQTTSubscriptionOptions(subscribed))
      for published in MQTTQoS.allCases {
        rig.deliver("a", "p", published)
        guard case .publish(let message)? = rig.packets.first else {
          Issue.record("there is no message")
          continue
        }
        #expect(message.qos == min(subscribed, published))
        #expect((message.packetID != 0) == (message.qos > .atMostOnce))
        #expect(!message.isDuplicate)
      }
    }
  }

  @Test("records of other doors are delivered at the subscription's QoS")
  func otherDoors() {
    var rig = SessionRig.connected()
    rig.subscribe("a", Self.atLeastOnce)
    rig.deliver("a", "p", .exactlyOnce)
    #expect(rig.packets == [received("a", "p", .atLeastOnce, 1)])
  }

  @Test("requests as many records as the client's receive maximum, and one more for each acknowledgement")
  func demand() {
    var rig = SessionRig.connected { $0.append(.receiveMaximum, 2) }
    rig.send(.subscribe(MQTTSubscribe(1, [MQTTSubscribe.Item("a", Self.atLeastOnce)])))
    rig.answerSubscriptions()
    _ = rig.asked
    rig.flush()
    #expect(rig.asked == [.request(2)])
    rig.flush()
    #expect(rig.asked == [])
    rig.deliver()
    rig.deliver()
    rig.flush()
    #expect(rig.asked == [])
    rig.send(.puback, 1)
    rig.flush()
    #expect(rig.asked == [.request(1)])
    // A message at QoS 0 needs no acknowledgement, and makes room immediately.
    rig.deliver("a", "p", .atMostOnce)
    rig.flush()
    #expect(rig.asked == [.request(1)])
  }

  @Test("a session that outlives its connection has fewer messages under way")
  func lastingDemand() {
    for (expiry, window) in [(0 as UInt32, 1024), (100, 32)] {
      var rig = SessionRig.connected(expiry: expiry)
      rig.send(.subscribe(MQTTSubscribe(1, [MQTTSubscribe.Item("a", Self.atLeastOnce)])))
      rig.flush()
      #expect(rig.asked.last == .request(window))
    }
  }

  @Test("subscriptions at QoS 0 are unlimited, and nothing is requested for them")
  func unlimited() {
    var rig = SessionRig.connected()
    rig.send(.subscribe(MQTTSubscribe(1, [MQTTSubscribe.Item("a", MQTTSubscriptionOptions(.atMostOnce))])))
    guard case .subscribe(let request)? = rig.asked.first else {
      Issue.record("nothing was asked")
      return
    }
    #expect(request.isUnlimited)
    rig.flush()
    #expect(rig.asked == [])
  }

  @Test("cursors follow the acknowledgements, in the order of the messages")
  func commits() {
    var rig = SessionRig.connected(expiry: 100)
    rig.subscribe("a", Self.atLeastOnce)
    for _ in 0..<4 { rig.deliver() }
    rig.send(.puback, 2)
    rig.flush()
    #expect(rig.asked == [.request(1)])
    rig.send(.puback, 1)
    rig.flush()
    #expect(rig.asked.filter { if case .commit = $0 { true } else { false } } == [.commit(0, Self.place(2))])
    // A message without acknowledgement waits for those before it.
    rig.deliver("a", "p", .atMostOnce)
    rig.flush()
    #expect(!rig.asked.contains(.commit(0, Self.place(5))))
    rig.send(.puback, 3)
    rig.send(.puback, 4)
    rig.flush()
    #expect(rig.asked.contains(.commit(0, Self.place(5))))
    rig.deliver("a", "p", .atMostOnce)
    rig.flush()
    #expect(rig.asked.contains(.commit(0, Self.place(6))))
  }

  @Test(
    "a message at QoS 2 is released when the client has it, and its identifier is free after PUBCOMP",
    arguments: MQTTVersion.allCases)
  func qos2(_ version: MQTTVersion) {
    var rig = SessionRig.connected(version, expiry: 100)
    rig.subscribe("a", Self.exactlyOnce)
    rig.deliver()
    #expect(rig.packets == [received("a", "p", .exactlyOnce, 1)])
    rig.flush()
    #expect(rig.asked == [.store])
    rig.send(.pubrec, 1)
    #expect(rig.packets == [acknowledgement(.pubrel, 1)])
    rig.flush()
    #expect(rig.asked == [.commit(0, Self.place(1)), .store])
    // PUBREC arrives again, and PUBREL is sent again.
    rig.send(.pubrec, 1)
    #expect(rig.packets == [acknowledgement(.pubrel, 1)])
    rig.send(.pubcomp, 1)
    rig.flush()
    #expect(rig.asked == [.store, .request(1)])
    #expect(rig.packets == [])
  }

  @Test("PUBREC with a failure ends the message without a release")
  func refusedByClient() {
    var rig = SessionRig.connected { $0.append(.receiveMaximum, 1) }
    rig.subscribe("a", Self.exactlyOnce)
    rig.deliver()
    _ = rig.packets
    rig.send(.pubrec, 1, .quotaExceeded)
    #expect(rig.packets == [])
    rig.flush()
    #expect(rig.asked.last == .request(1))
  }

  @Test("acknowledgements of what isn't under way: PUBREC is answered with a reason in MQTT 5")
  func strayAcknowledgements() {
    for (version, reason) in [(MQTTVersion.v5, MQTTReason.packetIdentifierNotFound), (.v311, .success)] {
      var rig = SessionRig.connected(version)
      rig.send(.puback, 5)
      rig.send(.pubcomp, 5)
      #expect(rig.packets == [])
      rig.send(.pubrec, 5)
      #expect(rig.packets == [acknowledgement(.pubrel, 5, reason)])
    }
  }

  @Test("an acknowledgement of the other QoS is a protocol error")
  func wrongAcknowledgement() {
    var rig = SessionRig.connected()
    rig.subscribe("a", Self.exactlyOnce)
    rig.deliver()
    rig.send(.puback, 1)
    #expect(rig.asked.last == .end(.protocolError))
  }

  @Test(
    "what was under way is sent again with DUP, in its order and with its identifiers, before anything new")
  func resume() {
    var rig = SessionRig.connected(expiry: 100)
    rig.subscribe("a", Self.exactlyOnce)
    for _ in 0..<4 { rig.deliver() }
    rig.send(.pubrec, 1)
    _ = rig.asked
    rig.lose()
    var next = SessionRig(.v5)
    let properties = MQTTProperties { $0.append(.sessionExpiry, 100) }
    next.send(.connect(MQTTConnect(.v5, clientID: "c", cleanStart: false, properties: properties)))
    _ = next.asked
    next.admit(state: rig.departure?.state)
    #expect(next.packets.last == acknowledgement(.pubrel, 1))
    guard case .subscribe(let request)? = next.asked.first else {
      Issue.record("nothing was asked")
      return
    }
    #expect(request.isResumed)
    #expect(request.underWay == [Self.place(3)])
    next.flush()
    #expect(next.asked == [])
    for packetID in 2...4 as ClosedRange<UInt16> {
      next.fetched(packetID, "a", "p", Self.place(UInt64(packetID) - 1))
      #expect(next.packets == [received("a", "p", .exactlyOnce, packetID, isDuplicate: true)])
    }
    next.flush()
    #expect(next.asked == [.request(28)])
    next.nextOffset = 4
    next.deliver()
    #expect(next.packets == [received("a", "p", .exactlyOnce, 5)])
  }

  @Test("a message that is acknowledged before it is sent again isn't", arguments: MQTTVersion.allCases)
  func acknowledgedEarly(_ version: MQTTVersion) {
    var rig = SessionRig.connected(version, expiry: 100)
    rig.subscribe("a", Self.exactlyOnce)
    rig.deliver()
    rig.lose()
    var next = SessionRig(version)
    next.send(.connect(MQTTConnect(version, clientID: "c", cleanStart: false)))
    next.admit(state: rig.departure?.state)
    _ = next.packets
    next.send(.pubrec, 1)
    next.fetched(1, "a", "p", Self.place(0))
    #expect(next.packets == [acknowledgement(.pubrel, 1)])
  }

  @Test(
    "a message at QoS 2 that can't be sent again is released, so that its identifier is free at the client, too"
  )
  func lostUnderWay() {
    var rig = SessionRig.connected(expiry: 100)
    rig.subscribe("a", Self.exactlyOnce)
    rig.deliver()
    rig.lose()
    var next = SessionRig.connected(clean: false, expiry: 100, state: rig.departure?.state)
    next.fetched(1, "a", nil, Self.place(0))
    #expect(next.packets == [acknowledgement(.pubrel, 1)])
    next.send(.pubcomp, 1)
    next.flush()
    #expect(next.asked.last == .request(32))
  }

  @Test("asks for the records that were under way, by their places")
  func fetches() {
    var rig = SessionRig.connected(expiry: 100)
    rig.subscribe("a", Self.atLeastOnce)
    rig.deliver()
    rig.deliver()
    rig.lose()
    var next = SessionRig(.v5)
    next.send(.connect(MQTTConnect(.v5, clientID: "c", cleanStart: false)))
    next.admit(state: rig.departure?.state)
    let fetches = next.asked.filter { if case .fetch = $0 { true } else { false } }
    #expect(fetches == [.fetch(1, Self.place(0)), .fetch(2, Self.place(1))])
    // The log no longer has one of the messages.
    next.fetched(1, "a", nil, Self.place(0))
    next.fetched(2, "a", "p", Self.place(1))
    #expect(next.packets.last == received("a", "p", .atLeastOnce, 2, isDuplicate: true))
    next.send(.puback, 2)
    next.flush()
    #expect(next.asked.last == .request(1024))
  }

  @Test("a message that is longer than the client takes is left out, as if it had been sent")
  func tooLarge() {
    var rig = SessionRig.connected(expiry: 100) { $0.append(.maximumPacketSize, 30) }
    rig.subscribe("a", Self.atLeastOnce)
    rig.deliver("a", String(repeating: "x", count: 40))
    rig.deliver("a", "short")
    #expect(rig.packets == [received("a", "short", .atLeastOnce, 1)])
    rig.send(.puback, 1)
    rig.flush()
    #expect(rig.asked.contains(.commit(0, Self.place(2))))
  }

  @Test("retained messages move no cursor, and are sent again as such")
  func retainedUnderWay() {
    var rig = SessionRig.connected(expiry: 100)
    rig.subscribe("a", Self.atLeastOnce)
    rig.deliver(topicNumber: 99, isRetained: true, wasRetained: true)
    #expect(rig.packets == [received("a", "p", .atLeastOnce, 1, isRetained: true)])
    rig.lose()
    var next = SessionRig.connected(clean: false, expiry: 100, state: rig.departure?.state)
    next.fetched(1, "a", "p", MQTTPlace(topic: 99, offset: 0))
    #expect(next.packets == [received("a", "p", .atLeastOnce, 1, isDuplicate: true, isRetained: true)])
    next.send(.puback, 1)
    next.flush()
    #expect(!next.asked.contains { if case .commit = $0 { true } else { false } })
  }

  @Test("packet identifiers come around without meeting those that are in use")
  func identifiersComeAround() throws {
    var rig = SessionRig.connected(expiry: 100)
    rig.subscribe("a", Self.exactlyOnce)
    for _ in 0..<3 { rig.deliver() }
    rig.send(.pubrec, 2)
    rig.lose()
    // Sets the last assigned identifier, as after many messages.
    var state = try #require(rig.departure?.state)
    (state[1], state[2]) = (0xF8, 0xFF)
    var next = SessionRig.connected(clean: false, expiry: 100, state: state)
    for packetID in [1, 3] as [UInt16] { next.fetched(packetID, "a", "p", Self.place(0)) }
    _ = next.packets
    var identifiers: [UInt16] = []
    for _ in 0..<12 {
      next.deliver()
      guard case .publish(let message)? = next.packets.first else { throw TestFailure("there is no message") }
      identifiers.append(message.packetID)
    }
    #expect(identifiers == Array(0xFFF9...0xFFFF) + [4, 5, 6, 7, 8])
  }

  @Test("delivers nothing on subscriptions that have ended")
  func late() {
    var rig = SessionRig.connected()
    rig.subscribe("a", Self.atLeastOnce)
    rig.send(.unsubscribe(MQTTUnsubscribe(2, ["a"])))
    _ = rig.packets
    rig.deliver()
    rig.deliver(on: 9)
    #expect(rig.packets == [])
  }

  @Test("everything else goes on where no more messages may be sent")
  func othersGoOn() {
    var rig = SessionRig.connected { $0.append(.receiveMaximum, 1) }
    rig.subscribe("a", Self.atLeastOnce)
    rig.deliver()
    rig.flush()
    #expect(rig.asked == [])
    _ = rig.packets
    rig.send(.pingreq)
    rig.publish("b", "p", .atLeastOnce, 1)
    rig.appended(1)
    rig.send(.unsubscribe(MQTTUnsubscribe(2, ["x"])))
    rig.send(.subscribe(MQTTSubscribe(3, [MQTTSubscribe.Item("c", MQTTSubscriptionOptions(.atMostOnce))])))
    rig.subscribed(1)
    rig.deliver("c", on: 1)
    #expect(
      rig.packets == [
        .pingresp, acknowledgement(.puback, 1),
        .answers(MQTTFilterAnswers(.unsuback, 2, [.noSubscriptionExisted])),
        .answers(MQTTFilterAnswers(.suback, 3, [.success])), received("c"),
      ])
  }
}
