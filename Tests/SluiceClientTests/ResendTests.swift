import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// Records that a producer resends after a lost connection.
@Suite struct ResendTests {
  private let broker: ScriptedBroker
  private let client: Client

  init() throws {
    broker = try ScriptedBroker()
    client = try broker.client { $0.reconnect = ReconnectPolicy() }
  }

  /// The sequences and payloads of the PUBLISH frames since the last call.
  private func published() throws -> [String] {
    try broker.takeReceived().filter { $0.type == .publish }.map { frame in
      let header = try frame.body.withUnsafeBytes { try PublishHeader.decode($0).header }
      return "\(header.firstSequence): \(frame.payloads.joined(separator: " "))"
    }
  }

  private func reopen(_ next: UInt64, granted: UInt64 = 100) throws -> PublishOpen {
    broker.breakOff()
    let frame: PublishOpen = try broker.takeOnly()
    broker.send(PublishOpened(epoch: 1, grantedThrough: granted, nextSequence: next), 1)
    return frame
  }

  /// Ends a stream with an error, after which the client reopens the publication. Returns the new stream.
  private func reopen(_ stream: UInt32, after code: ErrorCode, next: UInt64) throws -> UInt32 {
    broker.send(Fault(code: code, message: "it ends"), stream)
    broker.world.run(for: .milliseconds(100))
    let opening = try #require(broker.takeReceived().last)
    #expect(opening.type == .publishOpen)
    broker.send(PublishOpened(epoch: 1, grantedThrough: 100, nextSequence: next), opening.stream)
    return opening.stream
  }

  private func send(_ texts: String..., to subject: TopicSubject) throws {
    for text in texts { subject.send(Message(text)) }
    broker.settle()
  }

