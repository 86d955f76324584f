import SluiceWire
import TestSupport
import Testing

/// Deliveries to the members of a group: each record goes to one member, in turn, within its demand.
@Suite(.onItsOwnThread) struct GroupTests {
  private func publish(_ texts: [String], to topic: String, _ client: RawClient) throws {
    try client.publishAll(texts, to: topic)
  }

  private func record(_ payload: String, key: String? = nil, headers: [String: String] = [:]) throws
    -> BatchBuilder
  {
    let key = key.map { Array($0.utf8) }
    let headers = headers.map { (name: Array($0.key.utf8), value: Array($0.value.utf8)) }
    return try Array(payload.utf8).withUnsafeBytes { payload in
      var batch = BatchBuilder()
      guard let key else {
        try batch.append(key: nil, headers: headers, payload: payload)
        return batch
      }
      try key.withUnsafeBytes { key in try batch.append(key: key, headers: headers, payload: payload) }
      return batch
    }
  }

  @Test func recordsGoToWhoeverHasWaitedLongest() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let members = try (0..<3).map { try broker.client("member\($0)") }
    for member in members {
      try member.join("jobs", "workers", stream: 1, granted: 2)
      try member.roundTrip()
    }
    for text in ["a", "b", "c", "d", "e"] { try publish([text], to: "jobs", producer) }
    try members[0].receiveShare(2, stream: 1)
    try members[1].receiveShare(2, stream: 1)
    try members[2].receiveShare(1, stream: 1)
    #expect(members.map { $0.members[1]!.texts } == [["a", "d"], ["b", "e"], ["c"]])

