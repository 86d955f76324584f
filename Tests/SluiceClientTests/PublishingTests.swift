import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import TestSupport
import Testing

@testable import SluiceClient

/// Publishing through a subject: which records are sent, and when.
@Suite struct PublishingTests {
  private let broker: ScriptedBroker
  private let client: Client

  init() throws {
    broker = try ScriptedBroker()
    client = try broker.client()
  }

  /// A result that arrives later.
  private final class Later<Value: Sendable>: Sendable {
    private let box = Box<Result<Value, ClientError>?>(nil)

    func complete(_ result: Result<Value, ClientError>) {
      #expect(box.value == nil, "a completion is called once")
      box.value = result
    }

    var value: Value? { if case .success(let value) = box.value { value } else { nil } }
    var error: ClientError.Code? { if case .failure(let error) = box.value { error.code } else { nil } }
    var isPending: Bool { box.value == nil }
  }

  private func payloads(_ frames: [ScriptedBroker.Received]) -> [[String]] {
    frames.filter { $0.type == .publish }.map(\.payloads)
  }

  // MARK: Order and batches

  @Test func whatIsSentInOneTurnTravelsInOneFrame() throws {
    let subject = client.subject("t")
    try broker.open(100)
    subject.send("a")
    subject.send("b")
    _ = "c".utf8.withContiguousStorageIfAvailable { subject.send(copying: UnsafeRawBufferPointer($0)) }
    #expect(payloads(broker.takeReceived()) == [["a", "b", "c"]])
    subject.send("d")
    let frames = broker.takeReceived()
    #expect(payloads(frames) == [["d"]])
    let sequence = try frames[0].body.withUnsafeBytes { try PublishHeader.decode($0).header.firstSequence }
    #expect(sequence == 3)
  }

