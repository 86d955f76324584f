import ReactiveCore
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// Topics that lose their producers, in simulated time.
@Suite struct ProducerLossTests {
  private let stage: Stage
  private let others: Client

  init() throws {
    stage = try Stage()
    others = try stage.persistentClient("others")
  }

  private func settings(_ scope: TopicSettings.Scope = .forever) -> TopicSettings {
    var settings = TopicSettings()
    settings.scope = scope
    settings.whenProducerLost = .fail(after: 10_000)
    return settings
  }

  private func shown() throws -> TopicInfo {
    try stage.wait { others.topicInfo("t", completion: $0) }
  }

  private func subscribe() -> Recorder<TopicEvent<TopicRecord>> {
    let recorder = Recorder<TopicEvent<TopicRecord>>()
    others.topic("t").events(including: .producers).subscribe(recorder)
    stage.world.run(for: .seconds(1))
    return recorder
  }

  /// A program that doesn't request producer events gets none, and they use no demand.
  @Test func otherEventsAreAsBefore() throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>(initial: .max(3))
    others.topic("t").events.subscribe(recorder)
    for round in 0..<3 {
      let client = try stage.client("producer \(round)")
      let subject = client.subject("t")
      subject.send(Message("\(round)"))
      stage.world.run(for: .seconds(1))
      client.close()
      stage.world.run(for: .seconds(1))
      _ = subject
    }
    #expect(recorder.history == [.subscription, .live, .value("0"), .value("1")])
  }

  /// Like every value, the event waits for demand and uses it.
  @Test func theEventTakesDemand() throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>(initial: .max(2))
    others.topic("t").events(including: .producers).subscribe(recorder)
    stage.world.run(for: .seconds(1))
    #expect(recorder.history.count == 3)
    #expect(recorder.history.contains(.producers(0)) && recorder.history.contains(.live))
    let client = try stage.client("producer")
    let subject = client.subject("t")
    subject.send("a")
    stage.world.run(for: .seconds(1))
    #expect(recorder.history.count == 3)
    recorder.subscription?.request(.max(2))
    stage.world.run(for: .seconds(1))
    #expect(Set(recorder.history.suffix(2).map(\.description)) == ["1 producers", "a"])
    _ = subject
  }

  @Test func aTopicFailsWhenItsLastProducerHasBeenGoneForTheTimeSet() throws {
    let (first, second) = (try stage.client("one"), try stage.client("two"))
    let (one, two) = (first.subject("t", settings: settings()), second.subject("t"))
    one.send("a")
    stage.world.run(for: .seconds(1))
    let recorder = subscribe()
    #expect(recorder.history == [.subscription, .value("a"), .live])
    first.close()
    stage.world.run(for: .seconds(60))
    // Another producer is still attached.
    #expect(recorder.history.last == .producers(1))
    second.close()
    stage.world.run(for: .seconds(9))
    #expect(recorder.history.last == .producers(0))
    let waiting = try shown()
    #expect((8_000...9_500).contains(waiting.withoutProducers))
    #expect(waiting.summary.ending == nil)
    stage.world.run(for: .seconds(2))
    #expect(recorder.history.last == .failure(.producerLost))
    #expect(try shown().withoutProducers == 0)
    guard case .failure(let code, _)? = try shown().summary.ending else {
      Issue.record("the topic hasn't failed")
      return
    }
    #expect(code == .producerLost)
    _ = (one, two)
  }

  @Test func aProducerThatReturnsInTimeIsHeardOf() throws {
    for round in 0..<3 {
      let client = try stage.client("producer \(round)")
      let subject = client.subject("t", settings: settings())
      subject.send(Message("\(round)"))
      stage.world.run(for: .seconds(1))
      client.close()
      stage.world.run(for: .seconds(8))
      _ = subject
    }
    let recorder = subscribe()
    #expect(recorder.values == ["0", "1", "2"])
    #expect(recorder.history.contains(.producers(0)))
    #expect(recorder.completion == nil)
    stage.world.run(for: .seconds(60))
    #expect(recorder.completion == .failure(.producerLost))
  }

  @Test func aProducerThatReconnectsIsNotLost() throws {
    let producer = try stage.persistentClient("producer")
    let subject = producer.subject("t", settings: settings())
    subject.send("a")
    stage.world.run(for: .seconds(1))
    let recorder = subscribe()
    for _ in 0..<5 {
      for connection in stage.world.network.connections where !connection.isOver { connection.reset() }
      stage.world.run(for: .seconds(12))
    }
    #expect(recorder.completion == nil)
    #expect(try shown().withoutProducers == 0)
  }

  @Test func topicsThatWaitDontFailAndTopicsWithoutAProducerYetHaveLostNone() throws {
    let info = try stage.wait { others.createTopic("t", settings: settings(), completion: $0) }
    #expect(info.withoutProducers == 0)
    let recorder = subscribe()
    #expect(
      recorder.history == [.subscription, .producers(0), .live]
        || recorder.history == [.subscription, .live, .producers(0)])
    stage.world.run(for: .seconds(100))
    #expect(recorder.completion == nil)
    let client = try stage.client("producer")
    let subject = client.subject("patient")
    stage.world.run(for: .seconds(1))
    client.close()
    stage.world.run(for: .seconds(1_000))
    let patient = try stage.wait { others.topicInfo("patient", completion: $0) }
    #expect(patient.summary.ending == nil && patient.withoutProducers > 900_000)
    _ = subject
  }

  @Test func aProducerThatHasEndedItsTopicIsntMissed() throws {
    let client = try stage.client("producer")
    let subject = client.subject("t", settings: settings(.whileConnected))
    let recorder = subscribe()
    subject.send("a")
    try stage.wait { subject.complete(.finished, completion: $0) }
    client.close()
    stage.world.run(for: .seconds(100))
    #expect(recorder.completion == .finished)
    #expect(try shown().withoutProducers == 0)
  }

  /// The wait applies to each epoch of a topic that restarts. Without subscribers there is nothing to wait for.
  @Test func laterSubscribersOfATopicThatStartsOverAreToldAsWell() throws {
    let client = try stage.client("producer")
    let subject = client.subject("t", settings: settings(.whileConnected))
    let recorder = subscribe()
    subject.send("a")
    stage.world.run(for: .seconds(1))
    client.close()
    stage.world.run(for: .seconds(20))
    #expect(recorder.completion == .failure(.producerLost))
    let epoch = try shown().summary.epoch
    stage.world.run(for: .seconds(1_000))
    #expect(try shown().summary.epoch == epoch)
    let late = subscribe()
    stage.world.run(for: .seconds(5))
    #expect(late.completion == nil)
    stage.world.run(for: .seconds(10))
    #expect(late.completion == .failure(.producerLost))
    _ = subject
  }
}
