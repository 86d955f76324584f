import ReactiveCore
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// Sources of a topic, which publish while it is connected, frame by frame.
@Suite struct SourceTests {
  private let broker: ScriptedBroker
  private let client: Client

  init() throws {
    broker = try ScriptedBroker()
    client = try broker.client { $0.reconnect = ReconnectPolicy() }
  }

  /// Answers PUBLISH_OPEN, and reports whether the topic is connected.
  private func open(_ granted: UInt64, isConnected: Bool, stream: UInt32 = 1) {
    broker.send(PublishOpened(epoch: 1, grantedThrough: granted), stream)
    tell(isConnected, stream: stream)
  }

  private func tell(_ isConnected: Bool, stream: UInt32 = 1) {
    if isConnected { broker.send(Connected(), stream) } else { broker.send(Disconnected(), stream) }
    broker.settle()
  }

  private func payloads(_ frames: [ScriptedBroker.Received]) -> [String] {
    frames.filter { $0.type == .publish }.flatMap(\.payloads)
  }

  // MARK: When it is subscribed to

  @Test func aSourceSaysThatItIsOneAndWaitsToBeTold() throws {
    let source = TestSource()
    let cancellable = source.publish(to: client, topic: "t", when: .connected)
    let frame: PublishOpen = try broker.takeOnly()
    #expect(frame.role == .source)
    open(5, isConnected: false)
    #expect(source.all.isEmpty)
    tell(true)
    #expect(source.active.count == 1)
    #expect(source.active[0].requested == 5)
    tell(false)
    #expect(source.active.isEmpty)
    #expect(source.all[0].cancellations == 1)
    tell(true)
    #expect(source.all.count == 2)
    #expect(source.active.count == 1)
    _ = cancellable
  }