  @Test func whatIsSentBeforeThePublicationStandsWaitsForIt() throws {
    let subject = client.subject("t", acknowledgement: .durable)
    subject.send("a")
    subject.send("b")
    let open: PublishOpen = try broker.takeOnly()
    #expect(
      open == PublishOpen(topic: "t", acknowledgement: .durable, producer: open.producer, firstSequence: 0))
    #expect(open.producer != 0)
    broker.send(PublishOpened(epoch: 1, grantedThrough: 1), 1)
    #expect(payloads(broker.takeReceived()) == [["a"]])
    broker.send(Demand(grantedThrough: 5), 1)
    #expect(payloads(broker.takeReceived()) == [["b"]])
  }

  @Test func nothingIsPublishedBeyondTheGrant() throws {
    let subject = client.subject("t")
    try broker.open(2)
    for text in ["a", "b", "c", "d", "e"] { subject.send(Message(text)) }
    #expect(payloads(broker.takeReceived()) == [["a", "b"]])
    broker.send(Demand(grantedThrough: 3), 1)
    #expect(payloads(broker.takeReceived()) == [["c"]])
    broker.send(Demand(grantedThrough: 3), 1)
    #expect(broker.takeReceived().isEmpty)
    broker.send(Demand(grantedThrough: Credit.unlimited), 1)
    #expect(payloads(broker.takeReceived()) == [["d", "e"]])
  }

  @Test func aFrameIsNoLongerThanTheBrokerTakes() throws {
    let broker = try ScriptedBroker(.test(maximumFrame: UInt32(Limits.smallestFrame), maximumRecord: 60_000))
    let client = try broker.client()
    let subject = client.subject("t")
    try broker.open(100)
    let large = String(repeating: "x", count: 40_000)
    for _ in 0..<3 { subject.send(Message(large)) }
    let frames = broker.takeReceived()
    #expect(payloads(frames) == [[large], [large], [large]])
    #expect(frames.allSatisfy { $0.body.count <= Limits.smallestFrame })
  }

  @Test func muchThatWaitsKeepsItsOrder() throws {
    let subject = client.subject("t")
    try broker.open(0)
    let filler = String(repeating: "x", count: 1_000)
    for number in 0..<3_000 { subject.send(Message("\(number) \(filler)")) }
    var received: [String] = []
    for granted in stride(from: 70, through: 3_010, by: 70) {
      broker.send(Demand(grantedThrough: UInt64(granted)), 1)
      broker.world.run(for: .milliseconds(20))
      received += payloads(broker.takeReceived()).flatMap(\.self)
      if granted == 1_400 {
        for number in 3_000..<3_010 { subject.send(Message("\(number) \(filler)")) }
      }
    }
    #expect(received == (0..<3_010).map { "\($0) \(filler)" })
  }

  @Test func keyAndHeadersTravel() throws {
    let subject = client.subject("t")
    try broker.open(9)
    let message = Message("body", key: "k", headers: [.init("a", "1"), .init("", [0, 255])])
    subject.send(message)
    let frame = broker.takeReceived()[0]
    let (header, batch) = try frame.body.withUnsafeBytes { try PublishHeader.decode($0) }
    #expect(header.count == 1)
    var builder = BatchBuilder()
    try Array("body".utf8).withUnsafeBytes { payload in
      try Array("k".utf8).withUnsafeBytes { key in
        try builder.append(
          key: key, headers: [(name: Array("a".utf8), value: Array("1".utf8)), (name: [], value: [0, 255])],
          payload: payload)
      }
    }
    #expect(batch.count == builder.bytes.count)
    #expect(Array(frame.body.suffix(batch.count)) == builder.bytes)
  }

  // MARK: Acknowledgements

  @Test func publishAnswersWithTheAcknowledgement() throws {
    let subject = client.subject("t")
    try broker.open(9)
    let (first, second) = (Later<TopicSubject.Receipt>(), Later<TopicSubject.Receipt>())
    subject.publish("a", completion: first.complete)
    subject.publish("b", completion: second.complete)
    _ = broker.takeReceived()
    #expect(first.isPending)
    broker.send(Ack(through: 1, lastOffset: 41), 1)
    broker.settle()
    #expect(first.value == TopicSubject.Receipt(sequence: 0, offset: 41))
    #expect(second.isPending)
    broker.send(Ack(through: 2, lastOffset: 43), 1)
    broker.settle()
    #expect(second.value == TopicSubject.Receipt(sequence: 1, offset: 43))
    #expect(subject.acknowledgedCount == 2)
  }

  @Test func anAcknowledgementOfSeveralTellsTheLastOffsetOnly() throws {
    let subject = client.subject("t")
    try broker.open(9)
    let (first, second) = (Later<TopicSubject.Receipt>(), Later<TopicSubject.Receipt>())
    subject.publish("a", completion: first.complete)
    subject.publish("b", completion: second.complete)
    _ = broker.takeReceived()
    broker.send(Ack(through: 2, lastOffset: 43), 1)
    broker.settle()
    #expect(first.value == TopicSubject.Receipt(sequence: 0, offset: nil))
    #expect(second.value == TopicSubject.Receipt(sequence: 1, offset: 43))
  }

  @Test func flushWaitsForAllThatWasAccepted() throws {
    let subject = client.subject("t")
    let empty = Later<Void>()
    subject.flush(completion: empty.complete)
    #expect(!empty.isPending)
    try broker.open(2)
    for text in ["a", "b", "c"] { subject.send(Message(text)) }
    let flush = Later<Void>()
    subject.flush(completion: flush.complete)
    subject.send("d")
    _ = broker.takeReceived()
    broker.send(Ack(through: 2, lastOffset: 1), 1)
    broker.send(Demand(grantedThrough: 9), 1)
    broker.settle()
    #expect(flush.isPending)
    broker.send(Ack(through: 3, lastOffset: 2), 1)
    broker.settle()
    #expect(!flush.isPending)
  }

  @Test func withoutAcknowledgementsFlushAsksWhetherTheBrokerHasRead() throws {
    broker.answersPings = false
    let subject = client.subject("t", acknowledgement: .none)
    try broker.open(9)
    subject.send("a")
    let (publish, flush) = (Later<TopicSubject.Receipt>(), Later<Void>())
    subject.publish("b", completion: publish.complete)
    subject.flush(completion: flush.complete)
    let frames = broker.takeReceived()
    #expect(frames.map(\.type) == [.publish, .ping])
    #expect(publish.value == TopicSubject.Receipt(sequence: 1, offset: nil))
    #expect(flush.isPending)
    broker.send(Pong(token: try frames[1].decode(Ping.self).token), 0)
    broker.settle()
    #expect(flush.value != nil)
  }

  // MARK: A full buffer

  private func fill(_ whenFull: TopicSubject.WhenFull) throws -> TopicSubject {
    let subject = client.subject("t", buffer: .init(records: 2), whenFull: whenFull)
    try broker.open(1)
    subject.send("a")
    _ = broker.takeReceived()
    let results = ["b", "c", "d"].map { subject.send(Message($0)) }
    #expect(results == [.accepted, .accepted, whenFull == .fail ? .bufferFull : .accepted])
    return subject
  }

  @Test func dropOldestForgetsWhatWaitsLongest() throws {
    let subject = try fill(.dropOldest)
    broker.send(Demand(grantedThrough: 9), 1)
    #expect(payloads(broker.takeReceived()) == [["c", "d"]])
    #expect(subject.droppedCount == 1)
  }

  @Test func aFullBufferDoesNotEndThePublication() throws {
    let subject = try fill(.fail)
    let recorder = Recorder<Message>()
    subject.subscribe(recorder)
    // As a subject alone, whose caller learns nothing.
    let anySubject: any Subject<Message, ClientError> = subject
    anySubject.send("e")
    let bytes: [UInt8] = [1]
    #expect(bytes.withUnsafeBytes { unsafe subject.send(copying: $0) } == .bufferFull)
    #expect(subject.droppedCount == 3)
    let publish = Later<TopicSubject.Receipt>()
    subject.publish("f", completion: publish.complete)
    #expect(publish.isPending && recorder.history == [.subscription, .value("f")])
    broker.send(Demand(grantedThrough: 9), 1)
    #expect(payloads(broker.takeReceived()).flatMap(\.self) == ["b", "c", "f"])
    #expect(subject.send("g") == .accepted)
    #expect(payloads(broker.takeReceived()) == [["g"]])
    broker.send(Ack(through: 5, lastOffset: 4), 1)
    broker.settle()
    #expect(publish.value != nil)
  }

  @Test func whatIsSentBehindTheEndIsNotAccepted() throws {
    let subject = client.subject("t")
    try broker.open(9)
    subject.send(completion: .finished)
    #expect(subject.send("a") == .ended)
  }

  @Test func aDroppedRecordsPublisherIsTold() throws {
    let subject = client.subject("t", buffer: .init(records: 1), whenFull: .dropOldest)
    try broker.open(0)
    let (publish, flush) = (Later<TopicSubject.Receipt>(), Later<Void>())
    subject.publish("a", completion: publish.complete)
    subject.flush(completion: flush.complete)
    subject.send("b")
    #expect(publish.error == .bufferFull)
    // All accepted records are dropped, so there is nothing to wait for.
    #expect(flush.value != nil)
  }

  @Test func publishWaitsForRoomInOrder() throws {
    let subject = client.subject("t", buffer: .init(records: 1))
    try broker.open(0)
    subject.send("a")
    let (second, third) = (Later<Void>(), Later<Void>())
    let flush = Later<Void>()
    subject.enqueue("b", completion: second.complete)
    subject.enqueue("c", completion: third.complete)
    subject.flush(completion: flush.complete)
    let isTaken = try Array("x".utf8).withUnsafeBytes { try subject.enqueue(copying: $0) }
    #expect(!isTaken)
    #expect(second.isPending)
    broker.send(Demand(grantedThrough: 1), 1)
    #expect(payloads(broker.takeReceived()) == [["a"]])
    #expect(!second.isPending)
    #expect(third.isPending)
    broker.send(Demand(grantedThrough: 9), 1)
    #expect(payloads(broker.takeReceived()).flatMap(\.self) == ["b", "c"])
    #expect(!third.isPending)
    #expect(flush.isPending)
    broker.send(Ack(through: 3, lastOffset: 2), 1)
    broker.settle()
    #expect(flush.value != nil)
  }

  @Test func bytesAreLimitedToo() throws {
    let subject = client.subject("t", buffer: .init(bytes: 100), whenFull: .fail)
    try broker.open(0)
    let payload = [UInt8](repeating: 1, count: 60)
    for _ in 0..<5 { subject.send(Message(payload)) }
    // The second record still fits, because less than the limit was waiting.
    #expect(subject.acceptedCount == 2)
    #expect(subject.droppedCount == 3)
  }

  @Test func aRecordThatIsTooLongIsRefusedAndTheRestGoesOn() throws {
    let subject = client.subject("t")
    try broker.open(9)
    let long = Message([UInt8](repeating: 0, count: (1 << 16) + 1))
    let publish = Later<TopicSubject.Receipt>()
    subject.publish(long, completion: publish.complete)
    #expect(publish.error == .recordTooLarge)
    subject.send(Message([UInt8](repeating: 0, count: 1 << 16)))
    #expect(payloads(broker.takeReceived()).count == 1)
    let limit = Message("", headers: [.init(String(repeating: "n", count: 70_000), "")])
    let header = Later<TopicSubject.Receipt>()
    subject.publish(limit, completion: header.complete)
    #expect(header.error == .recordTooLarge)
  }

  // MARK: Ends

  @Test func completingComesAfterEverythingAndIsConfirmed() throws {
    let subject = client.subject("t")
    let recorder = Recorder<Message>()
    subject.subscribe(recorder)
    subject.send("a")
    let complete = Later<Void>()
    subject.complete(.failure(.topicFailure("broken", code: 300)), completion: complete.complete)
    subject.send("late")
    try broker.open(9)
    let frames = broker.takeReceived()
    #expect(frames.map(\.type) == [.publish, .complete])
    #expect(
      try frames[1].decode(Complete.self).ending
        == .failure(code: ErrorCode(rawValue: 300), message: "broken"))
    #expect(complete.isPending)
    broker.send(Ack(through: 1, lastOffset: 0), 1)
    broker.send(Cancelled(), 1)
    broker.settle()
    #expect(complete.value != nil)
    #expect(recorder.history == [.subscription, .value("a"), .failure(.topicFailed)])
    let again = Later<TopicSubject.Receipt>()
    subject.publish("b", completion: again.complete)
    #expect(again.error == .topicFailed)
  }

  @Test func anotherProducersEndIsATypedFailure() throws {
    let subject = client.subject("t")
    let recorder = Recorder<Message>()
    subject.subscribe(recorder)
    try broker.open(0)
    let (publish, flush) = (Later<TopicSubject.Receipt>(), Later<Void>())
    subject.publish("a", completion: publish.complete)
    subject.flush(completion: flush.complete)
    broker.send(Complete(.finished), 1)
    broker.settle()
    #expect(publish.error == .topicEnded)
    #expect(flush.error == .topicEnded)
    #expect(recorder.completion == .failure(.topicEnded))
    let late = Later<Void>()
    subject.complete(.finished, completion: late.complete)
    #expect(late.error == .topicEnded)
  }

  @Test func aRefusedPublicationTellsWhy() throws {
    let subject = client.subject("t")
    let _: PublishOpen = try broker.takeOnly()
    broker.send(Fault(code: .topicDeleted, message: "gone"), 1)
    broker.settle()
    let publish = Later<TopicSubject.Receipt>()
    subject.publish("a", completion: publish.complete)
    #expect(publish.error == .topicDeleted)
  }

  @Test func aReleasedSubjectSendsWhatItHasThenLetsGo() throws {
    var subject: TopicSubject? = client.subject("t")
    try broker.open(1)
    subject?.send("a")
    subject?.send("b")
    subject = nil
    #expect(payloads(broker.takeReceived()) == [["a"]])
    broker.send(Demand(grantedThrough: 2), 1)
    #expect(payloads(broker.takeReceived()) == [["b"]])
    broker.send(Ack(through: 1, lastOffset: 0), 1)
    #expect(broker.takeReceived().isEmpty)
    broker.send(Ack(through: 2, lastOffset: 1), 1)
    let _: Cancel = try broker.takeOnly()
    broker.send(Cancelled(), 1)
    broker.settle()
    #expect(client.failure == nil)
  }

  // MARK: Upstream

  /// A source that records the demand it receives.
  private final class Source: Publisher, Subscription, @unchecked Sendable {
    typealias Output = Message
    typealias Failure = ClientError

    var requests: [Int?] = []
    var isCancelled = false
    private var subscriber: AnySubscriber<Message, ClientError>?

    func receive<S: Subscriber>(subscriber: S) where S.Input == Message, S.Failure == ClientError {
      self.subscriber = AnySubscriber(subscriber)
      subscriber.receive(subscription: self)
    }

    func request(_ demand: Subscribers.Demand) { requests.append(demand.max) }

    func cancel() {
      isCancelled = true
      subscriber = nil
    }

    func send(_ texts: String...) {
      for text in texts { _ = subscriber?.receive(Message(text)) }
    }

    func finish() { subscriber?.receive(completion: .finished) }
  }

  @Test func upstreamIsAskedForWhatTheBrokerGrants() throws {
    let subject = client.subject("t")
    let source = Source()
    let cancellable = source.subscribe(subject)
    broker.settle()
    #expect(source.requests == [])
    try broker.open(3)
    #expect(source.requests == [3])
    source.send("a", "b", "c")
    #expect(payloads(broker.takeReceived()) == [["a", "b", "c"]])
    #expect(source.requests == [3])
    broker.send(Demand(grantedThrough: 8), 1)
    broker.settle()
    #expect(source.requests == [3, 5])
    source.finish()
    #expect(broker.takeReceived().map(\.type) == [.complete])
    _ = cancellable
  }

  @Test func upstreamIsNotAskedForMoreThanTheBufferHolds() throws {
    let subject = client.subject("t", buffer: .init(records: 4))
    let source = Source()
    let cancellable = source.subscribe(subject)
    try broker.open(1_000)
    #expect(source.requests == [4])
    source.send("a", "b", "c", "d")
    broker.settle()
    #expect(source.requests == [4, 4])
    _ = cancellable
  }

  @Test func longRecordsFromUpstreamAreTakenOneByOne() throws {
    let subject = client.subject("t", buffer: .init(bytes: 100))
    let source = Source()
    let cancellable = source.subscribe(subject)
    try broker.open(1_000)
    #expect(source.requests == [1])
    let long = String(repeating: "x", count: 5_000)
    source.send(long)
    #expect(payloads(broker.takeReceived()) == [[long]])
    #expect(source.requests == [1, 1])
    _ = cancellable
  }

  @Test func upstreamIsCancelledWithTheTopic() throws {
    let subject = client.subject("t")
    let source = Source()
    let cancellable = source.subscribe(subject)
    try broker.open(3)
    broker.send(Complete(.finished), 1)
    broker.settle()
    #expect(source.isCancelled)
    let late = Source()
    let other = late.subscribe(subject)
    #expect(late.isCancelled)
    _ = (cancellable, other)
  }

  // MARK: As a publisher

  @Test func theSubjectPassesOnWhatIsSent() throws {
    let subject = client.subject("t", buffer: .init(records: 2), whenFull: .fail)
    try broker.open(0)
    let recorder = Recorder<Message>()
    subject.subscribe(recorder)
    for text in ["a", "b", "c"] { subject.send(Message(text)) }
    #expect(recorder.values == ["a", "b"])
  }
}
