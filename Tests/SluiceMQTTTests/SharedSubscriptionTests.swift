import SluiceMQTT
import SluiceWire
import TestSupport
import Testing

@Suite("MQTT shared subscriptions")
struct SharedSubscriptionTests {
  private static func subscribe(
    _ packetID: UInt16, _ filters: [String],
    _ options: MQTTSubscriptionOptions = MQTTSubscriptionOptions(.atLeastOnce),
    _ build: (inout MQTTProperties) -> Void = { _ in }
  ) -> OwnedPacket {
    .subscribe(
      MQTTSubscribe(
        packetID, filters.map { MQTTSubscribe.Item($0, options) }, properties: MQTTProperties(build)))
  }

  private static func requests(_ asked: [Asked]) -> [MQTTSubscriptionRequest] {
    asked.compactMap { if case .subscribe(let request) = $0 { request } else { nil } }
  }

  @Test("shared subscriptions are groups; they can't leave out the client's own messages")
  func shared() {
    var rig = SessionRig.connected()
    rig.send(Self.subscribe(1, ["$share/g/a/b"]))
    let request = Self.requests(rig.asked).first
    #expect(request?.group == "g")
    #expect(request?.patterns == ["a.b"])
    rig.send(Self.subscribe(2, ["$share/g/c"], MQTTSubscriptionOptions(.atLeastOnce, noLocal: true)))
    #expect(rig.asked == [.end(.protocolError)])
    var rules = MQTTSessionRules()
    rules.takesShared = false
    var other = SessionRig.connected(.v5, rules)
    other.send(Self.subscribe(1, ["$share/g/a"]))
    guard case .answers(let suback)? = other.packets.first else {
      Issue.record("there is no SUBACK")
      return
    }
    #expect(suback.reasons == [.sharedSubscriptionsNotSupported])
  }

  @Test("members of a group settle what they have acknowledged, and a message at QoS 2 when it is sent")
  func settles() {
    let first = MQTTPlace(topic: 7, offset: 0)
    for (qos, before, after) in [
      (MQTTQoS.atMostOnce, [Asked.settle(0, first)], [Asked]()), (.atLeastOnce, [], [.settle(0, first)]),
      (.exactlyOnce, [.settle(0, first)], []),
    ] {
      var rig = SessionRig.connected(expiry: 100)
      rig.subscribe("$share/g/a", MQTTSubscriptionOptions(qos))
      let isSettle: (Asked) -> Bool = { if case .settle = $0 { true } else { false } }
      rig.deliver()
      rig.flush()
      #expect(rig.asked.filter(isSettle) == before)
      if qos > .atMostOnce { rig.send(qos == .atLeastOnce ? .puback : .pubrec, 1) }
      rig.flush()
      let asked = rig.asked
      #expect(asked.filter(isSettle) == after)
      #expect(!asked.contains { if case .commit = $0 { true } else { false } })
    }
  }

  @Test("a message at QoS 2 of a group is completed on the next connection, by the same client")
  func sharedResume() {
    var rig = SessionRig.connected(expiry: 100)
    rig.subscribe("$share/g/a", MQTTSubscriptionOptions(.exactlyOnce))
    rig.deliver()
    rig.lose()
    var next = SessionRig.connected(clean: false, expiry: 100, state: rig.departure?.state)
    next.fetched(1, "a", "p", MQTTPlace(topic: 7, offset: 0))
    #expect(next.packets == [received("a", "p", .exactlyOnce, 1, isDuplicate: true)])
  }

  @Test("a message that a member of a group refuses is settled, not given to another")
  func refusedByMember() {
    var rig = SessionRig.connected()
    rig.subscribe("$share/g/a", MQTTSubscriptionOptions(.atLeastOnce))
    rig.deliver()
    rig.send(.puback, 1, .quotaExceeded)
    rig.flush()
    #expect(rig.asked.contains(.settle(0, MQTTPlace(topic: 7, offset: 0))))
  }
}
