import ReactiveCore
import SluiceBroker
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// `client.topics(matching:)` with a broker.
@Suite struct PatternTests {
  /// Records a subscriber's values with the names of their topics.
  private func record(_ recorder: Recorder<String>, _ topics: RemoteTopic<TopicRecord>) {
    topics.map { "\($0.topic)@\($0.offset)=\($0.string)" }.subscribe(recorder)
  }

  @Test func recordsOfAllTopicsWithTheirNames() throws {
    let stage = try Stage()
    let client = try stage.client()
    try stage.publish(["1", "2"], to: "a.x", with: client)
    let recorder = Recorder<String>()
    record(recorder, client.topics(matching: "a.*"))
    stage.world.run(for: .seconds(1))
    try stage.publish(["3"], to: "a.y", with: client)
    try stage.publish(["4"], to: "b.y", with: client)
    try stage.publish(["5"], to: "a.x", with: client)
    stage.world.run(for: .seconds(1))
    #expect(recorder.values == ["a.x@0=1", "a.x@1=2", "a.y@0=3", "a.x@2=5"])
    recorder.subscription?.cancel()
    stage.world.run(for: .seconds(1))
    #expect(try stage.subscriptions("a.x", client) == 0)
  }

  @Test func whatHappensToTopicsIsAnEvent() throws {
    let stage = try Stage()
    let client = try stage.client()
    let recorder = Recorder<TopicEvent<TopicRecord>>()
    client.topics(matching: ">").events.subscribe(recorder)
    stage.world.run(for: .seconds(1))
    #expect(recorder.history == [.subscription, .live])
    let subject = client.subject("t")
    subject.send("1")
    stage.world.run(for: .seconds(1))
    subject.send(completion: .failure(.topicFailure("no more")))
    stage.world.run(for: .seconds(1))
    let failure = recorder.history.compactMap { heard -> ClientError? in
      if case .topic("t", .failed(let error)) = heard { error } else { nil }
    }
    #expect(failure.map(\.message) == ["no more"])
    let _ = try stage.wait { client.deleteTopic("t", completion: $0) }
    stage.world.run(for: .seconds(1))
    try stage.publish(["2"], to: "t", with: client)
    stage.world.run(for: .seconds(1))
    let others = recorder.history.filter {
      switch $0 {
      case .topic(_, .failed), .topic(_, .live): false
      default: true
      }
    }
    #expect(
      others == [
        .subscription, .live, .topic("t", .matched(nextOffset: 0)), .value("1"), .topic("t", .deleted),
        .topic("t", .matched(nextOffset: 0)), .value("2"),
      ])
  }

  @Test func demandIsExactAndSharedFairly() throws {
    let stage = try Stage()
    let client = try stage.client()
    try stage.publish((0..<50).map { Message("\($0)") }, to: "t.a", with: client)
    try stage.publish(["x", "y"], to: "t.b", with: client)
    let recorder = Recorder<TopicRecord>(initial: .none)
    client.topics(matching: "t.*").subscribe(recorder)
    stage.world.run(for: .seconds(1))
    #expect(recorder.values == [])
    for round in 1...4 {
      recorder.subscription?.request(.max(1))
      stage.world.run(for: .seconds(1))
      #expect(recorder.values.count == round)
    }
    #expect(Set(recorder.values) == ["0", "1", "x", "y"])
    recorder.answer = { _, _ in .max(1) }
    recorder.subscription?.request(.max(1))
    stage.world.run(for: .seconds(1))
    #expect(recorder.values.count == 52)
  }

  @Test func aLostConnectionIsAPause() throws {
    let stage = try Stage()
    let producer = try stage.client("producer")
    let client = try stage.persistentClient()
    try stage.publish(["1"], to: "t.a", with: producer)
    try stage.publish(["2"], to: "t.b", with: producer)
    let recorder = Recorder<String>()
    record(recorder, client.topics(matching: "t.*", from: .new, lag: .fail))
    stage.world.run(for: .seconds(1))
    for round in 0..<5 {
      stage.world.network.connections.last { !$0.isOver }?.reset()
      // Publish to a topic that it continues, to one that it doesn't know yet, and to one that doesn't match.
      try stage.publish(["3"], to: "t.a", with: producer)
      try stage.publish(["4"], to: "t.new\(round)", with: producer)
      stage.world.run(for: .seconds(10))
      try stage.publish(["5"], to: "t.b", with: producer)
      stage.world.run(for: .seconds(1))
    }
    var expected: [String] = []
    for round in 0..<5 { expected += ["t.a@\(round + 1)=3", "t.new\(round)@0=4", "t.b@\(round + 1)=5"] }
    #expect(recorder.values.sorted() == expected.sorted())
    #expect(recorder.completion == nil)
  }

  @Test(arguments: [nil, SubscriptionPlan.Lag.skip, .fail])
  func aBrokerThatHasForgottenEverything(lag: SubscriptionPlan.Lag?) throws {
    let stage = try Stage()
    let client = try stage.persistentClient()
    try stage.publish(["1"], to: "t", with: try stage.client("producer"))
    try stage.publish(["1"], to: "gone", with: try stage.client("producer"))
    let recorder = Recorder<TopicEvent<TopicRecord>>()
    client.topics(matching: "*", lag: lag).events.subscribe(recorder)
    stage.world.run(for: .seconds(1))
    stage.crash()
    try stage.restart()
    try stage.publish(["2"], to: "t", with: try stage.client("producer"))
    stage.world.run(for: .seconds(60))
    if lag == .fail {
      #expect(recorder.completion == .failure(.epochChanged))
      return
    }
    #expect(recorder.values == ["1", "1", "2"])
    #expect(recorder.history.contains(.topic("t", .restarted(nextOffset: 0))))
    #expect(recorder.history.contains(.topic("gone", .deleted)))
  }

  @Test(arguments: ["a..b", ">.a", "", "a b"])
  func whatIsNotAPatternIsToldToTheSubscriber(pattern: String) throws {
    let stage = try Stage()
    let recorder = Recorder<TopicRecord>()
    let client = try stage.client()
    client.topics(matching: pattern).subscribe(recorder)
    stage.world.run(for: .seconds(1))
    #expect(recorder.completion == .failure(.invalidTopic))
  }

  @Test func valuesAreDecodedAsOfOneTopic() throws {
    let stage = try Stage()
    let client = try stage.client()
    try stage.publish(["1", "x", "3"], to: "n.a", with: client)
    let numbers = client.topics(matching: "n.*").decoded(decodeFailure: .skip) { record in
      guard let number = Int(record.string) else { throw StageError.noAnswer }
      return number
    }
    let recorder = Recorder<Int>(initial: .max(2))
    numbers.subscribe(recorder)
    stage.world.run(for: .seconds(1))
    #expect(recorder.values == ["1", "3"])
  }
}
