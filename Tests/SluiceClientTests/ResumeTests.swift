import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// Frames after a lost connection, and the events of subscribers.
@Suite struct ResumeTests {
  private let broker: ScriptedBroker
  private let client: Client

  init() throws {
    broker = try ScriptedBroker()
    client = try broker.client { $0.reconnect = ReconnectPolicy() }
  }

  private func subscribed(from offset: UInt64, stream: UInt32 = 1, epoch: UInt64 = 1) {
    broker.send(Subscribed(epoch: epoch, nextOffset: offset, liveOffset: offset), stream)
    broker.settle()
  }

  // MARK: Where

  @Test func aSubscriptionGoesOnBehindWhatItHasReceived() throws {
    let recorder = Recorder<TopicRecord>()
    try broker.subscribe(recorder, to: client.topic("t"))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b"]))
    broker.settle()
    broker.breakOff()
    let frame: Subscribe = try broker.takeOnly()
    #expect(
      frame == Subscribe(topic: "t", start: .offset(2), lag: nil, epoch: 1, grantedThrough: Credit.unlimited))
    subscribed(from: 2)
    broker.send(deliver(stream: 1, firstOffset: 2, ["c"]))
    broker.settle()
    #expect(recorder.history == [.subscription, .value("a"), .value("b"), .value("c")])
  }

  @Test(arguments: [
    SubscriptionPlan.Start.replay, .new, .last(3), .offset(7), .time(Timestamp(millisecondsSince1970: 5)),
  ])
  func theStartIsKeptUntilItIsKnownWhereThatIs(start: SubscriptionPlan.Start) throws {
    let recorder = Recorder<TopicRecord>()
    client.topic("t", from: start).subscribe(recorder)
    let asked: Subscribe = try broker.takeOnly()
    broker.breakOff()
    #expect(try broker.takeOnly(Subscribe.self) == asked)
    #expect(asked.start == Subscribe.Start(start))
    // From here on the position is known, although no record has arrived.
    subscribed(from: 7)
    broker.breakOff()
    // An offset start may be beyond the topic's end, so it doesn't fix the epoch.
    let epoch: UInt64 = start == .offset(7) ? 0 : 1
    #expect(
      try broker.takeOnly(Subscribe.self)
        == Subscribe(topic: "t", start: .offset(7), lag: nil, epoch: epoch, grantedThrough: Credit.unlimited))
  }

  @Test func aGapIsToldEvenIfTheConnectionIsLostBeforeItIs() throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>()
    client.topic("t", from: .offset(3)).events.subscribe(recorder)
    _ = broker.takeReceived()
    subscribed(from: 9)
    broker.breakOff()
    #expect(try broker.takeOnly(Subscribe.self).start == .offset(3))
    subscribed(from: 9)
    broker.send(Lag(missed: 6, nextOffset: 9), 1)
    broker.settle()
    broker.breakOff()
    #expect(try broker.takeOnly(Subscribe.self).start == .offset(9))
    // Also after another loss.
    subscribed(from: 12)
    broker.breakOff()
    #expect(try broker.takeOnly(Subscribe.self).start == .offset(9))
    subscribed(from: 12)
    broker.send(Lag(missed: 3, nextOffset: 12), 1)
    broker.settle()
    #expect(recorder.history == [.subscription, .lagged(6), .lagged(3)])
  }

  @Test func liveIsToldOnce() throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>()
    client.topic("t").events.subscribe(recorder)
    _ = broker.takeReceived()
    subscribed(from: 0)
    broker.send(Live(nextOffset: 0), 1)
    broker.settle()
    broker.breakOff()
    _ = broker.takeReceived()
    subscribed(from: 0)
    broker.send(Live(nextOffset: 0), 1)
    broker.send(deliver(stream: 1, firstOffset: 0, ["a"]))
    broker.settle()
    #expect(recorder.history == [.subscription, .live, .value("a")])
  }

  @Test func aBrokerThatGoesOnElsewhereBreaksTheProtocol() throws {
    let recorder = Recorder<TopicRecord>()
    try broker.subscribe(recorder, to: client.topic("t"), from: 5)
    broker.breakOff()
    _ = broker.takeReceived()
    subscribed(from: 4)
    #expect(client.failure?.code == .protocolViolation)
    #expect(recorder.completion == .failure(.protocolViolation))
  }

  // MARK: How much

  @Test func whatIsLeftOfTheDemandIsAskedFor() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(5))
    try broker.subscribe(recorder, to: client.topic("t"))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b", "c"]))
    broker.settle()
    broker.breakOff()
    #expect(try broker.takeOnly(Subscribe.self).grantedThrough == 2)
    subscribed(from: 3)
    recorder.subscription?.request(.max(10))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 12)
    broker.send(deliver(stream: 1, firstOffset: 3, (3..<15).map { "\($0)" }))
    broker.settle()
    #expect(recorder.values.count == 15)
    #expect(client.failure == nil)
    broker.breakOff()
    #expect(try broker.takeOnly(Subscribe.self).grantedThrough == 0)
  }

  @Test func demandOfAnOutageIsAskedForAfterIt() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    try broker.subscribe(recorder, to: client.topic("t"))
    broker.world.network.connections[0].reset()
    broker.settle()
    recorder.subscription?.request(.max(3))
    broker.settle()
    recorder.subscription?.request(.max(3))
    broker.world.run(for: .seconds(1))
    #expect(try broker.takeOnly(Subscribe.self).grantedThrough == 7)
  }

  @Test func whatWaitsInTheClientIsNeitherLostNorAskedForAgain() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    try broker.subscribe(recorder, to: client.topic("t", prefetch: .keepFull(4)))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b", "c", "d"]))
    broker.settle()
    broker.world.network.connections[0].reset()
    broker.settle()
    #expect(recorder.values == ["a"])
    // It is delivered during the outage.
    recorder.subscription?.request(.max(1))
    broker.settle()
    #expect(recorder.values == ["a", "b"])
    broker.world.run(for: .seconds(1))
    let frame: Subscribe = try broker.takeOnly()
    #expect(frame.start == .offset(4))
    // Two records wait here, and the prefetch is four.
    #expect(frame.grantedThrough == 2)
    subscribed(from: 4)
    broker.send(deliver(stream: 1, firstOffset: 4, ["e", "f"]))
    broker.settle()
    recorder.subscription?.request(.unlimited)
    broker.settle()
    #expect(recorder.values == ["a", "b", "c", "d", "e", "f"])
  }

  @Test func aCompletionWaitsForWhatWasReceivedBefore() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    try broker.subscribe(recorder, to: client.topic("t", prefetch: .keepFull(4)))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b"]))
    broker.settle()
    broker.breakOff()
    _ = broker.takeReceived()
    subscribed(from: 2)
    broker.send(Complete(.finished), 1)
    broker.settle()
    #expect(recorder.history == [.subscription, .value("a")])
    recorder.subscription?.request(.max(1))
    broker.settle()
    #expect(recorder.history == [.subscription, .value("a"), .value("b"), .finished])
  }

  // MARK: Another life

  @Test func anotherLifeEndsWhoWantsNoGaps() throws {
    let recorder = Recorder<TopicRecord>()
    try broker.subscribe(recorder, to: client.topic("t", lag: .fail))
    broker.breakOff()
    _ = broker.takeReceived()
    broker.send(Fault(code: .epochChanged, message: "anew"), 1)
    broker.settle()
    #expect(recorder.history == [.subscription, .failure(.epochChanged)])
    #expect(client.failure == nil)
  }

  @Test func anotherLifeIsToldToWhoSkips() throws {
    let recorder = Recorder<TopicEvent<TopicRecord>>()
    client.topic("t", from: .new).events.subscribe(recorder)
    _ = broker.takeReceived()
    subscribed(from: 40)
    broker.send(deliver(stream: 1, firstOffset: 40, ["a"]))
    broker.settle()
    broker.breakOff()
    _ = broker.takeReceived()
    broker.send(Fault(code: .epochChanged, message: "anew"), 1)
    let frame: Subscribe = try broker.takeOnly()
    #expect(frame == Subscribe(topic: "t", start: .earliest, lag: nil, grantedThrough: Credit.unlimited))
    subscribed(from: 0, epoch: 2)
    broker.send(deliver(stream: 1, firstOffset: 0, ["b"]))
    broker.settle()
    #expect(recorder.history == [.subscription, .value("a"), .restarted(0), .value("b")])
    broker.breakOff()
    #expect(
      try broker.takeOnly(Subscribe.self)
        == Subscribe(topic: "t", start: .offset(1), lag: nil, epoch: 2, grantedThrough: Credit.unlimited))
  }

  // MARK: Cancelling

  @Test func whoCancelsDuringAnOutageIsForgotten() throws {
    let (first, second) = (Recorder<TopicRecord>(), Recorder<TopicRecord>())
    try broker.subscribe(first, to: client.topic("a"))
    try broker.subscribe(second, to: client.topic("b"), stream: 2)
    broker.world.network.connections[0].reset()
    broker.settle()
    first.subscription?.cancel()
    broker.world.run(for: .seconds(1))
    #expect(try broker.takeOnly(Subscribe.self).topic == "b")
    #expect(first.history == [.subscription])
  }

  @Test func whoSubscribesDuringAnOutageIsServedAfterIt() throws {
    broker.world.network.connections[0].reset()
    broker.settle()
    let recorder = Recorder<TopicRecord>()
    client.topic("t").subscribe(recorder)
    broker.world.run(for: .seconds(1))
    #expect(try broker.takeOnly(Subscribe.self).topic == "t")
    #expect(recorder.history == [.subscription])
  }

  // MARK: Departures

  @Test func aDepartureIsFollowedByAnotherConnection() throws {
    let recorder = Recorder<TopicRecord>()
    try broker.subscribe(recorder, to: client.topic("t"))
    broker.send(GoAway(code: .shuttingDown, message: "stopping"), 0)
    broker.settle()
    let late = Recorder<TopicRecord>()
    client.topic("late").subscribe(late)
    let subject = client.subject("p")
    subject.send("x")
    broker.send(deliver(stream: 1, firstOffset: 0, ["a"]))
    #expect(broker.takeReceived().isEmpty)
    broker.close()
    broker.world.run(for: .seconds(1))
    let frames = broker.takeReceived()
    #expect(frames.map(\.type) == [.subscribe, .publishOpen, .subscribe])
    #expect(try frames[0].decode(Subscribe.self).topic == "late")
    #expect(try frames[2].decode(Subscribe.self).start == .offset(1))
    #expect(recorder.values == ["a"])
  }

  @Test func whatADepartingBrokerRefusesWaits() throws {
    let recorder = Recorder<TopicRecord>()
    client.topic("t").subscribe(recorder)
    let _: Subscribe = try broker.takeOnly()
    broker.send(Fault(code: .shuttingDown, message: "stopping"), 1)
    broker.send(GoAway(code: .shuttingDown, message: "stopping"), 0)
    broker.settle()
    #expect(recorder.history == [.subscription])
    broker.close()
    broker.world.run(for: .seconds(1))
    #expect(try broker.takeOnly(Subscribe.self).topic == "t")
  }

  // MARK: Requests

  private func show() -> Box<Result<TopicInfo, ClientError>?> {
    let box = Box<Result<TopicInfo, ClientError>?>(nil)
    client.topicInfo("t") {
      #expect(box.value == nil)
      box.value = $0
    }
    return box
  }

  private func code<Value>(_ box: Box<Result<Value, ClientError>?>) -> ClientError.Code? {
    if case .failure(let error) = box.value { error.code } else { nil }
  }

  private static let info = TopicInfo(
    summary: TopicSummary(
      topic: "t", epoch: 1, firstOffset: 0, nextOffset: 0, bytes: 0, ending: nil, subscriptions: 0,
      publications: 0), settings: TopicSettings(), subscriptions: [], publications: [])

  @Test func aRequestWhoseAnswerIsLostIsAskedAgain() throws {
    let answer = show()
    let _: TopicShow = try broker.takeOnly()
    broker.breakOff()
    let _: TopicShow = try broker.takeOnly()
    broker.send(Self.info, 1)
    broker.settle()
    #expect(try answer.value?.get().summary.topic == "t")
  }

  @Test func aDeletionWhoseAnswerIsLostIsNot() throws {
    let result = Box<Result<Void, ClientError>?>(nil)
    client.deleteTopic("t") { result.value = $0 }
    let _: TopicDelete = try broker.takeOnly()
    broker.breakOff()
    #expect(broker.takeReceived().isEmpty)
    #expect(code(result) == .cutOff)
    // A request that wasn't sent yet waits.
    broker.world.network.connections.last?.reset()
    broker.settle()
    client.deleteTopic("u") { result.value = $0 }
    broker.world.run(for: .seconds(1))
    let _: TopicDelete = try broker.takeOnly()
  }

  @Test func aRequestHasItsTime() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client {
      $0.reconnect = ReconnectPolicy()
      $0.requestTimeout = .milliseconds(500)
    }
    let (asked, waiting) = (Box<Result<Duration, ClientError>?>(nil), Box<Result<Void, ClientError>?>(nil))
    broker.answersPings = false
    client.ping { asked.value = $0 }
    broker.settle()
    broker.world.network.cut(broker.address)
    broker.world.network.connections[0].reset()
    broker.settle()
    client.deleteTopic("t") { waiting.value = $0 }
    broker.world.run(for: .milliseconds(480))
    #expect(waiting.value == nil)
    broker.world.run(for: .milliseconds(100))
    #expect(code(asked) == .requestTimeout)
    #expect(code(waiting) == .requestTimeout)
    broker.world.network.heal(broker.address)
    broker.world.run(for: .seconds(20))
    #expect(!broker.takeReceived().contains { $0.type == .topicDelete })
    #expect(client.failure == nil)
  }

  // MARK: The client's state

  @Test func theStateIsTold() throws {
    let states = Box<[String]>([])
    let watch = client.connectionState.sink { _ in
      states.value.append("end")
    } receiveValue: { state in
      switch state {
      case .connecting(_, let attempt): states.value.append("connecting \(attempt)")
      case .connected: states.value.append("connected")
      case .waiting(_, let attempt, let cause): states.value.append("waiting \(attempt): \(cause.code)")
      case .closed(let cause): states.value.append("closed: \(cause.code)")
      }
    }
    broker.breakOff()
    client.close()
    broker.settle()
    #expect(
      states.value == [
        "connected", "waiting 1: cut-off", "connecting 1", "connected", "closed: closed", "end",
      ])
    _ = watch
  }

  @Test func givingUpEndsEverything() throws {
    let broker = try ScriptedBroker()
    let client = try broker.client {
      $0.reconnect = ReconnectPolicy()
      $0.reconnect?.giveUpAfter = .seconds(5)
      $0.connectTimeout = .seconds(1)
    }
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    try broker.subscribe(recorder, to: client.topic("t", prefetch: .keepFull(9)))
    let subject = client.subject("t")
    try broker.open(9, stream: 2)
    let (published, shown) = (Box<ClientError.Code?>(nil), Box<ClientError.Code?>(nil))
    subject.publish("a") { if case .failure(let error) = $0 { published.value = error.code } }
    client.topicInfo("t") { if case .failure(let error) = $0 { shown.value = error.code } }
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b"]))
    broker.settle()
    broker.world.network.cut(broker.address)
    broker.world.network.connections[0].reset()
    broker.world.run(for: .seconds(4))
    #expect(client.failure == nil)
    broker.world.run(for: .seconds(4))
    #expect(client.failure?.code == .gaveUp)
    #expect(published.value == .gaveUp)
    #expect(shown.value == .gaveUp)
    // Received values are still delivered, and then the failure.
    #expect(recorder.history == [.subscription, .value("a")])
    recorder.subscription?.request(.max(1))
    broker.settle()
    #expect(recorder.history == [.subscription, .value("a"), .value("b"), .failure(.gaveUp)])
  }

  @Test func closingWhileItWaitsEndsEverything() throws {
    let recorder = Recorder<TopicRecord>()
    try broker.subscribe(recorder, to: client.topic("t"))
    broker.world.network.connections[0].reset()
    broker.settle()
    client.close()
    broker.world.run(for: .seconds(5))
    #expect(recorder.history == [.subscription, .failure(.closed)])
    #expect(broker.accepted == 1)
  }
}
