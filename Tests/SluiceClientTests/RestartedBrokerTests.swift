import ReactiveCore
import SluiceSimulation
import Testing

@testable import SluiceClient

/// Events of subscribers whose broker was restarted and has lost its topics in memory, and how programs continue.
@Suite struct RestartedBrokerTests {
  private let stage: Stage
  private let client: Client
  private let notices = Box<[TopicNotice]>([])
  private let watch: AnyCancellable

  init() throws {
    stage = try Stage()
    client = try stage.persistentClient()
    watch = client.notices.sink { [notices] in notices.value.append($0) }
  }

  private func publish(_ texts: String...) throws {
    try stage.publish(texts.map { Message($0) }, to: "t", with: client)
    stage.world.run(for: .seconds(1))
  }

  /// Restarts the broker, and lets a producer continue.
  private func restart() throws {
    stage.crash()
    stage.world.run(for: .seconds(1))
    try stage.restart()
    stage.world.run(for: .seconds(1))
    try publish("c")
  }

  private static let restarted = TopicNotice(topic: "t", change: .restarted(nextOffset: 0))

  @Test(arguments: [SubscriptionPlan.Start.replay, .new, .last(5)])
  func aPlainSubscriberGoesOnAndTheProgramIsTold(start: SubscriptionPlan.Start) throws {
    let recorder = Recorder<TopicRecord>()
    client.topic("t", from: start).subscribe(recorder)
    stage.world.run(for: .seconds(1))
    try publish("a", "b")
    try restart()
    #expect(recorder.history == [.subscription, .value("a"), .value("b"), .value("c")])
    #expect(notices.value == [Self.restarted])
    #expect(notices.value.first?.description.contains("topic t was recreated") == true)
  }

  @Test(arguments: [SubscriptionPlan.Start.earliest, .offset(0), .time(Timestamp(millisecondsSince1970: 0))])
  func aPlainSubscriberFromAPositionEnds(start: SubscriptionPlan.Start) throws {
    let recorder = Recorder<TopicRecord>()
    client.topic("t", from: start).subscribe(recorder)
    try publish("a", "b")
    try restart()
    #expect(recorder.history == [.subscription, .value("a"), .value("b"), .failure(.epochChanged)])
    // As `retry` would do.
    let again = Recorder<TopicRecord>()
    client.topic("t", from: start).subscribe(again)
    stage.world.run(for: .seconds(1))
    #expect(again.values == ["c"])
  }

  @Test func oneThatHasGotNothingGoesOn() throws {
    let recorder = Recorder<TopicRecord>()
    client.topic("t", from: .earliest).subscribe(recorder)
    stage.world.run(for: .seconds(1))
    try restart()
    #expect(recorder.history == [.subscription, .value("c")])
    #expect(notices.value == [Self.restarted])
  }

  @Test func oneThatSkipsGoesOnFromAnywhere() throws {
    let recorder = Recorder<TopicRecord>()
    client.topic("t", from: .earliest, lag: .skip).subscribe(recorder)
    try publish("a")
    try restart()
    #expect(recorder.history == [.subscription, .value("a"), .value("c")])
    #expect(notices.value == [Self.restarted])
  }

  @Test func aSubscriberOfEventsIsToldBetweenTheRecords() throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>()
    client.topic("t", from: .earliest).events.subscribe(recorder)
    stage.world.run(for: .seconds(1))
    try publish("a")
    try restart()
    #expect(recorder.history == [.subscription, .live, .value("a"), .restarted(0), .value("c")])
    #expect(notices.value == [Self.restarted])
  }

  @Test func aPatternGoesOnAndTheProgramIsTold() throws {
    try publish("a")
    let recorder = Recorder<TopicRecord>()
    client.topics(matching: "*", from: .earliest).subscribe(recorder)
    stage.world.run(for: .seconds(1))
    // The topic exists again before the client resubscribes.
    stage.crash()
    try stage.restart()
    let other = try stage.client("other")
    try stage.publish([Message("c")], to: "t", with: other)
    stage.world.run(for: .seconds(2))
    #expect(recorder.values == ["a", "c"] && recorder.completion == nil)
    #expect(notices.value == [Self.restarted])
  }

  @Test func aLagIsToldToo() throws {
    let settings = TopicSettings(replayRecords: 2)
    let subject = client.subject("l", settings: settings)
    for number in 0..<9 { subject.send(Message("\(number)")) }
    try stage.wait(subject.flush(completion:))
    let recorder = Recorder<TopicRecord>()
    client.topic("l", from: .offset(0)).subscribe(recorder)
    stage.world.run(for: .seconds(1))
    #expect(recorder.values == ["7", "8"])
    #expect(notices.value == [TopicNotice(topic: "l", change: .lagged(missed: 7, nextOffset: 7))])
  }

  @Test func noticesFinishWithTheClient() throws {
    let isFinished = Box(false)
    let watch = client.notices.sink { _ in
      isFinished.value = true
    } receiveValue: { _ in
    }
    client.close()
    stage.world.run(for: .seconds(1))
    #expect(isFinished.value)
    _ = watch
  }
}
