import SluiceIO
import SluiceWire
import Synchronization
import TestSupport
import Testing

@testable import SluiceBroker
@testable import SluiceStore
@testable import SluiceTopics

/// The store was replaced by a copy, and clients know more records than it contains.
@Suite struct HistoryTests {
  private let setting: DurableSetting
  /// The topic's epoch when it had five records, and seven more.
  private let epoch: UInt64

  /// Publishes twelve records, then restores a copy with five.
  init() throws {
    setting = try DurableSetting()
    var client = try setting.client()
    try client.create("t", DurableSetting.durable())
    try client.publishAll(Self.texts(0..<5), to: "t")
    epoch = try client.show("t").summary.epoch
    try setting.restart()
    let copy = MemoryStore()
    let state = setting.store.memory.state.withLock { $0 }
    copy.state.withLock { $0 = state }
    client = try setting.client()
    try client.publishAll(Self.texts(5..<12), to: "t")
    try setting.restart(on: copy)
  }

  private static func texts(_ numbers: Range<Int>) -> [String] { numbers.map { "record \($0)" } }

  /// The next frame of that type on a stream.
  private func frame<F: Frame>(_ type: F.Type, _ client: RawClient, stream: UInt32) throws -> F {
    try client.receive("\(F.type) on stream \(stream)") { $0.stream == stream && $0.type == F.type }
      .decode(F.self)
  }

  /// Resumes the topic at an offset, as a client that knows all earlier records of the epoch.
  private func resume(
    _ client: RawClient, stream: UInt32, at offset: UInt64, of epoch: UInt64, _ topic: String = "t",
    cursor: String = ""
  ) throws -> Subscribed {
    try client.sendSubscribe(
      topic, stream: stream, from: .offset(offset), epoch: epoch, cursor: cursor)
    return try frame(Subscribed.self, client, stream: stream)
  }

  /// Opens a publication as producer 7, which knows the records of the epoch before an offset.
  private func publish(
    _ client: RawClient, stream: UInt32 = 1, knowing offset: UInt64, from first: UInt64
  ) throws -> PublishOpened {
    try client.send(
      PublishOpen(
        topic: "t", acknowledgement: .durable, producer: 7, firstSequence: first,
        known: KnownHistory(epoch: epoch, nextOffset: offset)), stream: stream)
    return try frame(PublishOpened.self, client, stream: stream)
  }

  private func expectMove(_ client: RawClient, stream: UInt32) throws {
    #expect(try frame(Fault.self, client, stream: stream).code == .topicMoved)
  }

  private func breaks() -> [StoreEvent] {
    setting.events.filter { if case .wentBack = $0 { true } else { false } }
  }

  @Test func aSubscriberThatKnowsMoreGoesOnWhereTheHistoriesPart() throws {
    let client = try setting.client()
    let place = try resume(client, stream: 1, at: 12, of: epoch)
    #expect(place.epoch != epoch && place.continues && place.nextOffset == 5)
    try client.publishAll(["another 5", "another 6"], to: "t")
    try client.receiveRecords(2, stream: 1)
    #expect(client.subscriptions[1]?.texts == ["another 5", "another 6"])
    #expect(breaks() == [.wentBack(topic: "t", from: 5, known: 12)])
  }

  @Test func oneThatKnowsNoMoreGoesOnWithoutAWord() throws {
    let client = try setting.client()
    let place = try resume(client, stream: 1, at: 5, of: epoch)
    #expect(place.epoch == epoch && place.nextOffset == 5)
    #expect(breaks().isEmpty)
  }

  @Test func anOffsetWithoutAnEpochIsAWish() throws {
    let client = try setting.client()
    let place = try client.subscribe("t", stream: 1, from: .offset(12))
    #expect(place.epoch == epoch && place.nextOffset == 12)
    #expect(breaks().isEmpty)
  }

  @Test func theEpochChangesOnceHoweverMuchClientsSayThatTheyKnow() throws {
    let client = try setting.client()
    let first = try resume(client, stream: 1, at: 12, of: epoch)
    let second = try resume(client, stream: 2, at: 99, of: first.epoch)
    #expect(second.epoch == first.epoch)
    let third = try resume(client, stream: 3, at: 50, of: epoch)
    #expect(third.epoch == first.epoch && third.nextOffset == 5)
    #expect(breaks().count == 1)
  }

