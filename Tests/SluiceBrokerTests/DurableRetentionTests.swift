import SluiceStore
import SluiceWire
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceTopics

/// Retention of durable topics, and reports of dropped records.
@Suite struct DurableRetentionTests {
  private static let kibibyte = [UInt8](repeating: 7, count: 1024)

  private static func durable(_ change: (inout TopicSettings) -> Void = { _ in }) -> TopicSettings {
    var settings = DurableSetting.durable()
    change(&settings)
    return settings
  }

  /// Publishes `count` records of 1 KiB to a durable topic in a single commit.
  private func publishAtOnce(_ count: Int, to topic: String, _ setting: DurableSetting) throws {
    let client = try setting.client()
    try client.openPublication(topic, stream: 1)
    setting.store.hold()
    for _ in 0..<count / 16 {
      try client.publish(Array(repeating: Self.kibibyte, count: 16), stream: 1)
    }
    try setting.store.waitForHeldCommit()
    try client.roundTrip()
    setting.store.release()
    try client.receiveAcknowledgements(stream: 1)
  }

  @Test func withoutLimitsADurableTopicKeepsEverything() throws {
    let setting = try DurableSetting { configuration in
      var rule = TopicSettings()
      rule.storage = .durable
      configuration.topicRules = [TopicRule(pattern: try! TopicPattern("ruled.>"), settings: rule)]
    }
    let client = try setting.client()
    try client.create("created", Self.durable())
    try client.create("aged", Self.durable { $0.replayAge = 3_600_000 })
    try client.publishAll(["x"], to: "ruled.t")
    for topic in ["created", "aged", "ruled.t"] {
      let info = try client.show(topic)
      #expect(info.settings.storage == .durable, "\(topic)")
      #expect(info.settings.replayBytes == TopicSettings.unlimited, "\(topic)")
      #expect(info.settings.replayRecords == TopicSettings.unlimited, "\(topic)")
    }
    try client.create("memory", TopicSettings())
    #expect(try client.show("memory").settings.replayBytes == 64 << 20)

    try setting.restart()
    let later = try setting.client()
    #expect(try later.show("ruled.t").settings.replayBytes == TopicSettings.unlimited)
    #expect(try later.show("aged").settings.replayAge == 3_600_000)
  }

  @Test func explicitLimitsApplyToDurableTopics() throws {
    let setting = try DurableSetting { configuration in
      configuration.topicDefaults.replayBytes = 2000
      var rule = TopicSettings(replayBytes: 3000)
      rule.storage = .durable
      configuration.topicRules = [TopicRule(pattern: try! TopicPattern("ruled"), settings: rule)]
    }
    let client = try setting.client()
    try client.create("default", Self.durable())
    try client.create("own", Self.durable { $0.replayBytes = 4000 })
    try client.publishAll(["x"], to: "ruled")
    for (topic, bytes) in [("default", 2000), ("own", 4000), ("ruled", 3000)] as [(String, UInt64)] {
      #expect(try client.show(topic).settings.replayBytes == bytes, "\(topic)")
    }
  }

