import SluiceMQTT
import SluiceWire
import TestSupport
import Testing

@Suite("MQTT subscriptions")
struct SubscribeTests {
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

  @Test(
    "answers every filter in one SUBACK, in their order, when the broker has answered all",
    arguments: MQTTVersion.allCases)
  func answers(_ version: MQTTVersion) {
    var rig = SessionRig.connected(version)
    let items = [MQTTQoS.exactlyOnce, .atMostOnce, .atLeastOnce].enumerated().map {
      MQTTSubscribe.Item("t\($0.offset)", MQTTSubscriptionOptions($0.element))
    }
    rig.send(.subscribe(MQTTSubscribe(9, items)))
    let requests = Self.requests(rig.asked)
    #expect(requests.map(\.number) == [0, 1, 2])
    #expect(requests.map(\.patterns) == [["t0"], ["t1"], ["t2"]])
    #expect(requests.map(\.isUnlimited) == [false, true, false])
    #expect(requests.allSatisfy { $0.start == .new && !$0.isResumed && $0.group == nil })
    rig.subscribed(2)
    rig.subscribed(0)
    #expect(rig.packets == [])
    rig.subscribed(1, MQTTError(.notAuthorized, "no"))
    guard case .answers(let suback)? = rig.packets.first else {
      Issue.record("there is no SUBACK")
      return
    }
    #expect(suback.packetID == 9)
    #expect(suback.reasons == [.grantedQoS2, version == .v5 ? .notAuthorized : .unspecified, .grantedQoS1])
    #expect(suback.properties.string(.reasonString) == (version == .v5 ? "no" : nil))
  }