    // Only the third member has demand left; then the second has more, and then none has any.
    try publish(["f", "g"], to: "jobs", producer)
    try members[2].receiveShare(2, stream: 1)
    #expect(members[2].members[1]!.texts == ["c", "f"])
    try members[1].ask(3, stream: 1)
    try members[1].receiveShare(3, stream: 1)
    #expect(members[1].members[1]!.texts == ["b", "e", "g"])
    try publish(["h"], to: "jobs", producer)
    for member in members { try member.roundTrip() }
    #expect(members.map { $0.members[1]!.records.count } == [2, 3, 2])
  }

  @Test func aBacklogIsSharedOutAndEndsForAll() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    try publish((0..<5_000).map { "\($0)" }, to: "jobs", producer)
    try producer.end("jobs")
    let members = try (0..<4).map { try broker.client("member\($0)") }
    for member in members {
      try member.sendJoin("jobs", "workers", stream: 1, from: .earliest, granted: 5_000)
    }
    for member in members {
      try member.receive(until: "the end") { member.members[1]!.isOver }
      #expect(member.members[1]!.ending == .finished)
      #expect(member.members[1]!.offsets == member.members[1]!.offsets.sorted())
    }
    let offsets = members.flatMap { $0.members[1]!.offsets }
    #expect(offsets.sorted() == Array(0..<5_000))
  }

  @Test func aGroupKeepsItsPlaceWithoutMembers() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let member = try broker.client("member")
    try member.join("jobs", "workers", stream: 1, granted: 2)
    try publish(["a", "b", "c"], to: "jobs", producer)
    try member.receiveShare(2, stream: 1)
    member.close()
    try publish(["d"], to: "jobs", producer)

    let other = try broker.client("other")
    try other.join("jobs", "workers", stream: 1, from: .earliest)
    try other.receiveShare(2, stream: 1)
    #expect(other.members[1]!.texts == ["c", "d"])
    // Another group has its own position.
    try other.join("jobs", "others", stream: 2, from: .earliest)
    try other.receiveShare(4, stream: 2)
  }

  @Test func whatAMemberLeavesUndoneIsDeliveredAgain() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let settings = JoinGroup.Settings(acknowledgement: .explicit)
    let first = try broker.client("first")
    try first.join("jobs", "workers", stream: 1, settings, granted: 3)
    try publish(["a", "b", "c", "d"], to: "jobs", producer)
    try first.receiveShare(3, stream: 1)
    try first.settle(.acknowledge, 1, stream: 1)
    try first.roundTrip()
    // One delivery returns by CANCEL, one with its connection.
    try first.join("jobs", "workers", stream: 2, settings, granted: 1)
    try first.receiveShare(1, stream: 2)
    #expect(first.members[2]!.texts == ["d"])
    try first.cancel(stream: 1)
    try first.roundTrip()
    first.close()

    let second = try broker.client("second")
    try second.join("jobs", "workers", stream: 1, settings)
    try second.receiveShare(3, stream: 1)
    #expect(second.members[1]!.texts == ["a", "c", "d"])
    #expect(second.members[1]!.records.map(\.delivery) == [2, 2, 2])
    // The first member returns and acknowledges an old delivery. A newer delivery exists, so this has no effect.
    let back = try broker.client("first")
    try back.join("jobs", "workers", stream: 1, settings, granted: 0)
    try back.send(Settle(.acknowledge, delivery: 1, firstOffset: 0, count: 1), stream: 1)
    try back.roundTrip()
    try second.settle(.retry, 0, stream: 1)
    try second.receiveShare(4, stream: 1)
    #expect(second.members[1]!.records[3].text == "a")
    #expect(second.members[1]!.records[3].delivery == 3)
  }

  @Test func whatWasDoneOnALostConnectionCountsUntilItIsGivenOutAgain() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let settings = JoinGroup.Settings(acknowledgement: .explicit)
    let first = try broker.client("first")
    try first.join("jobs", "workers", stream: 1, settings)
    try publish(["a", "b"], to: "jobs", producer)
    try first.receiveShare(2, stream: 1)
    first.close()
    let again = try broker.client("first")
    try again.join("jobs", "workers", stream: 1, settings, granted: 0)
    try eventually("the first is gone") { try producer.show("jobs").subscriptions.count == 1 }
    try again.send(Settle(.acknowledge, delivery: 1, firstOffset: 0, count: 1), stream: 1)
    try again.ask(5, stream: 1)
    try again.receiveShare(1, stream: 1)
    #expect(again.members[1]!.texts == ["b"])
    try again.settle(.acknowledge, 0, stream: 1)
    try producer.end("jobs")
    try again.receive(until: "the end") { again.members[1]!.isOver }
    #expect(again.members[1]!.ending == .finished)
  }

  @Test func whoIsTooSlowLosesItsRecords() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let settings = JoinGroup.Settings(acknowledgement: .explicit, deadline: 30)
    let slow = try broker.client("slow")
    try slow.join("jobs", "workers", stream: 1, settings, granted: 1)
    try publish(["a"], to: "jobs", producer)
    try slow.receiveShare(1, stream: 1)
    let quick = try broker.client("quick")
    try quick.join("jobs", "workers", stream: 1, settings)
    try quick.receiveShare(1, stream: 1)
    #expect(quick.members[1]!.records[0].delivery >= 2)
  }

  @Test func theLastRefusalSendsARecordToTheDeadLetters() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let settings = JoinGroup.Settings(acknowledgement: .explicit, deliveries: 2, deadLetters: "jobs.dead")
    let member = try broker.client("member")
    try member.join("jobs", "workers", stream: 1, settings)
    try producer.openPublication("jobs", stream: 1)
    try producer.publish(record("poison", key: "the key", headers: ["kind": "bad"]), stream: 1)
    try producer.publish(["hopeless", "fine"], stream: 1)
    try member.receiveShare(3, stream: 1)
    try member.settle(.retry, 0, stream: 1)
    try member.settle(.reject, 1, stream: 1)
    try member.settle(.acknowledge, 2, stream: 1)
    try member.receiveShare(4, stream: 1)
    #expect(member.members[1]!.records[3].offset == 0)
    #expect(member.members[1]!.records[3].delivery == 2)
    try member.settle(.retry, 3, stream: 1)
    try producer.end("jobs", stream: 2)
    try member.receive(until: "the end") { member.members[1]!.isOver }

    let reader = try broker.client("reader")
    try reader.subscribe("jobs.dead", stream: 1, from: .earliest)
    try reader.receiveRecords(2, stream: 1)
    let letters = try reader.subscriptions[1]!.payloads.map { try Letter($0) }
    #expect(letters[0].payload == "hopeless")
    #expect(letters[0].headers["sluice-dead-reason"] == "rejected")
    #expect(letters[0].headers["sluice-dead-offset"] == "1")
    #expect(letters[0].headers["sluice-dead-deliveries"] == "1")
    #expect(letters[1].payload == "poison")
    #expect(letters[1].key == "the key")
    #expect(
      letters[1].headers == [
        "kind": "bad", "sluice-dead-topic": "jobs", "sluice-dead-group": "workers", "sluice-dead-offset": "0",
        "sluice-dead-deliveries": "2", "sluice-dead-reason": "retried",
      ])
  }

  /// An attributed record, as text.
  private struct Letter {
    var key: String?
    var headers: [String: String] = [:]
    var payload = ""

    init(_ body: [UInt8]) throws {
      try body.withUnsafeBytes { body in
        let attributes = try RecordAttributes(body)
        key = attributes.key.map { String(decoding: $0, as: UTF8.self) }
        payload = String(decoding: attributes.payload, as: UTF8.self)
        attributes.forEachHeader { name, value in
          headers[String(decoding: name, as: UTF8.self)] = String(decoding: value, as: UTF8.self)
        }
      }
    }
  }

  @Test func deadLettersThatAreNotTakenWait() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    try producer.end("dead")
    let settings = JoinGroup.Settings(acknowledgement: .explicit, deadLetters: "dead")
    let member = try broker.client("member")
    try member.join("jobs", "workers", stream: 1, settings)
    try publish(["a", "b"], to: "jobs", producer)
    try producer.end("jobs")
    try member.receiveShare(2, stream: 1)
    try member.settle(.reject, 0, stream: 1)
    try member.settle(.acknowledge, 1, stream: 1)
    try member.roundTrip()
    #expect(!member.members[1]!.isOver)
    // Once the topic can be written to again, the group continues.
    try producer.delete("dead")
    try member.receive(until: "the end") { member.members[1]!.isOver }
    #expect(try producer.show("dead").summary.nextOffset == 1)
  }

  @Test func recordsWithOneKeyComeOneAfterTheOther() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let settings = JoinGroup.Settings(acknowledgement: .explicit, order: .byKey)
    let first = try broker.client("first")
    let second = try broker.client("second")
    try first.join("jobs", "workers", stream: 1, settings)
    try second.join("jobs", "workers", stream: 1, settings)
    try producer.openPublication("jobs", stream: 1)
    for (key, text) in [("x", "x1"), ("x", "x2"), ("y", "y1"), ("x", "x3"), ("y", "y2"), (nil, "--")]
      as [(String?, String)]
    {
      try producer.publish(record(text, key: key), stream: 1)
    }
    try first.receiveShare(2, stream: 1)
    try second.receiveShare(1, stream: 1)
    func payloads(_ client: RawClient) -> [String] {
      client.members[1]!.records.map { String($0.text.suffix(2)) }
    }
    #expect(payloads(first) == ["x1", "--"])
    #expect(payloads(second) == ["y1"])
    // Refused, it comes before those behind it; it is the second's turn, which has waited longest.
    try first.settle(.retry, 0, stream: 1)
    try second.receiveShare(2, stream: 1)
    #expect(payloads(second) == ["y1", "x1"])
    try second.settle(.acknowledge, 0, stream: 1)
    try first.receiveShare(3, stream: 1)
    #expect(payloads(first) == ["x1", "--", "y2"])
    try second.settle(.acknowledge, 1, stream: 1)
    try second.receiveShare(3, stream: 1)
    #expect(payloads(second) == ["y1", "x1", "x2"])
  }

  @Test func onlyWhatTheFilterLetsThroughIsShared() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let settings = JoinGroup.Settings(
      filter: RecordFilter([RecordFilter.Condition(.header("kind"), .equals(Array("new".utf8)))]))
    let member = try broker.client("member")
    try member.join("jobs", "workers", stream: 1, settings, granted: 2)
    try producer.openPublication("jobs", stream: 1)
    for index in 0..<4_000 {
      let kind = index % 2_000 == 1_999 ? "new" : "old"
      try producer.publish(record("\(index)", headers: ["kind": kind]), stream: 1)
    }
    try producer.complete(stream: 1)
    // The group's filter excludes the rest, so this is the end.
    try member.receive(until: "the end") { member.members[1]!.isOver }
    #expect(member.members[1]!.offsets == [1_999, 3_999])
    #expect(member.members[1]!.ending == .finished)
  }

  // MARK: Denials

  @Test func settingsThatCannotBeMeantAreRefused() throws {
    let broker = try BrokerProcess("--max-cursors", "2")
    let client = try broker.client()
    typealias Settings = JoinGroup.Settings
    try client.expectNoJoin("jobs", "g", Settings(order: .byKey), .invalidSetting)
    try client.expectNoJoin("jobs", "g", Settings(deadline: 5), .invalidSetting)
    try client.expectNoJoin("jobs", "g", Settings(deliveries: 5), .invalidSetting)
    try client.expectNoJoin("jobs", "g", Settings(deadLetters: "x"), .invalidSetting)
    try client.expectNoJoin(
      "jobs", "g", Settings(acknowledgement: .explicit, deadLetters: "jobs"), .invalidSetting)
    try client.expectNoJoin(
      "jobs", "g", Settings(acknowledgement: .explicit, deadLetters: "*"), .invalidTopic)
    try client.expectNoJoin("jobs", "a b", Settings(), .invalidTopic)
    try client.join("jobs", "g", stream: 1, Settings(acknowledgement: .explicit, deadline: 5))
    try client.expectNoJoin("jobs", "g", Settings(acknowledgement: .explicit), .groupMismatch)
    try client.expectNoJoin("jobs", "g", Settings(), .groupMismatch)
    try client.join("jobs", "h", stream: 2)
    try client.expectNoJoin("jobs", "i", Settings(), .limitReached)
    // None of these counts as a subscription.
    #expect(try client.show("jobs").summary.subscriptions == 2)

    try client.subscribe("jobs", stream: 3)
    try client.send(Settle(.acknowledge, delivery: 1, firstOffset: 0, count: 1), stream: 3)
    try client.receiveEnd(stream: 3)
    #expect(client.events(3).last == .fault(.unsupported))
  }

  @Test func whoNamesNonsenseInASettleChangesNothing() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let member = try broker.client("member")
    try member.join("jobs", "workers", stream: 1, JoinGroup.Settings(acknowledgement: .explicit), granted: 2)
    try publish(["a", "b", "c"], to: "jobs", producer)
    try member.receiveShare(2, stream: 1)
    for verdict in Settle.Verdict.allCases {
      for (first, count, delivery): (UInt64, UInt32, UInt32) in [
        (2, 1, 1), (.max - 5, 5, 1), (0, .max, 2), (0, 0, 1), (1 << 40, .max, 1), (0, .max, 0),
      ] {
        try member.send(Settle(verdict, delivery: delivery, firstOffset: first, count: count), stream: 1)
      }
    }
    try member.roundTrip()
    #expect(member.members[1]!.records.count == 2)
    try member.send(Settle(.retry, delivery: 1, firstOffset: 0, count: .max), stream: 1)
    try member.ask(5, stream: 1)
    try member.receiveShare(5, stream: 1)
    #expect(member.members[1]!.texts == ["a", "b", "a", "b", "c"])
  }

  // MARK: The topic

  @Test func aGroupHoldsProducersUpWithTheDemandOfAllItsMembers() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    var settings = TopicSettings(replayRecords: 0)
    settings.flow = .lossless
    settings.bufferRecords = 0
    settings.bufferBytes = 1 << 20
    settings.withoutSubscribers = .hold
    try producer.create("jobs", settings)
    try producer.openPublication("jobs", stream: 1)
    #expect(producer.publications[1]!.granted == 0)
    let first = try broker.client("first")
    let second = try broker.client("second")
    try first.join("jobs", "workers", stream: 1, granted: 2)
    try second.join("jobs", "workers", stream: 1, granted: 3)
    try producer.receive(until: "a grant") { producer.publications[1]!.granted >= 5 }
    try producer.publish(["a", "b", "c", "d", "e"], stream: 1)
    try first.receiveShare(2, stream: 1)
    try second.receiveShare(3, stream: 1)
    try producer.roundTrip()
    #expect(producer.publications[1]!.granted == 5)
    #expect(try producer.show("jobs").subscriptions.allSatisfy { $0.holding > 0 && $0.state == .live })
    try first.ask(4, stream: 1)
    try producer.receive(until: "a grant") { producer.publications[1]!.granted >= 7 }
    try producer.publish(["f", "g"], stream: 1)
    try first.receiveShare(4, stream: 1)
  }

  @Test func whatIsUnderWayIsKeptInALosslessTopic() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    var settings = TopicSettings(replayRecords: 0)
    settings.flow = .lossless
    settings.bufferRecords = 1_000
    settings.bufferBytes = 4 << 20
    try producer.create("jobs", settings)
    let member = try broker.client("member")
    try member.join(
      "jobs", "workers", stream: 1, JoinGroup.Settings(acknowledgement: .explicit), granted: 300)
    try producer.openPublication("jobs", stream: 1)
    // More than the grace of the log.
    let payload = [UInt8](repeating: 7, count: 10_000)
    for _ in 0..<300 { try producer.publish([payload], stream: 1) }
    try member.receiveShare(300, stream: 1)
    try member.send(Settle(.acknowledge, delivery: 1, firstOffset: 1, count: 298), stream: 1)
    try member.send(Settle(.retry, delivery: 1, firstOffset: 0, count: 1), stream: 1)
    try member.ask(301, stream: 1)
    try member.receiveShare(301, stream: 1)
    #expect(member.members[1]!.records[300].offset == 0)
    #expect(member.members[1]!.missed == 0)
  }

  @Test func whatItsOnlyMemberLeavesUndoneIsKeptInALosslessTopic() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    var settings = TopicSettings(replayRecords: 0)
    settings.flow = .lossless
    settings.bufferRecords = 1_000
    settings.bufferBytes = 4 << 20
    try producer.create("jobs", settings)
    let explicit = JoinGroup.Settings(acknowledgement: .explicit)
    let member = try broker.client("member")
    try member.join("jobs", "workers", stream: 1, explicit, granted: 100)
    try producer.openPublication("jobs", stream: 1)
    let payload = [UInt8](repeating: 7, count: 10_000)
    for _ in 0..<100 { try producer.publish([payload], stream: 1) }
    try member.receiveShare(100, stream: 1)
    member.close()
    try eventually("the member is gone") { try broker.show("jobs").subscriptions.isEmpty }
    // Far more than the log retains by itself, but no more than its buffer.
    for _ in 0..<250 { try producer.publish([payload], stream: 1) }
    let other = try broker.client("other")
    try other.join("jobs", "workers", stream: 1, explicit)
    try other.receiveShare(350, stream: 1)
    #expect(other.members[1]!.missed == 0)
    #expect(other.members[1]!.offsets == Array(0..<350))
    #expect(
      other.members[1]!.records.map(\.delivery) == Array(repeating: 2, count: 100)
        + Array(repeating: 1, count: 250))
  }

  @Test func whatTheTopicHasDroppedIsToldOnce() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    try producer.create("jobs", TopicSettings(replayRecords: 10))
    let first = try broker.client("first")
    let second = try broker.client("second")
    try first.join("jobs", "workers", stream: 1, granted: 0)
    try second.join("jobs", "workers", stream: 1, granted: 0)
    try producer.openPublication("jobs", stream: 1)
    let payload = [UInt8](repeating: 7, count: 10_000)
    for _ in 0..<500 { try producer.publish([payload], stream: 1) }
    try producer.complete(stream: 1)
    try first.ask(.max, stream: 1)
    try second.ask(.max, stream: 1)
    for client in [first, second] {
      try client.receive(until: "the end") { client.members[1]!.isOver }
    }
    let missed = first.members[1]!.missed + second.members[1]!.missed
    let offsets = (first.members[1]!.offsets + second.members[1]!.offsets).sorted()
    #expect(missed > 0)
    #expect(offsets.count + Int(missed) == 500)
    #expect(Set(offsets).count == offsets.count)
    #expect(offsets.last == 499)
  }

  @Test func deletingATopicEndsItsGroups() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    let member = try broker.client("member")
    let settings = JoinGroup.Settings(acknowledgement: .explicit)
    try member.join("jobs", "workers", stream: 1, settings, granted: 1)
    try publish(["a", "b"], to: "jobs", producer)
    try member.receiveShare(1, stream: 1)
    try producer.delete("jobs")
    try member.receive(until: "the end") { member.members[1]!.isOver }
    #expect(member.members[1]!.fault?.code == .topicDeleted)
    // It is a new group, in a new topic.
    try member.join("jobs", "workers", stream: 1)
    try publish(["c"], to: "jobs", producer)
    try member.receiveShare(1, stream: 1)
    #expect(member.members[1]!.records.map(\.offset) == [0])
  }

  @Test func aTopicThatStartsOverForgetsItsGroups() throws {
    let broker = try BrokerProcess()
    let producer = try broker.client("producer")
    var topic = TopicSettings()
    topic.scope = .whileConnected
    try producer.create("jobs", topic)
    let member = try broker.client("member")
    let settings = JoinGroup.Settings(acknowledgement: .explicit)
    let first = try member.join("jobs", "workers", stream: 1, settings)
    try publish(["a", "b"], to: "jobs", producer)
    try member.receiveShare(2, stream: 1)
    try producer.end("jobs")
    try member.settle(.acknowledge, 0, 1, stream: 1)
    try member.receive(until: "the end") { member.members[1]!.isOver }
    #expect(member.members[1]!.ending == .finished)
    let second = try member.join("jobs", "workers", stream: 2)
    #expect(second.epoch != first.epoch)
    #expect(second.nextOffset == 0)
  }
}