  /// The client was moved to another epoch after the copy was made. Without a new epoch number, new records would have that of the copied history.
  @Test func aClientOfAnEpochThatTheStoreDoesNotKnowMakesTheNumberChange() throws {
    let client = try setting.client()
    let unknown = epoch ^ 1
    try client.sendSubscribe("t", stream: 1, from: .offset(3), epoch: unknown)
    #expect(try frame(Fault.self, client, stream: 1).code == .epochChanged)
    let number = try client.show("t").summary.epoch
    #expect(number != epoch)
    let place = try resume(client, stream: 2, at: 5, of: epoch)
    #expect(place.epoch == number && place.continues && place.nextOffset == 5)
    #expect(breaks().isEmpty)
    try client.sendSubscribe("t", stream: 3, from: .offset(3), epoch: unknown)
    #expect(try frame(Fault.self, client, stream: 3).code == .epochChanged)
    #expect(try client.show("t").summary.epoch == number)
  }

  @Test func aProducerOfAnEpochThatTheStoreDoesNotKnowMakesTheNumberChange() throws {
    let client = try setting.client()
    try client.send(
      PublishOpen(
        topic: "t", acknowledgement: .durable, producer: 7, firstSequence: 3,
        known: KnownHistory(epoch: epoch ^ 1, nextOffset: 3)), stream: 1)
    let opened = try frame(PublishOpened.self, client, stream: 1)
    #expect(opened.epoch != epoch && opened.epoch != epoch ^ 1 && opened.lostFrom == 0)
    #expect(breaks().isEmpty)
  }

  @Test func noClientIsAheadOfATopicThatTheBrokerHasMade() throws {
    let client = try setting.client()
    try client.create("new", DurableSetting.durable())
    let number = try client.show("new").summary.epoch
    let place = try resume(client, stream: 1, at: 12, of: number, "new")
    #expect(place.epoch == number)
    try client.sendSubscribe("new", stream: 2, from: .offset(3), epoch: number ^ 1)
    #expect(try frame(Fault.self, client, stream: 2).code == .epochChanged)
    #expect(try client.show("new").summary.epoch == number)
    #expect(breaks().isEmpty)
  }

  @Test func attachedSubscribersBeginAgainWhereTheyAre() throws {
    let client = try setting.client()
    _ = try resume(client, stream: 1, at: 5, of: epoch)
    try client.publishAll(["another 5", "another 6"], to: "t")
    try client.receiveRecords(2, stream: 1)
    let other = try setting.client()
    let ahead = try resume(other, stream: 1, at: 12, of: epoch)
    #expect(ahead.nextOffset == 5)
    try expectMove(client, stream: 1)
    try client.publishAll(["another 7"], to: "t")
    let again = try resume(client, stream: 2, at: 7, of: epoch)
    #expect(again.epoch == ahead.epoch && again.continues && again.nextOffset == 7)
    try client.receiveRecords(1, stream: 2)
    #expect(client.subscriptions[2]?.texts == ["another 7"])
    try other.receiveRecords(3, stream: 1)
    #expect(other.subscriptions[1]?.texts == ["another 5", "another 6", "another 7"])
  }

  @Test func patternsGoOnInTheSameWay() throws {
    let client = try setting.client()
    try client.send(
      SubscribePattern(
        pattern: "*", start: .offset(0), grantedThrough: Credit.unlimited,
        positions: [TopicPosition(topic: "t", epoch: epoch, nextOffset: 12)]), stream: 1)
    let matched = try frame(Matched.self, client, stream: 1)
    #expect(matched.place.epoch != epoch && matched.place.continues && matched.place.nextOffset == 5)
    #expect(breaks() == [.wentBack(topic: "t", from: 5, known: 12)])
  }

  @Test func aPatternsSubscriberIsToldTheNumberOfTheEpochWithinItsStream() throws {
    let client = try setting.client()
    try client.send(
      SubscribePattern(pattern: "*", start: .earliest, grantedThrough: Credit.unlimited), stream: 1)
    let first = try frame(Matched.self, client, stream: 1)
    #expect(first.place.epoch == epoch)
    // All five records were sent.
    _ = try frame(Live.self, client, stream: 1)
    let other = try setting.client()
    let ahead = try resume(other, stream: 1, at: 12, of: epoch)
    let second = try frame(Matched.self, client, stream: 1)
    #expect(second.number != first.number && second.place.epoch == ahead.epoch)
    #expect(second.place.continues && second.place.nextOffset == 5)
  }

