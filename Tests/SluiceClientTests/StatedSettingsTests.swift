import ReactiveCore
import SluiceBroker
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// Settings stated by a topic's users, with a real broker.
@Suite struct StatedSettingsTests {
  private let stage: Stage
  private let client: Client
  private let others: Client

  init() throws {
    stage = try Stage()
    client = try stage.persistentClient("one")
    others = try stage.persistentClient("two")
  }

  private func settle() { stage.world.run(for: .seconds(2)) }

  private func shown(_ topic: String = "t") throws -> TopicInfo {
    try stage.wait { client.topicInfo(topic, completion: $0) }
  }

  @Test func aSubscriptionCreatesTheTopicWithWhatItStates() throws {
    let recorder = Recorder<TopicRecord>()
    client.topic("t", settings: .shared(replay: 2)).subscribe(recorder)
    settle()
    let info = try shown()
    #expect(info.isStated)
    #expect(info.settings.connect == .auto(1) && info.settings.replayRecords == 2)
    #expect(info.settings.flow == .lossless && info.settings.scope == .whileConnected)
    // The broker's defaults apply to the other settings.
    #expect(info.settings.bufferRecords == BrokerConfiguration.standardTopic(in: .memory).bufferRecords)
  }

  /// First a subscriber attaches without a statement, then a producer with one.
  @Test(arguments: [
    TopicSettings.shared, .shared(replay: 2), .shared(replay: 2, scope: .forever), .replayed(3),
    .backPressured, .oneShot,
  ])
  func theFirstStatementAppliesToATopicWithoutRecords(_ settings: TopicSettings) throws {
    let recorder = Recorder<TopicRecord>()
    others.topic("t").subscribe(recorder)
    settle()
    #expect(try !shown().isStated)
    let source = TestSource(count: 20, ending: .finished)
    let publication = source.publish(to: client, topic: "t", settings: settings, when: .connected)
    settle()
    #expect(recorder.values == (0..<20).map { "0.\($0)" })
    #expect(recorder.completion == .finished)
    let info = try shown()
    #expect(info.isStated)
    #expect(settings.difference(from: info.settings) == nil)
    // A later subscriber sees the effect of the settings.
    let late = Recorder<TopicRecord>()
    others.topic("t").subscribe(late)
    settle()
    if settings.scope == .whileConnected {
      #expect(late.values == (0..<20).map { "1.\($0)" })
    } else {
      #expect(late.values == (20 - Int(settings.replayRecords ?? 0)..<20).map { "0.\($0)" })
    }
    _ = publication
  }

