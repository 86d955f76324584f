import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// Frames of the client, and events of its subscribers and producers, when a stream ends because its topic moves to another node.
@Suite struct MoveTests {
  private let broker: ScriptedBroker

  init() throws {
    broker = try ScriptedBroker()
  }

  private func client(_ configure: (inout ClientOptions) -> Void = { _ in }) throws -> Client {
    try broker.client {
      $0.reconnect = ReconnectPolicy()
      $0.seed = 1
      configure(&$0)
    }
  }

  private func move(_ stream: UInt32) {
    broker.send(Fault(code: .topicMoved, message: "node b serves it"), stream)
  }

  private func subscribed(from offset: UInt64, stream: UInt32 = 1, epoch: UInt64 = 1) {
    broker.send(Subscribed(epoch: epoch, nextOffset: offset, liveOffset: offset), stream)
    broker.settle()
  }

  /// Returns the client's next frame, and the time until it was sent.
  private func next<F: Frame>(_ type: F.Type = F.self) throws -> (frame: F, delay: Duration) {
    let before = broker.world.now
    #expect(broker.world.run(limit: .seconds(60)) { !broker.received.isEmpty })
    let delay = broker.world.now - before
    return (try broker.takeOnly(), delay)
  }

  private func published() throws -> [String] {
    try broker.takeReceived().filter { $0.type == .publish }.map { frame in
      let header = try frame.body.withUnsafeBytes { try PublishHeader.decode($0).header }
      return "\(header.firstSequence): \(frame.payloads.joined(separator: " "))"
    }
  }

  // MARK: Subscriptions