  @Test func whatIsNotAcknowledgedIsSentAgain() throws {
    let subject = client.subject("t")
    try broker.open(100)
    try send("a", "b", to: subject)
    try send("c", to: subject)
    #expect(try published() == ["0: a b", "2: c"])
    let opened = try reopen(0)
    #expect(opened.firstSequence == 0)
    #expect(opened.producer != 0)
    #expect(try published() == ["0: a b", "2: c"])
    broker.send(Ack(through: 2, lastOffset: 1), 1)
    broker.settle()
    let again = try reopen(2)
    #expect(
      again
        == PublishOpen(
          topic: "t", acknowledgement: .received, producer: opened.producer, firstSequence: 2,
          known: KnownHistory(epoch: 1, nextOffset: 2)))
    try send("d", to: subject)
    #expect(try published() == ["2: c", "3: d"])
    #expect(subject.acknowledgedCount == 2)
  }

  @Test func whatTheBrokerHasIsAcknowledgedByThat() throws {
    let subject = client.subject("t")
    try broker.open(100)
    let receipts = Box<[String]>([])
    for text in ["a", "b", "c"] {
      subject.publish(Message(text)) {
        receipts.value.append("\($0.map { "\($0.sequence) \($0.offset as Any)" })")
      }
    }
    #expect(try published() == ["0: a b c"])
    _ = try reopen(2)
    #expect(try published() == ["2: c"])
    #expect(receipts.value == ["success(\"0 nil\")", "success(\"1 nil\")"])
    broker.send(Ack(through: 3, lastOffset: 9), 1)
    broker.settle()
    #expect(receipts.value.last == "success(\"2 Optional(9)\")")
    #expect(subject.acknowledgedCount == 3)
  }

  @Test func aSmallerGrantCutsWhatIsSentAgain() throws {
    let subject = client.subject("t")
    try broker.open(100)
    try send("a", "b", "c", "d", to: subject)
    _ = try published()
    _ = try reopen(1, granted: 3)
    #expect(try published() == ["1: b c"])
    try send("e", to: subject)
    #expect(try published() == [])
    broker.send(Demand(grantedThrough: 5), 1)
    #expect(try published() == ["3: d", "4: e"])
    // Split and complete batches in order.
    _ = try reopen(2)
    #expect(try published() == ["2: c", "3: d", "4: e"])
  }

  @Test func whatIsSentDuringAnOutageFollows() throws {
    let subject = client.subject("t")
    try broker.open(100)
    try send("a", to: subject)
    _ = try published()
    broker.world.network.connections[0].reset()
    broker.settle()
    try send("b", to: subject)
    let flushed = Box(false)
    subject.flush { if case .success = $0 { flushed.value = true } }
    broker.world.run(for: .seconds(1))
    let _: PublishOpen = try broker.takeOnly()
    broker.send(PublishOpened(epoch: 1, grantedThrough: 10), 1)
    #expect(try published() == ["0: a", "1: b"])
    broker.send(Ack(through: 1, lastOffset: 0), 1)
    broker.settle()
    #expect(!flushed.value)
    broker.send(Ack(through: 2, lastOffset: 1), 1)
    broker.settle()
    #expect(flushed.value)
  }

  /// A former defect also kept the loop busy, so that simulated time stood still.
  @Test func whatIsSentToADepartingBrokerWaits() throws {
    let subject = client.subject("t")
    try broker.open(100)
    broker.send(GoAway(code: .shuttingDown, message: "stopping"), 0)
    broker.settle()
    try send("a", to: subject)
    #expect(try published() == [])
    broker.close()
    broker.world.run(for: .seconds(1))
    let _: PublishOpen = try broker.takeOnly()
    broker.send(PublishOpened(epoch: 1, grantedThrough: 10), 1)
    #expect(try published() == ["0: a"])
  }

  @Test func withoutAcknowledgementsNothingIsSentTwice() throws {
    let subject = client.subject("t", acknowledgement: .none)
    try broker.open(100)
    try send("a", "b", to: subject)
    #expect(try published() == ["0: a b"])
    #expect(try reopen(2).firstSequence == 2)
    try send("c", to: subject)
    #expect(try published() == ["2: c"])
  }

  @Test func theEndIsSaidAgain() throws {
    let subject = client.subject("t")
    try broker.open(100)
    let done = Box(0)
    try send("a", to: subject)
    subject.complete(.finished) { if case .success = $0 { done.value += 1 } }
    #expect(broker.takeReceived().map(\.type) == [.publish, .complete])
    _ = try reopen(1)
    #expect(broker.takeReceived().map(\.type) == [.complete])
    broker.send(Cancelled(), 1)
    broker.settle()
    #expect(done.value == 1)
  }

  @Test func aSubjectThatIsLetGoOfIsStillFlushed() throws {
    var subject: TopicSubject? = client.subject("t")
    try broker.open(100)
    try send("a", to: subject!)
    _ = try published()
    broker.world.network.connections[0].reset()
    broker.settle()
    subject = nil
    broker.world.run(for: .seconds(1))
    let _: PublishOpen = try broker.takeOnly()
    broker.send(PublishOpened(epoch: 1, grantedThrough: 10), 1)
    #expect(try published() == ["0: a"])
    broker.send(Ack(through: 1, lastOffset: 0), 1)
    #expect(broker.takeReceived().map(\.type) == [.cancel])
  }

  @Test func aSubjectThatHasNothingLeftToSayDoesNotComeBack() throws {
    var subject: TopicSubject? = client.subject("t")
    try broker.open(100)
    broker.world.network.connections[0].reset()
    broker.settle()
    #expect(subject != nil)
    subject = nil
    broker.world.run(for: .seconds(1))
    #expect(broker.takeReceived().isEmpty)
  }

  @Test func aBrokerThatKnowsMoreThanWasSentBreaksTheProtocol() throws {
    let subject = client.subject("t")
    try broker.open(100)
    try send("a", to: subject)
    _ = try published()
    _ = try reopen(2)
    broker.settle()
    #expect(client.failure?.code == .protocolViolation)
  }

  @Test func publishingCanBeAStepOfAPipeline() throws {
    let subject = client.subject("t")
    try broker.open(100)
    let receipts = Box<[UInt64]>([])
    let step = subject.publisher(publishing: "a")
    #expect(try published() == [])
    let sinks = (0..<2).map { _ in
      step.sink { _ in
      } receiveValue: {
        receipts.value.append($0.sequence)
      }
    }
    #expect(try published() == ["0: a a"])
    _ = try reopen(1)
    #expect(try published() == ["1: a"])
    #expect(receipts.value == [0])
    broker.send(Ack(through: 2, lastOffset: 1), 1)
    broker.settle()
    #expect(receipts.value == [0, 1])
    _ = sinks
  }

  // MARK: What is kept

  @Test func noMoreIsUnderWayThanMayBeKept() throws {
    let subject = client.subject(
      "t", buffer: TopicSubject.Buffer(records: 3, unacknowledgedBytes: 10), whenFull: .fail)
    try broker.open(100)
    try send("a", to: subject)
    try send("b", to: subject)
    try send("c", to: subject)
    #expect(try published() == ["0: a", "1: b"])
    try send("d", "e", "f", to: subject)
    #expect(subject.droppedCount == 1)
    broker.send(Ack(through: 1, lastOffset: 0), 1)
    #expect(try published() == ["2: c"])
    broker.send(Ack(through: 3, lastOffset: 2), 1)
    #expect(try published() == ["3: d e"])
    #expect(client.failure == nil)
  }

  @Test func whatIsDroppedIsNotWhatWasSent() throws {
    let subject = client.subject("t", buffer: TopicSubject.Buffer(records: 2), whenFull: .dropOldest)
    try broker.open(2)
    try send("a", "b", to: subject)
    try send("c", "d", "e", to: subject)
    #expect(try published() == ["0: a b"])
    #expect(subject.droppedCount == 1)
    _ = try reopen(1)
    #expect(try published() == ["1: b", "2: d e"])
  }

  // MARK: Producers with a life of their own

  @Test func aProducerThatIsStartedAnewSendsWhatTheTopicLacks() throws {
    let subject = client.subject("t", producer: .init(id: 77))
    let opening: PublishOpen = try broker.takeOnly()
    #expect(opening.producer == 77)
    for text in ["a", "b"] { subject.send(Message(text)) }
    broker.send(PublishOpened(epoch: 1, grantedThrough: 103, nextSequence: 3), 1)
    let receipt = Box<TopicSubject.Receipt?>(nil)
    subject.publish("c") { receipt.value = try? $0.get() }
    try send("d", "e", to: subject)
    #expect(try published() == ["3: d e"])
    #expect(receipt.value == TopicSubject.Receipt(sequence: 2, offset: nil))
    #expect(subject.acknowledgedCount == 3)
  }

  @Test func recordsMayBeNumberedFromElsewhere() throws {
    let subject = client.subject("t", producer: .init(id: 77, firstSequence: 1_000))
    let opening: PublishOpen = try broker.takeOnly()
    #expect(opening.firstSequence == 1_000)
    broker.send(PublishOpened(epoch: 1, grantedThrough: 2_000, nextSequence: 1_000), 1)
    try send("a", to: subject)
    #expect(try published() == ["1000: a"])
    broker.send(Ack(through: 1_001, lastOffset: 5), 1)
    broker.settle()
    #expect(subject.acknowledgedCount == 1)
  }

  @Test func whoeverIsFencedIsToldSo() throws {
    let subject = client.subject("t")
    let recorder = Recorder<Message>()
    subject.subscribe(recorder)
    try broker.open(100)
    broker.send(Fault(code: .producerFenced, message: "another"), 1)
    broker.settle()
    #expect(recorder.completion == .failure(.producerFenced))
  }

  /// In a cluster, an opening that was delayed between two nodes may arrive after its successor.
  @Test func anEarlierOpeningOfItsOwnDoesNotFenceAProducer() throws {
    let subject = client.subject("t")
    let recorder = Recorder<Message>()
    subject.subscribe(recorder)
    try broker.open(100)
    try send("a", to: subject)
    let second = try reopen(1, after: .topicMoved, next: 0)
    #expect(try published() == ["0: a"])
    let third = try reopen(second, after: .producerFenced, next: 1)
    broker.settle()
    #expect(subject.acknowledgedCount == 1)
    #expect(recorder.completion == nil)
    // Only one opening was repeated, so the next error means another producer.
    broker.send(Fault(code: .producerFenced, message: "another"), third)
    broker.settle()
    #expect(recorder.completion == .failure(.producerFenced))
  }

  @Test func anOpeningIsNotHeldUpForLong() throws {
    let subject = client.subject("t")
    let recorder = Recorder<Message>()
    subject.subscribe(recorder)
    try broker.open(100)
    let second = try reopen(1, after: .topicMoved, next: 0)
    broker.world.run(for: DoubtfulOpenings.memory)
    broker.send(Fault(code: .producerFenced, message: "another"), second)
    broker.settle()
    #expect(recorder.completion == .failure(.producerFenced))
  }
}