  @Test func backPressureBeginsWithTheStatement() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    others.topic("t").subscribe(recorder)
    settle()
    let source = TestSource(count: 100)
    let publication = source.publish(to: client, topic: "t", settings: .backPressured, when: .connected)
    settle()
    #expect(recorder.values == ["0.0"])
    #expect(source.active[0].given <= 2)
    recorder.subscription?.request(.max(1))
    settle()
    #expect(recorder.values == ["0.0", "0.1"])
    #expect(source.active[0].given <= 3)
    _ = publication
  }

  @Test func anotherStatementIsRefusedAndNamesTheDifference() throws {
    let subject = client.subject("t", settings: .backPressured)
    settle()
    let recorder = Recorder<TopicRecord>()
    others.topic("t", settings: .shared).subscribe(recorder)
    settle()
    #expect(recorder.history == [.subscription, .failure(.topicExists)])
    let error = try #require(
      try stage.failure { done in
        others.subject("t", settings: .replayed(5)).publish("a") { done($0) }
      })
    #expect(error.code == .topicExists)
    #expect(error.message.contains("flow free instead of lossless"))
    // Stating the same settings, or some of them, is no conflict.
    var part = TopicSettings()
    part.flow = .lossless
    for settings in [TopicSettings.backPressured, part] {
      let same = Recorder<TopicRecord>()
      others.topic("t", settings: settings).subscribe(same)
      settle()
      #expect(same.completion == nil)
    }
    _ = subject
  }

  @Test func aTopicThatHasHadRecordsKeepsItsSettings() throws {
    try stage.publish(["a", "b"], to: "t", with: client)
    let recorder = Recorder<TopicRecord>()
    others.topic("t", settings: .shared).subscribe(recorder)
    settle()
    #expect(recorder.history == [.subscription, .failure(.topicExists)])
    #expect(try !shown().isStated)
    // A statement that matches the settings makes them the topic's stated settings.
    var agreeing = TopicSettings()
    agreeing.flow = .free
    let other = Recorder<TopicRecord>()
    others.topic("t", settings: agreeing).subscribe(other)
    settle()
    #expect(other.values == ["a", "b"])
    #expect(try shown().isStated)
  }

  @Test func creatingATopicThatOnlyASubscriberHasUsedGivesItItsSettings() throws {
    let recorder = Recorder<TopicRecord>()
    others.topic("t").subscribe(recorder)
    settle()
    let info = try stage.wait { client.createTopic("t", settings: .backPressured, completion: $0) }
    #expect(info.settings.flow == .lossless && info.isStated)
    #expect(
      try stage.failure { client.createTopic("t", settings: .shared, completion: $0) }?.code == .topicExists)
  }

  @Test func aTopicInUseDoesntChangeWhatCannotBeChangedInPlace() throws {
    let recorder = Recorder<TopicRecord>()
    others.topic("t").subscribe(recorder)
    settle()
    var compact = TopicSettings()
    compact.compact = true
    let error = try stage.failure { client.createTopic("t", settings: compact, completion: $0) }
    #expect(error?.code == .topicExists)
    #expect(error?.message.contains("compact on instead of off") == true)
    recorder.subscription?.cancel()
    settle()
    #expect(
      try stage.wait { client.createTopic("t", settings: compact, completion: $0) }.settings.compact == true)
  }

  @Test func aBrokerThatIsStartedAnewIsToldAgain() throws {
    let recorder = Recorder<TopicRecord>()
    others.topic("t", settings: .shared(replay: 2)).subscribe(recorder)
    settle()
    stage.crash()
    try stage.restart()
    stage.world.run(for: .seconds(60))
    let info = try shown()
    #expect(info.isStated && info.settings.replayRecords == 2 && info.settings.connect == .auto(1))
  }

  @Test func producersStartWithTheFirstSubscriberAndNeverStop() throws {
    let source = TestSource(count: 3)
    let publication = source.publish(
      to: client, topic: "t", settings: .shared(replay: 2, scope: .forever), when: .connected)
    settle()
    #expect(source.all.isEmpty)
    for round in 0..<3 {
      let recorder = Recorder<TopicRecord>()
      others.topic("t").subscribe(recorder)
      settle()
      #expect(recorder.values == (round == 0 ? ["0.0", "0.1", "0.2"] : ["0.1", "0.2"]))
      recorder.subscription?.cancel()
      settle()
      #expect(source.all.count == 1 && source.active.count == 1)
    }
    _ = publication
  }

  // MARK: The end of a publication

  @Test func aSourcesPublicationTellsItsEnd() throws {
    for (ending, expected) in [
      (Subscribers.Completion<ClientError>.finished, Heard.finished),
      (.failure(.topicFailure("out of paper")), .failure(.topicFailed)),
    ] {
      let name = "t.\(expected)".replacing(" ", with: "-")
      let source = TestSource(count: 3, ending: ending)
      let publication = source.publish(to: client, topic: name, when: .connected)
      let recorder = Recorder<Never>()
      publication.subscribe(recorder)
      settle()
      #expect(recorder.history == [.subscription, expected])
      let late = Recorder<Never>()
      publication.subscribe(late)
      #expect(late.history == [.subscription, expected])
    }
  }

  @Test func aPublicationThatIsCancelledOrRefusedSaysSo() throws {
    let cancelled = TestSource().publish(to: client, topic: "t", when: .connected)
    let recorder = Recorder<Never>()
    cancelled.subscribe(recorder)
    settle()
    cancelled.cancel()
    #expect(recorder.history == [.subscription, .failure(.cancelled)])
    try stage.publish(["a"], to: "u", with: client)
    let refused = TestSource().publish(to: client, topic: "u", settings: .shared, when: .connected)
    let other = Recorder<Never>()
    refused.subscribe(other)
    settle()
    #expect(other.history == [.subscription, .failure(.topicExists)])
  }

  @Test func aTopicWhoseClientWasReleasedSaysSo() throws {
    let topic = try stage.client("gone").topic("t")
    settle()
    let recorder = Recorder<TopicRecord>()
    topic.subscribe(recorder)
    settle()
    #expect(recorder.history == [.subscription, .failure(.closed)])
    let message = Box("")
    let waiting = topic.sink {
      if case .failure(let error) = $0 { message.value = error.message }
    } receiveValue: { _ in
    }
    settle()
    #expect(message.value.contains("the Client was released"))
    _ = waiting
  }
}