  @Test func aCursorThatTheCopyDoesNotHaveIsMadeAgain() throws {
    let client = try setting.client()
    let place = try resume(client, stream: 1, at: 12, of: epoch, cursor: "c")
    #expect(place.continues && place.nextOffset == 5)
    #expect(try client.listCursors(of: "t", limit: 10).cursors.map(\.nextOffset) == [5])
  }

  @Test func aProducerIsToldWhichAcknowledgedRecordsAreLost() throws {
    let client = try setting.client()
    let opened = try publish(client, knowing: 12, from: 12)
    #expect(opened.epoch != epoch && opened.lostFrom == 5 && opened.nextSequence == 12)
    #expect(breaks() == [.wentBack(topic: "t", from: 5, known: 12)])
  }

  @Test func aProducerThatKnowsNoMoreLosesNothing() throws {
    let client = try setting.client()
    let opened = try publish(client, knowing: 5, from: 5)
    #expect(opened.epoch == epoch && opened.lostFrom == nil)
  }

  @Test func attachedProducersWithANumberBeginAgain() throws {
    let client = try setting.client()
    try client.openPublication("t", stream: 1, acknowledgement: .durable, producer: 7)
    try client.publish(["another 5"], stream: 1)
    try client.receiveAcknowledgements(stream: 1)
    let other = try setting.client()
    _ = try resume(other, stream: 1, at: 12, of: epoch)
    try expectMove(client, stream: 1)
    #expect(try publish(client, stream: 2, knowing: 6, from: 1).lostFrom == nil)
  }

  @Test func theNumberIsOnDiskBeforeASubscriberKnowsIt() throws {
    let client = try setting.client()
    let place = try resume(client, stream: 1, at: 12, of: epoch)
    try setting.restart(cutOff: true)
    let again = try setting.client()
    let same = try resume(again, stream: 1, at: 5, of: place.epoch)
    #expect(same.epoch == place.epoch && same.nextOffset == 5)
  }

  @Test(arguments: [false, true])
  func theNumberIsOnDiskBeforeAPatternsSubscriberKnowsIt(isAttached: Bool) throws {
    let client = try setting.client()
    var frame = SubscribePattern(pattern: "*", start: .earliest, grantedThrough: Credit.unlimited)
    if !isAttached {
      frame.start = .offset(0)
      frame.positions = [TopicPosition(topic: "t", epoch: epoch, nextOffset: 12)]
    }
    if isAttached {
      try client.send(frame, stream: 1)
      _ = try self.frame(Matched.self, client, stream: 1)
      // All five records were sent.
      _ = try self.frame(Live.self, client, stream: 1)
    }
    setting.store.hold()
    if isAttached {
      let other = try setting.client()
      try other.sendSubscribe("t", stream: 1, from: .offset(12), epoch: epoch)
    } else {
      try client.send(frame, stream: 1)
    }
    try eventually("the break is noticed") { breaks().count == 1 }
    var early = 0
    for token in 1...2 as ClosedRange<UInt64> {
      try client.send(Ping(token: token), stream: 0)
      _ = try client.receive("PONG") { frame in
        if frame.type == Matched.type { early += 1 }
        return frame.type == .pong
      }
    }
    #expect(early == 0)
    setting.store.release()
    let matched = try self.frame(Matched.self, client, stream: 1)
    #expect(matched.place.epoch != epoch && matched.place.continues && matched.place.nextOffset == 5)
  }

  @Test func theProblemIsShown() async throws {
    let client = try setting.client()
    _ = try resume(client, stream: 1, at: 12, of: epoch)
    var finder = ProblemFinder()
    let problems = finder.problems(in: await setting.broker.snapshot())
    #expect(problems.map(\.kind) == [.lostHistory])
    #expect(problems.first?.place == .topic("t"))
    #expect(problems.first?.sentence.contains("offsets 5 to 11") == true)
  }
}