  @Test func aTopicThatIsConnectedAlreadyStartsItAtOnce() throws {
    let source = TestSource(count: 3)
    let cancellable = source.publish(to: client.subject("t"), when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(9, isConnected: true)
    #expect(payloads(broker.takeReceived()) == ["0.0", "0.1", "0.2"])
    _ = cancellable
  }

  @Test func whoeverPublishesAlwaysIsntToldAndStartsAtOnce() throws {
    let source = TestSource(count: 3)
    let cancellable = source.publish(to: client.subject("t"), when: .always)
    #expect(source.active.count == 1)
    #expect(source.active[0].requested == .none)
    let frame: PublishOpen = try broker.takeOnly()
    #expect(frame.role != .source)
    broker.send(PublishOpened(epoch: 1, grantedThrough: 2), 1)
    #expect(payloads(broker.takeReceived()) == ["0.0", "0.1"])
    cancellable.cancel()
    #expect(source.all[0].cancellations == 1)
  }

  @Test func aPublicationThatStandsIsOpenedOnceMoreAsASource() throws {
    let subject = client.subject("t")
    let first: PublishOpen = try broker.takeOnly()
    broker.send(PublishOpened(epoch: 1, grantedThrough: 10), 1)
    subject.send("a")
    subject.send("b")
    #expect(payloads(broker.takeReceived()) == ["a", "b"])
    broker.send(Ack(through: 1, lastOffset: 0), 1)
    broker.settle()

    let source = TestSource(count: 1)
    let cancellable = source.publish(to: subject, when: .connected)
    let frames = broker.takeReceived()
    #expect(frames.map(\.type) == [.cancel, .publishOpen])
    let second: PublishOpen = try frames[1].decode()
    #expect(second.role == .source && second.producer == first.producer && second.firstSequence == 1)
    broker.send(Ack(through: 2, lastOffset: 1), 1)
    broker.send(Cancelled(), 1)
    broker.send(PublishOpened(epoch: 1, grantedThrough: 10, nextSequence: 2), 2)
    tell(true, stream: 2)
    #expect(payloads(broker.takeReceived()) == ["0.0"])
    #expect(subject.acknowledgedCount == 2)
    _ = cancellable
  }

  @Test func aSecondSourceOfASubjectIsToldToo() throws {
    let subject = client.subject("t")
    let (first, second) = (TestSource(), TestSource())
    let one = first.publish(to: subject, when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(10, isConnected: true)
    let two = second.publish(to: subject, when: .connected)
    #expect(broker.takeReceived().isEmpty)
    #expect(first.active.count == 1 && second.active.count == 1)
    tell(false)
    #expect(first.active.isEmpty && second.active.isEmpty)
    _ = (one, two)
  }

  // MARK: Demand

  @Test func itIsAskedForWhatIsGranted() throws {
    let source = TestSource()
    let cancellable = source.publish(to: client.subject("t"), when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(0, isConnected: true)
    #expect(source.active[0].requested == .none)
    broker.send(Demand(grantedThrough: 4), 1)
    broker.settle()
    #expect(source.active[0].requested == 4)
    for number in 0..<4 { source.active[0].give(Message("\(number)")) }
    #expect(payloads(broker.takeReceived()) == ["0", "1", "2", "3"])
    #expect(source.active[0].requested == 4)
    broker.send(Demand(grantedThrough: 5), 1)
    broker.settle()
    #expect(source.active[0].requested == 5)
    _ = cancellable
  }

  @Test func anotherSubscriptionIsAskedForWhatTheLastOneOwed() throws {
    let source = TestSource()
    let cancellable = source.publish(to: client.subject("t"), when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(6, isConnected: true)
    source.active[0].give("a")
    source.active[0].give("b")
    _ = broker.takeReceived()
    tell(false)
    tell(true)
    #expect(source.all.map(\.requested) == [.max(6), .max(4)])
    _ = cancellable
  }

  @Test func whatACancelledUpstreamGivesAfterwardsIsntPublished() throws {
    let source = TestSource()
    let cancellable = source.publish(to: client.subject("t"), when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(6, isConnected: true)
    tell(false)
    source.all[0].give("late")
    tell(true)
    source.all[0].give("later")
    source.all[1].give("now")
    #expect(payloads(broker.takeReceived()) == ["now"])
    _ = cancellable
  }

  @Test func whatItWasAskedForIsTakenThoughOthersFillTheBuffer() throws {
    let subject = client.subject("t", buffer: TopicSubject.Buffer(records: 2))
    let source = TestSource()
    let cancellable = source.publish(to: subject, when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(2, isConnected: true)
    #expect(source.active[0].requested == 2)
    subject.send("a")
    subject.send("b")
    source.active[0].give("c")
    source.active[0].give("d")
    #expect(payloads(broker.takeReceived()) == ["a", "b"])
    broker.send(Demand(grantedThrough: 4), 1)
    #expect(payloads(broker.takeReceived()) == ["c", "d"])
    #expect(source.active.count == 1)
    _ = cancellable
  }

  @Test func whatItGivesUnaskedIsUnderTheRuleForAFullBuffer() throws {
    let subject = client.subject("t", buffer: TopicSubject.Buffer(records: 2))
    let source = TestSource()
    let cancellable = source.publish(to: subject, when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(0, isConnected: true)
    source.active[0].give("a")
    source.active[0].give("b")
    #expect(source.active.count == 1)
    source.all[0].give("c")
    // There is no room for the value; the source and the publication continue.
    #expect(source.active.count == 1 && subject.droppedCount == 1)
    broker.send(Demand(grantedThrough: 9), 1)
    #expect(payloads(broker.takeReceived()) == ["a", "b"])
    _ = cancellable
  }

  // MARK: The end

  @Test func itsEndIsTheTopics() throws {
    let source = TestSource(count: 2, ending: .finished)
    let cancellable = source.publish(to: client.subject("t"), when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(9, isConnected: true)
    let frames = broker.takeReceived()
    #expect(frames.map(\.type) == [.publish, .complete])
    #expect(try frames[1].decode(Complete.self) == Complete(.finished))
    broker.send(Cancelled(), 1)
    broker.settle()
    #expect(source.all.count == 1 && source.all[0].cancellations == 0)
    _ = cancellable
  }

  @Test func itsFailureIsTheTopics() throws {
    struct Smoke: Error, CustomStringConvertible { let description = "there is smoke" }
    let upstream = Fail<Message, any Error>(error: Smoke())
    let cancellable = upstream.publish(to: client.subject("t"), when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(9, isConnected: true)
    let frame: Complete = try broker.takeOnly()
    guard case .failure(let code, let message) = frame.ending else {
      throw ClientError.topicFailure("it was finished")
    }
    #expect(code.rawValue == 200)
    // The description may contain anything, so only the type's name is sent.
    #expect(message == "Smoke")
    _ = cancellable
  }

  @Test func aProgramChoosesWhatCrossesOfItsFailure() throws {
    struct Smoke: Error {}
    let upstream = Fail<Message, Smoke>(error: Smoke())
    let cancellable = upstream.publish(to: client.subject("t"), when: .connected) { _ in
      TopicFailure(code: 4711, message: "there is smoke")
    }
    _ = try broker.takeOnly(PublishOpen.self)
    open(9, isConnected: true)
    let frame: Complete = try broker.takeOnly()
    #expect(frame.ending == .failure(code: ErrorCode(rawValue: 4711), message: "there is smoke"))
    _ = cancellable
  }

  @Test func valuesThatCannotBeEncodedFailTheTopic() throws {
    struct Refuser: TopLevelEncoder {
      func encode<T: Encodable>(_ value: T) throws -> [UInt8] {
        guard "\(value)" != "3" else {
          throw EncodingError.invalidValue(
            value, .init(codingPath: [], debugDescription: "three is too many"))
        }
        return [UInt8]("\(value)".utf8)
      }
    }
    let cancellable = (1...5).publisher.publish(to: client.subject("t"), when: .connected, encoder: Refuser())
    _ = try broker.takeOnly(PublishOpen.self)
    open(9, isConnected: true)
    let frames = broker.takeReceived()
    #expect(payloads(frames) == ["1", "2"])
    guard case .failure(_, let message) = try #require(frames.last).decode(Complete.self).ending else {
      throw ClientError.topicFailure("it was finished")
    }
    #expect(message == "a value can't be encoded to be published")
    _ = cancellable
  }

  @Test func theTopicsEndCancelsIt() throws {
    let source = TestSource()
    let subject = client.subject("t")
    let cancellable = source.publish(to: subject, when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(9, isConnected: true)
    broker.send(Complete(.finished), 1)
    broker.settle()
    #expect(source.all[0].cancellations == 1)
    // A subject that has ended accepts no source.
    let late = TestSource()
    let another = late.publish(to: subject, when: .connected)
    broker.settle()
    #expect(late.all.isEmpty)
    _ = (cancellable, another)
  }

  // MARK: Cancelling

  @Test func cancellingCancelsItAndGivesUpThePublication() throws {
    let source = TestSource()
    let cancellable = source.publish(to: client, topic: "t", when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(9, isConnected: true)
    cancellable.cancel()
    #expect(source.all[0].cancellations == 1)
    _ = try broker.takeOnly(Cancel.self)
    tell(false)
    tell(true)
    #expect(source.all.count == 1)
    #expect(client.failure == nil)
  }

  @Test func aSubjectThatSomebodyHoldsOutlivesItsSource() throws {
    let source = TestSource()
    let subject = client.subject("t")
    var cancellable: SourcePublication? = source.publish(to: subject, when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(9, isConnected: true)
    #expect(cancellable != nil)
    cancellable = nil
    #expect(source.all[0].cancellations == 1)
    subject.send("mine")
    #expect(payloads(broker.takeReceived()) == ["mine"])
  }

  @Test func cancellingBeforeAnythingStandsLeavesNothing() throws {
    let source = TestSource()
    source.publish(to: client, topic: "t", when: .connected).cancel()
    let types = broker.takeReceived().map(\.type)
    #expect(types == [] || types == [.publishOpen, .cancel])
    #expect(source.all.isEmpty)
  }

  @Test func cancellingWhileItSubscribesIsHeard() throws {
    // Cancels from within its subscription.
    let box = Box<SourcePublication?>(nil)
    let source = TestSource(count: 3)
    let upstream = Deferred { () -> TestSource in
      box.value?.cancel()
      return source
    }
    box.value = upstream.publish(to: client, topic: "t", when: .connected)
    _ = try broker.takeOnly(PublishOpen.self)
    open(9, isConnected: true)
    #expect(broker.takeReceived().map(\.type) == [.cancel])
    #expect(source.all.count == 1 && source.active.isEmpty)
    #expect(source.all[0].requested == .none)
  }

  @Test func nothingIsKeptWhenItIsOver() throws {
    weak var source: TestSource?
    weak var publication: Publication?
    do {
      let made = TestSource()
      source = made
      let subject = client.subject("t")
      publication = subject.publication
      let cancellable = made.publish(to: subject, when: .connected)
      _ = try broker.takeOnly(PublishOpen.self)
      open(9, isConnected: true)
      #expect(made.active.count == 1)
      cancellable.cancel()
    }
    _ = try broker.takeOnly(Cancel.self)
    broker.send(Cancelled(), 1)
    broker.settle()
    #expect(source == nil)
    #expect(publication == nil)
  }

  // MARK: Lost connections

  @Test(arguments: [true, false])
  func aLostConnectionIsNoDisconnection(isStillConnected: Bool) throws {
    let source = TestSource()
    let cancellable = source.publish(to: client.subject("t"), when: .connected)
    let first: PublishOpen = try broker.takeOnly()
    open(4, isConnected: true)
    source.active[0].give("a")
    _ = broker.takeReceived()
    broker.send(Ack(through: 1, lastOffset: 0), 1)
    broker.settle()
    broker.breakOff()
    let again: PublishOpen = try broker.takeOnly()
    #expect(again.role == .source && again.producer == first.producer && again.firstSequence == 1)
    #expect(source.active.count == 1)
    broker.send(PublishOpened(epoch: 1, grantedThrough: 9, nextSequence: 1), 1)
    tell(isStillConnected)
    #expect(source.all.count == 1)
    #expect(source.active.count == (isStillConnected ? 1 : 0))
    // Three values were outstanding. More are requested once half of them have arrived.
    if isStillConnected {
      for number in 0..<3 { source.active[0].give(Message("\(number)")) }
      #expect(payloads(broker.takeReceived()) == ["0", "1", "2"])
      #expect(source.active[0].requested == 9)
    }
    _ = cancellable
  }

  @Test func aSourceThatIsAttachedDuringAnOutageIsToldAfterIt() throws {
    let subject = client.subject("t")
    _ = try broker.takeOnly(PublishOpen.self)
    broker.send(PublishOpened(epoch: 1, grantedThrough: 9), 1)
    broker.settle()
    broker.world.network.connections.last?.reset()
    broker.settle()
    let source = TestSource()
    let cancellable = source.publish(to: subject, when: .connected)
    _ = broker.world.run(limit: .seconds(60)) { broker.accepted == 2 }
    let frame: PublishOpen = try broker.takeOnly()
    #expect(frame.role == .source)
    open(9, isConnected: true)
    #expect(source.active.count == 1)
    _ = cancellable
  }

  // MARK: What the broker may not do

  @Test func aBrokerThatTellsOutOfTurnBreaksTheProtocol() throws {
    for (isSource, frames) in [
      (false, [Connected().encoded(stream: 1)]), (false, [Disconnected().encoded(stream: 1)]),
      (true, [Connected().encoded(stream: 1), Connected().encoded(stream: 1)]),
      (true, [Disconnected().encoded(stream: 1), Disconnected().encoded(stream: 1)]),
    ] {
      let broker = try ScriptedBroker()
      let client = try broker.client { $0.reconnect = ReconnectPolicy() }
      let source = TestSource()
      let cancellable = source.publish(to: client, topic: "t", when: isSource ? .connected : .always)
      _ = try broker.takeOnly(PublishOpen.self)
      broker.send(PublishOpened(epoch: 1, grantedThrough: 0), 1)
      for frame in frames { broker.send(frame) }
      broker.settle()
      #expect(client.failure?.code == .protocolViolation)
      #expect(source.active.isEmpty)
      _ = cancellable
    }
  }
}