  @Test("tells of each SUBSCRIBE which filters were refused, whoever has refused them")
  func refusals() {
    var rig = SessionRig.connected()
    rig.send(Self.subscribe(1, ["a"]))
    rig.subscribed(0)
    #expect(rig.refused == [])
    rig.send(Self.subscribe(2, ["b", "c/#/d", "e", "f+"]))
    #expect(rig.refused == [])
    rig.subscribed(2)
    rig.subscribed(1, MQTTError(.notAuthorized, "no"))
    #expect(rig.refused.map(\.count) == [3])
    #expect(rig.refused.map(\.filter) == ["c/#/d"])
    #expect(rig.refused.map(\.reason) == [.topicFilterInvalid])
    rig.send(Self.subscribe(3, ["g"]))
    rig.subscribed(1, MQTTError(.notAuthorized, "no"))
    #expect(
      rig.refused.last == MQTTRefusedFilters(count: 1, filter: "g", reason: .notAuthorized, message: "no"))
  }

  @Test("SUBACKs come in the order of their SUBSCRIBEs")
  func order() {
    var rig = SessionRig.connected()
    rig.send(Self.subscribe(1, ["a"]), Self.subscribe(2, ["b"]))
    rig.subscribed(1)
    #expect(rig.packets == [])
    rig.subscribed(0)
    #expect(
      rig.packets == [
        .answers(MQTTFilterAnswers(.suback, 1, [.grantedQoS1])),
        .answers(MQTTFilterAnswers(.suback, 2, [.grantedQoS1])),
      ])
  }

  @Test(
    "filters that aren't valid, or that the broker can't express, are refused beside others",
    arguments: MQTTVersion.allCases)
  func refused(_ version: MQTTVersion) {
    var rig = SessionRig.connected(version)
    rig.send(Self.subscribe(1, ["a", "a#", String(repeating: "x", count: 256), "b/#"]))
    #expect(Self.requests(rig.asked).map(\.patterns) == [["a"], ["b", "b.>"]])
    rig.subscribed(0)
    rig.subscribed(1)
    guard case .answers(let suback)? = rig.packets.first else {
      Issue.record("there is no SUBACK")
      return
    }
    let no: MQTTReason = version == .v5 ? .topicFilterInvalid : .unspecified
    #expect(suback.reasons == [.grantedQoS1, no, no, .grantedQoS1])
  }

  @Test("a filter that is subscribed again replaces its subscription, which loses nothing")
  func replace() {
    var rig = SessionRig.connected()
    rig.subscribe("a", MQTTSubscriptionOptions(.atLeastOnce))
    rig.deliver()
    // Only the options change: the broker must approve them, and the subscription continues.
    rig.send(Self.subscribe(2, ["a"], MQTTSubscriptionOptions(.exactlyOnce)))
    #expect(Self.requests(rig.asked).map(\.isResumed) == [true])
    rig.subscribed(0)
    #expect(rig.asked.contains(.sendRetained(0)))
    #expect(rig.packets.last == .answers(MQTTFilterAnswers(.suback, 2, [.grantedQoS2])))
    rig.deliver()
    guard case .publish(let message)? = rig.packets.first else {
      Issue.record("there is no message")
      return
    }
    #expect(message.qos == .exactlyOnce)
    // The subscription no longer has demand, and continues at its position.
    rig.send(Self.subscribe(3, ["a"], MQTTSubscriptionOptions(.atMostOnce)))
    let request = Self.requests(rig.asked).first
    #expect(request?.number == 0)
    #expect(request?.isResumed == true)
    #expect(request?.isUnlimited == true)
    // Another start position: the subscription restarts there.
    rig.send(Self.subscribe(4, ["a"]) { $0.append(user: "sluice-from", "earliest") })
    #expect(Self.requests(rig.asked).first?.isResumed == false)
  }

  @Test("is answered for each SUBSCRIBE, also where several come before the broker has answered the first")
  func severalAtOnce() {
    for failure in [nil, MQTTError(.notAuthorized, "no")] {
      var rig = SessionRig.connected()
      let options = [MQTTQoS.atMostOnce, .atLeastOnce, .exactlyOnce].map { MQTTSubscriptionOptions($0) }
      for (number, options) in options.enumerated() {
        rig.send(Self.subscribe(UInt16(number + 1), ["a", "a"], options))
      }
      #expect(rig.packets == [])
      rig.subscribed(0, failure)
      let subacks = rig.packets.compactMap { packet -> MQTTFilterAnswers? in
        if case .answers(let suback) = packet { suback } else { nil }
      }
      #expect(subacks.map(\.packetID) == [1, 2, 3])
      let granted: [MQTTReason] = [.success, .grantedQoS1, .grantedQoS2]
      #expect(subacks.map(\.reasons) == granted.map { Array(repeating: failure?.reason ?? $0, count: 2) })
    }
  }

  @Test("retained messages are sent as the retain handling says, and not to shared subscriptions")
  func retainHandling() {
    typealias Handling = MQTTSubscriptionOptions.RetainHandling
    for (handling, first, second) in [
      (Handling.send, true, true), (.sendIfNew, true, false), (.doNotSend, false, false),
    ] {
      var rig = SessionRig.connected()
      let options = MQTTSubscriptionOptions(.atLeastOnce, retainHandling: handling)
      for expected in [first, second] {
        rig.send(Self.subscribe(1, ["a"], options))
        rig.answerSubscriptions()
        #expect(rig.asked.contains(.sendRetained(0)) == expected)
      }
    }
    var rig = SessionRig.connected()
    rig.send(Self.subscribe(1, ["$share/g/a"]))
    rig.answerSubscriptions()
    #expect(!rig.asked.contains(.sendRetained(0)))
  }

  @Test("retained messages are asked for when the subscription stands")
  func retainedLast() {
    var rig = SessionRig.connected()
    rig.send(Self.subscribe(1, ["a"]))
    #expect(!rig.asked.contains(.sendRetained(0)))
    rig.subscribed(0, MQTTError(.notAuthorized, "no"))
    #expect(rig.asked == [])
  }

  @Test(
    "ends subscriptions, tells those that there weren't, and frees their numbers",
    arguments: MQTTVersion.allCases)
  func unsubscribe(_ version: MQTTVersion) {
    var rig = SessionRig.connected(version)
    rig.subscribe("a/+", MQTTSubscriptionOptions(.atLeastOnce))
    rig.send(.unsubscribe(MQTTUnsubscribe(5, ["a/+", "a/b", "a#"])))
    #expect(rig.asked == [.unsubscribe(0)])
    let reasons: [MQTTReason] = [.success, .noSubscriptionExisted, .topicFilterInvalid]
    #expect(rig.packets == [.answers(MQTTFilterAnswers(.unsuback, 5, version == .v5 ? reasons : []))])
    rig.send(Self.subscribe(6, ["b"]))
    #expect(Self.requests(rig.asked).first?.number == 0)
  }

  @Test("messages that are under way are completed after UNSUBSCRIBE, and move no cursor")
  func unsubscribeUnderWay() {
    var rig = SessionRig.connected(expiry: 100)
    rig.subscribe("a", MQTTSubscriptionOptions(.exactlyOnce))
    rig.deliver()
    rig.send(.unsubscribe(MQTTUnsubscribe(5, ["a"])))
    _ = rig.packets
    rig.send(.pubrec, 1)
    #expect(rig.packets == [acknowledgement(.pubrel, 1)])
    rig.send(.pubcomp, 1)
    rig.flush()
    #expect(!rig.asked.contains { if case .commit = $0 { true } else { false } })
  }

  @Test("UNSUBSCRIBE before the broker has answered ends the subscription, too")
  func unsubscribeEarly() {
    var rig = SessionRig.connected()
    rig.send(Self.subscribe(1, ["a"]), .unsubscribe(MQTTUnsubscribe(2, ["a"])))
    #expect(
      rig.packets == [
        .answers(MQTTFilterAnswers(.suback, 1, [.success])),
        .answers(MQTTFilterAnswers(.unsuback, 2, [.success])),
      ])
    rig.subscribed(0)
    #expect(rig.packets == [])
  }

  @Test("filters are compared by their bytes, not as text")
  func bytes() {
    var rig = SessionRig.connected()
    rig.subscribe("\u{e9}", MQTTSubscriptionOptions(.atLeastOnce))
    rig.send(.unsubscribe(MQTTUnsubscribe(5, ["e\u{301}"])))
    #expect(rig.packets == [.answers(MQTTFilterAnswers(.unsuback, 5, [.noSubscriptionExisted]))])
  }

  @Test(
    "begins where the user property sluice-from says",
    arguments: [
      ("new", Subscribe.Start.new), ("earliest", .earliest), ("last:100", .last(100)),
      ("offset:5", .offset(5)),
      ("time:1700000000000", .time(1_700_000_000_000)), ("time:1970-01-01T00:00:00Z", .time(0)),
      ("time:2026-02-28T23:59:59Z", .time(1_772_323_199_000)),
      ("time:2000-03-01T00:00:00Z", .time(951_868_800_000)),
    ])
  func start(_ text: String, _ start: Subscribe.Start) {
    var rig = SessionRig.connected()
    rig.send(Self.subscribe(1, ["a", "b"]) { $0.append(user: "sluice-from", text) })
    #expect(Self.requests(rig.asked).map(\.start) == [start, start])
  }

  @Test(
    "refuses a start that can't be, and says which can",
    arguments: ["", "last", "last:-1", "offset:x", "time:yesterday", "time:2026-13-01T00:00:00Z", "end"])
  func badStart(_ text: String) {
    var rig = SessionRig.connected()
    rig.send(Self.subscribe(1, ["a"]) { $0.append(user: "sluice-from", text) })
    #expect(rig.asked == [])
    guard case .answers(let suback)? = rig.packets.first else {
      Issue.record("there is no SUBACK")
      return
    }
    #expect(suback.reasons == [.implementationSpecific])
    #expect(suback.properties.string(.reasonString)?.contains("last:COUNT") == true)
  }

  @Test(
    "refuses two starts, which contradict each other, though both may be the same",
    arguments: ["earliest", "last:1", "nonsense"])
  func twoStarts(_ second: String) {
    var rig = SessionRig.connected()
    rig.send(
      Self.subscribe(1, ["a", "b"]) {
        $0.append(user: "sluice-from", "earliest")
        $0.append(user: "sluice-from", second)
      })
    #expect(rig.asked == [])
    guard case .answers(let suback)? = rig.packets.first else {
      Issue.record("there is no SUBACK")
      return
    }
    #expect(suback.reasons == [.implementationSpecific, .implementationSpecific])
    #expect(suback.properties.string(.reasonString)?.contains("sluice-from comes twice") == true)
  }

  @Test("bounds the number of subscriptions")
  func limit() {
    var rules = MQTTSessionRules()
    rules.maximumSubscriptions = 2
    var rig = SessionRig.connected(.v5, rules)
    rig.send(Self.subscribe(1, ["a", "b", "c", "a"]))
    rig.answerSubscriptions()
    guard case .answers(let suback)? = rig.packets.first else {
      Issue.record("there is no SUBACK")
      return
    }
    #expect(suback.reasons == [.grantedQoS1, .grantedQoS1, .quotaExceeded, .quotaExceeded])
  }

  @Test("looks for no more filters than there can be subscriptions")
  func manyFilters() {
    var rules = MQTTSessionRules()
    rules.maximumSubscriptions = 2
    var rig = SessionRig.connected(.v5, rules)
    rig.send(Self.subscribe(1, ["a", "b", "a"]))
    rig.answerSubscriptions()
    guard case .answers(let suback)? = rig.packets.first else {
      Issue.record("there is no SUBACK")
      return
    }
    #expect(suback.reasons == [.grantedQoS1, .grantedQoS1, .quotaExceeded])
    rig.send(.unsubscribe(MQTTUnsubscribe(2, ["a", "x", "b"])))
    #expect(
      rig.packets == [
        .answers(
          MQTTFilterAnswers(.unsuback, 2, [.success, .noSubscriptionExisted, .implementationSpecific]))
      ])
  }

  @Test("takes no more bytes while many SUBSCRIBEs wait for the broker")
  func waiting() {
    var rig = SessionRig.connected()
    for packetID in 1...16 as ClosedRange<UInt16> { rig.send(Self.subscribe(packetID, ["t\(packetID)"])) }
    #expect(rig.send(bytes: [0xC0, 0]) == 0)
    #expect(rig.packets == [])
    rig.subscribed(0)
    #expect(rig.send(bytes: [0xC0, 0]) == 2)
    #expect(rig.packets.last == .pingresp)
  }

  @Test("grants no QoS that isn't served")
  func grantedQoS() {
    var rules = MQTTSessionRules()
    rules.maximumQoS = .atLeastOnce
    var rig = SessionRig.connected(.v5, rules)
    rig.send(Self.subscribe(1, ["a"], MQTTSubscriptionOptions(.exactlyOnce)))
    rig.answerSubscriptions()
    #expect(rig.packets == [.answers(MQTTFilterAnswers(.suback, 1, [.grantedQoS1]))])
  }

  @Test("a session that outlives its connection has cursors at QoS 1 and 2, and nothing owed at QoS 0")
  func cursors() {
    let filters: [(String, MQTTQoS)] = [
      ("a", .atMostOnce), ("b", .atLeastOnce), ("$share/g/c", .exactlyOnce),
    ]
    for (expiry, expected) in [(0 as UInt32, [false, false, false]), (100, [false, true, false])] {
      var rig = SessionRig.connected(expiry: expiry)
      let items = filters.map { MQTTSubscribe.Item($0.0, MQTTSubscriptionOptions($0.1)) }
      let properties = MQTTProperties { $0.append(user: "sluice-from", "earliest") }
      rig.send(.subscribe(MQTTSubscribe(1, items, properties: properties)))
      let requests = Self.requests(rig.asked)
      #expect(requests.map(\.keepsCursors) == expected)
      #expect(requests.allSatisfy { $0.start == .earliest })
      rig.lose()
      guard let state = rig.departure?.state else { continue }
      // Unfinished messages are also sent on a last connection.
      for expiry in [100, 0] as [UInt32] {
        var next = SessionRig(.v5)
        let properties = MQTTProperties { $0.append(.sessionExpiry, expiry) }
        next.send(.connect(MQTTConnect(.v5, clientID: "c", cleanStart: false, properties: properties)))
        next.admit(state: state)
        let resumed = Self.requests(next.asked)
        #expect(resumed.map(\.start) == [.new, .earliest, .new])
        #expect(resumed.map(\.keepsCursors) == [false, true, false])
        #expect(resumed.allSatisfy { $0.isResumed })
      }
    }
  }

  @Test("a subscription that the broker refuses on resuming is dropped")
  func refusedOnResume() {
    var rig = SessionRig.connected(expiry: 100)
    rig.subscribe("a", MQTTSubscriptionOptions(.atLeastOnce))
    rig.lose()
    var next = SessionRig.connected(clean: false, expiry: 100, state: rig.departure?.state)
    next.subscribed(0, MQTTError(.notAuthorized, "no"))
    next.deliver()
    #expect(next.packets == [])
  }
}