  /// Trimming drops whole batches: 64 KiB of the store.
  @Test func aLimitOfBytesHoldsForACommitThatIsLargerThanIt() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    try client.create("t", Self.durable { $0.replayBytes = 1 << 20 })
    try publishAtOnce(3_072, to: "t", setting)
    let info = try client.show("t")
    #expect(info.summary.nextOffset == 3_072)
    #expect(info.summary.bytes >= 1 << 20)
    #expect(info.summary.bytes <= 1 << 20 + UInt64(BatchBlock.fullBytes))
  }

  @Test func aLimitOfBytesHoldsInMemory() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    try client.create("t", TopicSettings(replayBytes: 1 << 20))
    try client.openPublication("t", stream: 1)
    for _ in 0..<192 { try client.publish(Array(repeating: Self.kibibyte, count: 16), stream: 1) }
    try client.receiveAcknowledgements(stream: 1)
    let info = try client.show("t")
    #expect(info.summary.nextOffset == 3_072)
    #expect(info.summary.bytes > 1 << 20 - 2048 && info.summary.bytes <= 1 << 20)
    #expect(info.dropped[.bytes].records == info.summary.firstOffset)
    #expect(info.dropped.total.bytes + info.summary.bytes == 3_072 * 1028)
  }

  @Test func whatALimitDropsIsToldOnceAndCounted() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    try client.create("t", Self.durable { $0.replayBytes = 100_000 })
    try client.create("u", Self.durable { $0.replayRecords = 100 })
    for topic in ["t", "u"] {
      for _ in 0..<3 { try publishAtOnce(320, to: topic, setting) }
    }
    let info = try client.show("t")
    #expect(info.dropped[.bytes].records == info.summary.firstOffset && info.summary.firstOffset > 0)
    #expect(info.dropped[.bytes].bytes == info.summary.firstOffset * 1028)
    #expect(info.dropped[.records].records == 0 && info.dropped[.age].records == 0)
    #expect(try client.show("u").dropped[.records].records > 0)
    let told = setting.events.filter { event in
      if case .dropping = event { true } else { false }
    }
    #expect(told == [.dropping(topic: "t", limit: .bytes), .dropping(topic: "u", limit: .records)])
    // Offsets continue after a restart; counters start at zero.
    try setting.restart()
    let later = try setting.client().show("t")
    #expect(later.summary.firstOffset == info.summary.firstOffset && later.dropped == DroppedRecords())
  }

  @Test func whoWaitsForTheStoreIsShownWithTheReason() async throws {
    let setting = try DurableSetting()
    let (publisher, latecomer, other) = (try setting.client(), try setting.client(), try setting.client())
    try publisher.create("t", Self.durable())
    try publisher.openPublication("t", stream: 1)
    try publisher.publish(["a", "b", "c"], stream: 1)
    try publisher.receiveAcknowledgements(stream: 1)
    setting.store.fail(.full)
    try publisher.publish(["x"], stream: 1)
    try publisher.receive(until: "the end of the publication") { publisher.publications[1]!.end != nil }
    for _ in 0..<2 {
      try latecomer.send(PublishOpen(topic: "t", acknowledgement: .received), stream: 4)
      try latecomer.expectFault(.storageFull, stream: 4)
    }
    var info = try other.show("t")
    #expect(info.storage.state == .full && info.storage.since > 0)
    // They count as the topic's producers, with their published records.
    #expect(info.summary.publications == 2 && info.withoutProducers == 0)
    #expect(info.publications.map(\.received) == [4, 0])
    #expect(info.publications.map(\.reason) == [.storageFull, .storageFull])
    #expect(info.publications.allSatisfy { $0.waiting > 0 })
    var snapshot = await setting.broker.snapshot()
    #expect(snapshot.storage?.state == .full && snapshot.storage?.waiting == 2)
    #expect(snapshot.storage?.message.contains("storage is full") == true)
    #expect(snapshot.topics.map(\.waitingForStorage) == [2])
    #expect(snapshot.topics[0].heldUp > 0 && snapshot.topics[0].publications.count == 2)
    #expect(snapshot.topics[0].summary.publications == 2 && snapshot.topics[0].withoutProducers == 0)

    // A client that disconnects no longer waits.
    latecomer.close()
    try eventually("one is left") { try other.show("t").publications.count == 1 }
    setting.store.fail(nil)
    try eventually("it takes records again") { try other.show("t").storage.state == .working }
    info = try other.show("t")
    #expect(info.publications.isEmpty && info.summary.publications == 0 && info.storage.since == 0)
    snapshot = await setting.broker.snapshot()
    #expect(snapshot.storage?.waiting == 0 && snapshot.storage?.message.isEmpty == true)
  }

  @Test func aDiskThatFailsIsShownAsThat() throws {
    let setting = try DurableSetting()
    let (publisher, other) = (try setting.client(), try setting.client())
    try publisher.create("t", Self.durable())
    try publisher.openPublication("t", stream: 1)
    setting.store.fail(.failed)
    try publisher.publish(["x"], stream: 1)
    try publisher.receive(until: "the end of the publication") { publisher.publications[1]!.end != nil }
    let info = try other.show("t")
    #expect(info.storage.state == .failing && info.publications.map(\.reason) == [.storageFailed])
    try eventually("the log is told that a publisher waits") {
      setting.events.contains { event in
        if case .waiting(publishers: 1, bytes: 1..., isFull: false, _) = event { true } else { false }
      }
    }
  }

  @Test func theStoreSizeIsShown() async throws {
    let setting = try DurableSetting(limit: 1 << 30)
    let client = try setting.client()
    try client.create("t", Self.durable())
    try client.publishAll(["x"], to: "t")
    try eventually("the size was looked at") { try client.show("t").storage.used == 300 }
    let snapshot = try #require(await setting.broker.snapshot().storage)
    #expect(snapshot.fileBytes == 400 && snapshot.limit == 1 << 30 && snapshot.availableBytes == 5)
  }

  // MARK: Changes

  @Test func changedSettingsAndTrimsOutliveTheBroker() throws {
    let setting = try DurableSetting()
    var client = try setting.client()
    try client.create("t", Self.durable())
    try client.publishAll((0..<50).map { "\($0)" }, to: "t")
    try client.send(TopicSet(topic: "t", settings: TopicSettings(replayAge: 3_600_000)), stream: 1)
    #expect(try client.answer(TopicInfo.self, stream: 1).settings.replayAge == 3_600_000)
    // Trim in the middle of a batch.
    try client.send(TopicTrim(topic: "t", .from(17)), stream: 1)
    #expect(try client.answer(TopicInfo.self, stream: 1).summary.firstOffset == 17)
    for cutOff in [false, true] {
      try setting.restart(cutOff: cutOff)
      client = try setting.client()
      let info = try client.show("t")
      #expect(info.settings.replayAge == 3_600_000 && info.isStated)
      #expect(info.summary.firstOffset == 17 && info.summary.records == 33)
      try client.subscribe("t", stream: 3)
      try client.receiveRecords(33, stream: 3)
      #expect(client.subscriptions[3]!.texts == (17..<50).map { "\($0)" })
    }
  }

  @Test func aTrimmedTopicGivesItsSpaceBack() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    try client.create("t", Self.durable())
    for _ in 0..<20 { try publishAtOnce(256, to: "t", setting) }
    #expect(try client.show("t").summary.bytes > 5 << 20)
    try client.send(TopicTrim(topic: "t", .newest(0)), stream: 1)
    #expect(try client.answer(TopicInfo.self, stream: 1).summary.records == 0)
    try eventually("all batches are gone", every: 0.05) { try client.show("t").summary.bytes == 0 }
    try client.publishAll(["next"], to: "t")
    try client.subscribe("t", stream: 3)
    try client.receiveRecords(1, stream: 3)
    #expect(client.subscriptions[3]!.texts == ["next"])
  }

  @Test func aSmallerLimitOfRecordsGivesSpaceBackWithoutAPublication() throws {
    let setting = try DurableSetting()
    let client = try setting.client()
    try client.create("t", Self.durable())
    for _ in 0..<40 { try publishAtOnce(16, to: "t", setting) }
    try client.send(TopicSet(topic: "t", settings: TopicSettings(replayRecords: 16)), stream: 1)
    #expect(try client.answer(TopicInfo.self, stream: 1).summary.records == 16)
    try eventually("other batches are gone", every: 0.05) { try client.show("t").summary.bytes < 64 << 10 }
  }
}
