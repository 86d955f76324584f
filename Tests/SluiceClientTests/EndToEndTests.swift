import ReactiveCore
import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// A client with a real broker, on a simulated network.
@Suite struct EndToEndTests {
  @Test func whatIsPublishedComesOutBeforeDuringAndAfter() throws {
    let stage = try Stage()
    let client = try stage.client()
    let early = Recorder<TopicRecord>()
    client.topic("words").subscribe(early)
    try stage.publish(["a", "b", "c"], to: "words", with: client)
    let late = Recorder<TopicRecord>()
    client.topic("words").subscribe(late)
    let subject = client.subject("words")
    subject.send("d")
    try stage.wait { subject.complete(.finished, completion: $0) }
    #expect(stage.world.run { early.completion != nil && late.completion != nil })
    let all = ["a", "b", "c", "d"].map(Heard.value)
    #expect(early.history == [.subscription] + all + [.finished])
    #expect(late.history == [.subscription] + all + [.finished])
  }

  @Test func recordsCarryWhatWasSent() throws {
    let stage = try Stage()
    let client = try stage.client()
    let before = stage.world.wallClock
    let messages: [Message] = [
      "", "text", Message([0, 255], key: [7]), Message("v", key: ""),
      Message("h", key: "k", headers: [.init("a", "1"), .init("a", [0, 1]), .init("", "")]),
      Message("", headers: [.init("only", "header")]),
    ]
    try stage.publish(messages, to: "t", with: client)
    var records: [TopicRecord] = []
    let recorder = Recorder<TopicRecord> { _, record in
      records.append(record)
      return .none
    }
    client.topic("t").subscribe(recorder)
    #expect(stage.world.run { records.count == messages.count })
    #expect(records.map { Message($0) } == messages)
    #expect(records.map(\.offset) == Array(0..<6))
    #expect(
      records.allSatisfy {
        $0.topic == "t" && (before...stage.world.wallClock).contains($0.time.millisecondsSince1970)
      })
    #expect(records[3].key == [] && records[1].key == nil)
    #expect(records[4].keyString == "k")
    #expect(records[2].withUnsafeBytes { Array($0) } == [0, 255])
    #expect(records.map(\.count) == [0, 4, 2, 1, 1, 0])
  }

  @Test func keptRecordsStayWhatTheyAre() throws {
    let stage = try Stage()
    let client = try stage.client()
    let subject = client.subject("t")
    // Large enough that buffers are reused.
    let texts = (0..<40).map { String(repeating: "\($0 % 10)", count: 20_000) }
    var kept: [TopicRecord] = []
    client.topic("t").subscribe(
      Recorder<TopicRecord> { _, record in
        if record.offset % 5 == 0 { kept.append(record) }
        return .none
      })
    for text in texts {
      subject.send(Message(text))
      try stage.wait(subject.flush(completion:))
    }
    #expect(stage.world.run { kept.count == 8 })
    #expect(kept.map(\.string) == stride(from: 0, to: 40, by: 5).map { texts[$0] })
  }

  @Test(arguments: [
    (SubscriptionPlan.Start.replay, ["b", "c", "d"]), (.earliest, ["b", "c", "d"]), (.new, []),
    (.last(2), ["c", "d"]),
    (.last(9), ["b", "c", "d"]), (.offset(2), ["c", "d"]), (.offset(0), ["b", "c", "d"]), (.offset(4), []),
    (.time(Timestamp(millisecondsSince1970: 0)), ["b", "c", "d"]),
    (.time(Timestamp(millisecondsSince1970: .max)), []),
  ])
  func startPositions(_ start: SubscriptionPlan.Start, _ expected: [String]) throws {
    let stage = try Stage()
    let client = try stage.client()
    let _ = try stage.wait {
      client.createTopic("t", settings: TopicSettings(replayRecords: 3), completion: $0)
    }
    try stage.publish(["a", "b", "c", "d"], to: "t", with: client)
    let recorder = Recorder<TopicRecord>()
    client.topic("t", from: start).subscribe(recorder)
    stage.world.run(for: .seconds(1))
    try stage.publish(["e"], to: "t", with: client)
    stage.world.run(for: .seconds(1))
    #expect(recorder.values == expected + ["e"])
  }

  @Test func eventsTellWhereReplayEndsAndWhatIsMissing() throws {
    let stage = try Stage()
    let client = try stage.client()
    let _ = try stage.wait {
      client.createTopic("t", settings: TopicSettings(replayRecords: 2), completion: $0)
    }
    try stage.publish(["a", "b", "c"], to: "t", with: client)
    let recorder = Recorder<TopicEvent<TopicRecord>>()
    client.topic("t", from: .offset(0)).events.subscribe(recorder)
    stage.world.run(for: .seconds(1))
    try stage.publish(["d"], to: "t", with: client)
    stage.world.run(for: .seconds(1))
    #expect(
      recorder.history == [.subscription, .lagged(1), .value("b"), .value("c"), .live, .value("d")])
  }

  @Test func aSubscriberThatWantsNoGapsFails() throws {
    let stage = try Stage()
    let client = try stage.client()
    let _ = try stage.wait {
      client.createTopic("t", settings: TopicSettings(replayRecords: 2), completion: $0)
    }
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    client.topic("t", lag: .fail).subscribe(recorder)
    // So much that the log has dropped the memory of the kept records.
    for _ in 0..<50 {
      try stage.publish(
        (0..<100).map { _ in Message([UInt8](repeating: 48, count: 1_000)) }, to: "t", with: client)
    }
    recorder.subscription?.request(.unlimited)
    #expect(stage.world.run { recorder.completion != nil })
    #expect(recorder.history.last == .failure(.lagged))
    #expect(recorder.values.count == 1)
  }

  @Test func aSubscriberWithoutDemandHoldsUpNobody() throws {
    let stage = try Stage()
    let client = try stage.client()
    let idle = Recorder<TopicRecord>(initial: .none)
    let slow = Recorder<TopicRecord>(initial: .max(2))
    let quick = Recorder<TopicRecord>()
    for recorder in [idle, slow, quick] { client.topic("t").subscribe(recorder) }
    let messages = (0..<500).map { Message("\($0)") }
    try stage.publish(messages, to: "t", with: client)
    #expect(stage.world.run { quick.values.count == 500 })
    #expect(idle.history == [.subscription])
    #expect(slow.values == ["0", "1"])
    idle.subscription?.request(.max(1))
    #expect(stage.world.run { idle.values == ["0"] })
  }

  // MARK: Publishing

  @Test func receiptsTellTheOffset() throws {
    let stage = try Stage()
    let client = try stage.client()
    let subject = client.subject("t")
    for number in 0..<3 as Range<UInt64> {
      let receipt = try stage.wait { subject.publish("x", completion: $0) }
      #expect(receipt == TopicSubject.Receipt(sequence: number, offset: number))
    }
  }

  @Test func aDemandingUpstreamIsDrawnAtTheBrokersPace() throws {
    let stage = try Stage { $0.limits.producerWindow = 16 }
    let client = try stage.client()
    let recorder = Recorder<TopicRecord>()
    client.topic("t").subscribe(recorder)
    let subject = client.subject("t")
    let texts = (0..<1_000).map { "\($0)" }
    let cancellable = texts.publisher.map { Message($0) }.setFailureType(to: ClientError.self).subscribe(
      subject)
    #expect(stage.world.run { recorder.completion != nil })
    #expect(recorder.values == texts)
    #expect(recorder.completion == .finished)
    _ = cancellable
  }

  /// The subscriber's demand reaches the upstream, and a byte limit smaller than a record doesn't prevent that.
  @Test func aLosslessTopicPassesTheSubscribersDemandToTheUpstream() throws {
    let stage = try Stage()
    let client = try stage.client()
    var settings = TopicSettings(replayRecords: 0)
    settings.flow = .lossless
    settings.bufferRecords = 0
    settings.bufferBytes = 10
    settings.withoutSubscribers = .hold
    _ = try stage.wait { client.createTopic("t", settings: settings, completion: $0) }
    let recorder = Recorder<TopicRecord>(initial: .max(3))
    client.topic("t").subscribe(recorder)
    var drawn = 0
    let upstream = (0..<1_000).publisher.eraseToAnyPublisher()
      .map { number in
        drawn += 1
        return Message("record \(number)")
      }
      .setFailureType(to: ClientError.self).subscribe(client.subject("t"))
    #expect(stage.world.run { recorder.values.count == 3 })
    stage.world.run(for: .seconds(5))
    #expect(recorder.values == ["record 0", "record 1", "record 2"])
    #expect(drawn == 3)
    recorder.subscription?.request(.max(2))
    #expect(stage.world.run { recorder.values.count == 5 })
    stage.world.run(for: .seconds(5))
    #expect(drawn == 5)
    _ = upstream
  }

  @Test func aFailureReachesTheSubscribersAndLaterProducers() throws {
    let stage = try Stage()
    let client = try stage.client()
    let recorder = Recorder<TopicRecord>()
    client.topic("t").subscribe(recorder)
    let (first, second) = (client.subject("t"), client.subject("t"))
    first.send("a")
    try stage.wait { first.complete(.failure(.topicFailure("broken")), completion: $0) }
    #expect(stage.world.run { recorder.completion != nil })
    #expect(recorder.history == [.subscription, .value("a"), .failure(.topicFailed)])
    #expect(try stage.failure { second.publish("b", completion: $0) }?.code == .topicEnded)
    #expect(try stage.failure { client.subject("t").publish("b", completion: $0) }?.code == .topicEnded)
    #expect(client.failure == nil)
  }

  @Test func aRecordAtTheLimitPassesAndOneBeyondIsRefused() throws {
    let stage = try Stage {
      $0.limits.record = 100_000
      $0.limits.frame = 200_000
    }
    let client = try stage.client()
    let subject = client.subject("t")
    let long = Message([UInt8](repeating: 1, count: 100_000))
    _ = try stage.wait { subject.publish(long, completion: $0) }
    let longer = Message([UInt8](repeating: 1, count: 100_001))
    #expect(try stage.failure { subject.publish(longer, completion: $0) }?.code == .recordTooLarge)
    _ = try stage.wait { subject.publish(long, completion: $0) }
    var sizes: [Int] = []
    client.topic("t").subscribe(
      Recorder<TopicRecord> { _, record in
        sizes.append(record.count)
        return .none
      })
    #expect(stage.world.run { sizes == [100_000, 100_000] })
  }

  @Test func withoutAcknowledgementsAFlushStillKnows() throws {
    let stage = try Stage()
    let client = try stage.client()
    let subject = client.subject("t", acknowledgement: .none)
    for number in 0..<100 { subject.send(Message("\(number)")) }
    try stage.wait(subject.flush(completion:))
    #expect(try stage.wait { client.topicInfo("t", completion: $0) }.summary.nextOffset == 100)
  }

  @Test func aDurableAcknowledgementIsRefusedByATopicInMemory() throws {
    let stage = try Stage()
    let client = try stage.client()
    let subject = client.subject("t", acknowledgement: .durable)
    #expect(try stage.failure { subject.publish("a", completion: $0) }?.code == .unsupported)
  }

  // MARK: Requests

  @Test func topicsAreListedPageByPage() throws {
    let stage = try Stage()
    let client = try stage.client()
    let names = (0..<2_100).map { "t.\(10_000 + $0)" }
    for name in names { client.createTopic(name) { _ in } }
    let topics = try stage.wait(client.topics(completion:))
    #expect(topics.map(\.topic) == names)
  }

  @Test func aTopicIsCreatedShownAndDeleted() throws {
    let stage = try Stage()
    let client = try stage.client("billing")
    #expect(try stage.failure { client.topicInfo("t", completion: $0) }?.code == .unknownTopic)
    let settings = TopicSettings(replayRecords: 5)
    let info = try stage.wait { client.createTopic("t", settings: settings, completion: $0) }
    #expect(info.settings.replayRecords == 5)
    let other = TopicSettings(replayRecords: 6)
    #expect(
      try stage.failure { client.createTopic("t", settings: other, completion: $0) }?.code == .topicExists)
    let recorder = Recorder<TopicRecord>(initial: .max(3))
    client.topic("t").subscribe(recorder)
    let subject = client.subject("t")
    subject.send("a")
    try stage.wait(subject.flush(completion:))
    let shown = try stage.wait { client.topicInfo("t", completion: $0) }
    #expect(shown.subscriptions.map(\.granted) == [3])
    #expect(shown.subscriptions.map(\.client) == ["billing"])
    #expect(shown.publications.map(\.received) == [1])
    let changed = try stage.wait { client.setTopic("t", to: TopicSettings(replayRecords: 9), completion: $0) }
    #expect(changed.settings.replayRecords == 9 && changed.summary.records == 1)
    var fixed = TopicSettings()
    fixed.compact = true
    #expect(try stage.failure { client.setTopic("t", to: fixed, completion: $0) }?.code == .invalidSetting)
    #expect(try stage.wait { client.trimTopic("t", before: 1, completion: $0) }.summary.records == 0)
    #expect(try stage.wait { client.trimTopic("t", keepingLast: 0, completion: $0) }.summary.nextOffset == 1)
    #expect(try stage.failure { client.trimTopic("t", before: 2, completion: $0) }?.code == .invalidSetting)
    let connections = try stage.wait { client.connections(completion: $0) }
    let own = try #require(connections.first { $0.client == "billing" })
    #expect(try stage.wait { client.connection(own.connection, completion: $0) }.connection == own.connection)
    #expect(try stage.failure { client.connection(9_999, completion: $0) }?.code == .unknownConnection)
    #expect(try stage.failure { client.connection(0, completion: $0) }?.code == .unknownConnection)
    #expect(try stage.failure { client.closeConnection(9_999, completion: $0) }?.code == .unknownConnection)
    #expect(try stage.wait { client.brokerInfo(completion: $0) }["topics"] == 1)
    try stage.wait { client.deleteTopic("t", completion: $0) }
    #expect(stage.world.run { recorder.completion != nil })
    #expect(recorder.completion == .failure(.topicDeleted))
    #expect(try stage.failure { subject.publish("b", completion: $0) }?.code == .topicDeleted)
    #expect(try stage.failure { client.deleteTopic("t", completion: $0) }?.code == .unknownTopic)
    #expect(try stage.failure { client.topicInfo("not a name", completion: $0) }?.code == .invalidTopic)
  }

  @Test func aPingTakesARoundTrip() throws {
    let stage = try Stage()
    let client = try stage.client()
    // Calm conditions: 100 µs in each direction.
    #expect(try stage.wait(client.ping(completion:)) == .microseconds(200))
  }

  // MARK: The end

  @Test func anOrderlyStopIsToldToEverybody() throws {
    let stage = try Stage()
    let client = try stage.client()
    let recorder = Recorder<TopicRecord>()
    client.topic("t").subscribe(recorder)
    try stage.publish(["a"], to: "t", with: client)
    stage.broker.shutdown()
    #expect(stage.world.run { recorder.completion != nil })
    #expect(recorder.history == [.subscription, .value("a"), .failure(.shuttingDown)])
    #expect(client.failure?.code == .shuttingDown)
  }

  @Test func oneClientsEndIsNotAnothers() throws {
    let stage = try Stage()
    var first: Client? = try stage.client()
    let second = try stage.client()
    let recorder = Recorder<TopicRecord>()
    second.topic("t").subscribe(recorder)
    first!.topic("t").subscribe(Recorder<TopicRecord>())
    stage.world.run(for: .seconds(1))
    #expect(try stage.subscriptions("t", second) == 2)
    first = nil
    stage.world.run(for: .milliseconds(1))
    #expect(try stage.subscriptions("t", second) == 1)
    try stage.publish(["a"], to: "t", with: second)
    #expect(stage.world.run { recorder.values == ["a"] })
  }

  @Test func aVanishedBrokerIsNoticed() throws {
    let stage = try Stage()
    let client = try stage.client { $0.keepalive = .seconds(2) }
    let recorder = Recorder<TopicRecord>()
    client.topic("t").subscribe(recorder)
    stage.world.run(for: .seconds(1))
    stage.world.network.connections[0].cut()
    stage.world.run(for: .seconds(3))
    #expect(recorder.completion == .failure(.keepaliveTimeout))
  }
}