  @Test func aSubscriptionGoesOnAtItsPositionWithTheDemandThatIsLeft() throws {
    let client = try client()
    let recorder = Recorder<TopicEvent<TopicRecord>>(initial: .max(5))
    client.topic("t").events.subscribe(recorder)
    _ = broker.takeReceived()
    subscribed(from: 0)
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b"]))
    broker.settle()
    move(1)
    let frame = try next(Subscribe.self).frame
    #expect(frame == Subscribe(topic: "t", start: .offset(2), lag: nil, epoch: 1, grantedThrough: 3))
    subscribed(from: 2)
    recorder.subscription?.request(.max(1))
    #expect(try broker.takeOnly(Demand.self).grantedThrough == 4)
    broker.send(deliver(stream: 1, firstOffset: 2, ["c", "d", "e", "f"]))
    broker.settle()
    #expect(
      recorder.history == [.subscription] + ["a", "b", "c", "d", "e", "f"].map { .value($0) })
    #expect(broker.accepted == 1 && client.failure == nil)
  }

  @Test func requestsDuringThePauseAreInTheNextGrantOnce() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>(initial: .max(2))
    try broker.subscribe(recorder, to: client.topic("t"))
    move(1)
    broker.world.run(for: .milliseconds(2))
    #expect(broker.received == [])
    recorder.subscription?.request(.max(3))
    #expect(try next(Subscribe.self).frame.grantedThrough == 5)
    subscribed(from: 0)
    #expect(broker.takeReceived() == [])
  }

  @Test func recordsThatWaitForDemandAreDeliveredDuringThePause() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>(initial: .max(1))
    try broker.subscribe(recorder, to: client.topic("t", prefetch: .keepFull(4)))
    broker.send(deliver(stream: 1, firstOffset: 0, ["a", "b", "c"]))
    move(1)
    broker.world.run(for: .milliseconds(2))
    _ = broker.takeReceived()
    recorder.subscription?.request(.max(1))
    _ = broker.world.run(limit: .milliseconds(2)) { recorder.values.count == 2 }
    #expect(recorder.values == ["a", "b"])
    #expect(try next(Subscribe.self).frame.start == .offset(3))
  }

  @Test func aRefusedStreamIsTriedAgainMoreAndMoreRarely() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    client.topic("t", from: .new).subscribe(recorder)
    let first: Subscribe = try broker.takeOnly()
    var delays: [Duration] = []
    for _ in 0..<12 {
      move(1)
      let (frame, delay) = try next(Subscribe.self)
      #expect(frame == first)
      delays.append(delay)
    }
    #expect(delays[0] < .milliseconds(12), "\(delays)")
    #expect(zip(delays, delays.dropFirst(3)).prefix(4).allSatisfy { $0 < $1 }, "\(delays)")
    #expect(delays.allSatisfy { $0 < .milliseconds(502) }, "\(delays)")
    #expect(delays.suffix(4).allSatisfy { $0 > .milliseconds(240) }, "\(delays)")
    subscribed(from: 7)
    broker.send(deliver(stream: 1, firstOffset: 7, ["a"]))
    broker.settle()
    #expect(recorder.history == [.subscription, .value("a")])
    // After a while without a move, the delays start with the shortest again.
    broker.world.run(for: .seconds(1))
    _ = broker.takeReceived()
    move(1)
    #expect(try next(Subscribe.self).delay < .milliseconds(12))
  }

  /// The client doesn't ask a node every ten milliseconds that opens streams and ends them immediately.
  @Test func aStreamThatMovesAsSoonAsItIsOpenKeepsItsDelays() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    try broker.subscribe(recorder, to: client.topic("t"))
    var delay = Duration.zero
    for _ in 0..<10 {
      move(1)
      delay = try next(Subscribe.self).delay
      subscribed(from: 0)
    }
    #expect(delay > .milliseconds(200))
    #expect(recorder.history == [.subscription])
  }

  @Test func anotherEpochIsReportedAsAfterAReconnect() throws {
    let client = try client()
    let recorder = Recorder<TopicEvent<TopicRecord>>()
    client.topic("t").events.subscribe(recorder)
    _ = broker.takeReceived()
    subscribed(from: 4)
    move(1)
    #expect(try next(Subscribe.self).frame.epoch == 1)
    broker.send(Fault(code: .epochChanged, message: "another"), 1)
    #expect(try next(Subscribe.self).frame.start == .earliest)
    subscribed(from: 0, epoch: 2)
    #expect(recorder.history == [.subscription, .restarted(0)])
  }

  @Test func aCancelledSubscriptionIsNotOpenedAgain() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    try broker.subscribe(recorder, to: client.topic("t"))
    move(1)
    broker.world.run(for: .milliseconds(2))
    recorder.subscription?.cancel()
    broker.world.run(for: .seconds(2))
    #expect(broker.takeReceived() == [])
    #expect(recorder.history == [.subscription])
  }

  @Test func aGroupMemberAndAPatternAreOpenedAgain() throws {
    let client = try client()
    let member = Recorder<Delivery>()
    client.group("g", of: "t").subscribe(member)
    let join: JoinGroup = try broker.takeOnly()
    move(1)
    #expect(try next(JoinGroup.self).frame == join)
    subscribed(from: 0)
    let pattern = Recorder<TopicRecord>(initial: .max(9))
    client.topics(matching: "a.*").subscribe(pattern)
    let opening: SubscribePattern = try broker.takeOnly()
    broker.send(Subscribed(epoch: 0, nextOffset: 0, liveOffset: 0), 2)
    broker.send(
      Matched(
        number: 1, topic: "a.b", place: Subscribed(epoch: 5, nextOffset: 3, liveOffset: 3)), 2)
    broker.send(SelectTopic(number: 1), 2)
    broker.send(deliver(stream: 2, firstOffset: 3, ["x"]))
    broker.settle()
    #expect(broker.takeReceived() == [])
    move(2)
    let again = try next(SubscribePattern.self).frame
    #expect(again.pattern == opening.pattern && again.grantedThrough == 8)
    #expect(again.positions == [TopicPosition(topic: "a.b", epoch: 5, nextOffset: 4)])
    #expect(pattern.values == ["x"])
    #expect(member.history == [.subscription])
  }

  @Test func theOtherStreamsGoOn() throws {
    let client = try client()
    let moved = Recorder<TopicRecord>()
    let other = Recorder<TopicRecord>(initial: .max(1)) { _, _ in .max(1) }
    try broker.subscribe(moved, to: client.topic("a"))
    try broker.subscribe(other, to: client.topic("b"), stream: 2)
    let subject = client.subject("c")
    try broker.open(100, stream: 3)
    move(1)
    broker.send(deliver(stream: 2, firstOffset: 0, ["x"]))
    subject.send(Message("y"))
    broker.world.run(for: .milliseconds(2))
    // This happens before the moved stream is opened again.
    #expect(Set(broker.received.map(\.type)) == [.demand, .publish])
    #expect(other.values == ["x"])
    _ = broker.takeReceived()
    #expect(try next(Subscribe.self).frame.topic == "a")
  }

  // MARK: Publications

  @Test func whatIsNotAcknowledgedIsPublishedAgainOnce() throws {
    let client = try client()
    let subject = client.subject("t")
    let opened: PublishOpen = try broker.takeOnly()
    broker.send(PublishOpened(epoch: 1, grantedThrough: 100), 1)
    for text in ["a", "b", "c"] { subject.send(Message(text)) }
    #expect(try published() == ["0: a b c"])
    broker.send(Ack(through: 1, lastOffset: 0), 1)
    move(1)
    broker.world.run(for: .milliseconds(2))
    subject.send(Message("d"))
    let again = try next(PublishOpen.self).frame
    #expect(again.producer == opened.producer && again.firstSequence == 1)
    // The next owner has the second record as well.
    broker.send(PublishOpened(epoch: 1, grantedThrough: 100, nextSequence: 2), 1)
    #expect(try published() == ["2: c", "3: d"])
    broker.send(Ack(through: 4, lastOffset: 3), 1)
    let flushed = Box(false)
    subject.flush { if case .success = $0 { flushed.value = true } }
    broker.settle()
    #expect(flushed.value && subject.acknowledgedCount == 4 && subject.publication.failure == nil)
  }

  @Test func anEndThatIsNotConfirmedIsSentAgain() throws {
    let client = try client()
    let subject = client.subject("t")
    try broker.open(100)
    subject.send(Message("a"))
    let ended = Box(false)
    subject.complete(.finished) { if case .success = $0 { ended.value = true } }
    #expect(broker.takeReceived().map(\.type) == [.publish, .complete])
    move(1)
    _ = try next(PublishOpen.self)
    broker.send(PublishOpened(epoch: 1, grantedThrough: 100, nextSequence: 1), 1)
    #expect(broker.takeReceived().map(\.type) == [.complete])
    broker.send(Cancelled(), 1)
    broker.settle()
    #expect(ended.value)
  }

  @Test func aReleasedPublicationWithoutRecordsIsNotOpenedAgain() throws {
    let client = try client()
    var subject: TopicSubject? = client.subject("t")
    try broker.open(100)
    move(1)
    broker.world.run(for: .milliseconds(2))
    subject = nil
    broker.world.run(for: .seconds(1))
    #expect(broker.takeReceived() == [])
    _ = subject
  }

  @Test func aSourceIsAskedForWhatIsGrantedThere() throws {
    let client = try client()
    let subject = client.subject("t")
    try broker.open(0)
    let source = PassthroughSubject<Message, ClientError>()
    let publication = source.publish(to: subject, when: .connected)
    _ = broker.takeReceived()
    broker.send(Cancelled(), 1)
    broker.send(PublishOpened(epoch: 1, grantedThrough: 2), 2)
    broker.send(Connected(), 2)
    broker.settle()
    source.send(Message("a"))
    #expect(try published() == ["0: a"])
    move(2)
    let again = try next(PublishOpen.self).frame
    #expect(again.role == .source)
    withExtendedLifetime(publication) {}
  }

  // MARK: Requests

  @Test func openRequestsAreAskedAgain() throws {
    let client = try client()
    let shown = Box<Result<TopicInfo, ClientError>?>(nil)
    let deleted = Box<Result<Void, ClientError>?>(nil)
    client.topicInfo("t") { shown.value = $0 }
    client.deleteTopic("t") { deleted.value = $0 }
    #expect(broker.takeReceived().map(\.type) == [.topicShow, .topicDelete])
    move(1)
    #expect(try next(TopicShow.self).frame.topic == "t")
    // A denied request wasn't executed, so any request may be repeated.
    move(2)
    #expect(try next(TopicDelete.self).frame.topic == "t")
    broker.send(Done(), 2)
    broker.settle()
    #expect(throws: Never.self) { try deleted.value?.get() }
    #expect(deleted.value != nil && shown.value == nil)
    client.close()
    broker.settle()
    #expect(shown.value != nil)
  }

  @Test func aRequestKeepsItsTimeout() throws {
    let client = try client { $0.requestTimeout = .seconds(2) }
    let shown = Box<ClientError.Code?>(nil)
    client.topicInfo("t") { if case .failure(let error) = $0 { shown.value = error.code } }
    _ = broker.takeReceived()
    let begin = broker.world.now
    while shown.value == nil {
      move(1)
      _ = broker.world.run(limit: .seconds(5)) { !broker.received.isEmpty || shown.value != nil }
      _ = broker.takeReceived()
    }
    #expect(shown.value == .requestTimeout)
    #expect(broker.world.now - begin < .seconds(3))
  }

  // MARK: How long

  @Test(arguments: [nil, Duration.seconds(3)])
  func thePolicySaysHowLong(limit: Duration?) throws {
    let client = try client {
      if let limit { $0.reconnect?.giveUpAfter = limit } else { $0.reconnect = nil }
    }
    let recorder = Recorder<TopicRecord>()
    let subject = client.subject("p")
    let states = Box<[Heard]>([])
    let echo = subject.sink(receiveCompletion: { completion in
      if case .failure(let error) = completion { states.value.append(.failure(error.code)) }
    }) { _ in }
    _ = broker.takeReceived()
    client.topic("t").subscribe(recorder)
    _ = broker.takeReceived()
    let begin = broker.world.now
    while recorder.completion == nil || states.value.isEmpty {
      for stream: UInt32 in [1, 2] where client.failure == nil { refuseIfOpen(stream) }
      let isNext = broker.world.run(limit: .seconds(20)) {
        !broker.received.isEmpty || recorder.completion != nil && !states.value.isEmpty
      }
      guard isNext else { break }
      open.value = Set(broker.takeReceived().map(\.stream))
    }
    #expect(recorder.completion == .failure(.topicMoved))
    #expect(states.value == [.failure(.topicMoved)])
    let time = broker.world.now - begin
    #expect(time >= limit ?? .seconds(10) && time < (limit ?? .seconds(10)) + .seconds(1))
    #expect(client.failure == nil)
    echo.cancel()
  }

  private let open = Box<Set<UInt32>>([1, 2])

  private func refuseIfOpen(_ stream: UInt32) {
    if open.value.contains(stream) { move(stream) }
  }

  @Test func withoutALimitItGoesOn() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    client.topic("t").subscribe(recorder)
    _ = broker.takeReceived()
    for _ in 0..<300 {
      move(1)
      _ = try next(Subscribe.self)
    }
    #expect(recorder.history == [.subscription])
  }

  // MARK: Connections

  @Test func aStreamThatWaitsIsOpenedOnTheNextConnectionIfTheOldOneIsLost() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    try broker.subscribe(recorder, to: client.topic("t"))
    move(1)
    broker.world.run(for: .milliseconds(2))
    broker.breakOff()
    #expect(try next(Subscribe.self).frame.topic == "t")
    subscribed(from: 0)
    broker.world.run(for: .seconds(1))
    #expect(broker.takeReceived() == [])
    #expect(recorder.history == [.subscription])
  }

  @Test func closingTheClientEndsWhatWaits() throws {
    let client = try client()
    let recorder = Recorder<TopicRecord>()
    try broker.subscribe(recorder, to: client.topic("t"))
    move(1)
    broker.world.run(for: .milliseconds(2))
    client.close()
    broker.world.run(for: .seconds(1))
    #expect(recorder.history == [.subscription, .failure(.closed)])
    #expect(broker.takeReceived() == [])
  }
}
