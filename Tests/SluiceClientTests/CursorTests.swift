import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// Durable cursors: start positions, commits, and the end of subscriptions.
@Suite struct CursorTests {
  private let stage: Stage
  private let client: Client

  init() throws {
    stage = try Stage()
    client = try stage.client()
    try stage.publish((0..<10).map { Message("\($0)") }, to: "t", with: client)
  }

  /// The cursor's position once all frames in transit have arrived.
  private func place(_ name: String) throws -> UInt64? {
    stage.world.run(for: .milliseconds(200))
    return try stage.wait { client.cursors(of: "t", completion: $0) }.first { $0.name == name }?.nextOffset
  }

  private func numbers(_ range: Range<Int>) -> [String] { range.map { "\($0)" } }

  @Test func whatTheSubscriberHasReturnedFromIsCommitted() throws {
    let first = Recorder<TopicRecord>(initial: .max(4))
    client.topic("t", cursor: "c").subscribe(first)
    #expect(stage.world.run { first.values.count == 4 })
    #expect(try place("c") == 4)
    first.subscription?.request(.max(2))
    #expect(stage.world.run { first.values.count == 6 })
    // A cancellation loses no commit.
    first.subscription?.cancel()
    let second = Recorder<TopicRecord>()
    client.topic("t", from: .new, cursor: "c").subscribe(second)
    #expect(stage.world.run { second.values.count == 4 })
    #expect(second.values == numbers(6..<10))
    #expect(try place("c") == 10)
  }

  @Test func itSurvivesTheClient() throws {
    let other = try stage.client("other")
    let first = Recorder<TopicRecord>(initial: .max(3))
    other.topic("t", cursor: "c").subscribe(first)
    #expect(stage.world.run { first.values.count == 3 })
    other.close()
    #expect(try place("c") == 3)
    let second = Recorder<TopicRecord>()
    client.topic("t", cursor: "c").subscribe(second)
    #expect(stage.world.run { second.values.count == 7 })
    #expect(second.values == numbers(3..<10))
  }

  @Test func whatIsPrefetchedIsNotCommittedBeforeItIsHandedOver() throws {
    let recorder = Recorder<TopicRecord>(initial: .max(2))
    client.topic("t", cursor: "c", prefetch: .keepFull(5)).subscribe(recorder)
    #expect(stage.world.run { recorder.values.count == 2 })
    #expect(try place("c") == 2)
  }

  @Test func byHandItIsTheSubscriberWhoSays() throws {
    var records: [TopicRecord] = []
    let recorder = Recorder<TopicRecord> { _, record in
      records.append(record)
      return .none
    }
    client.topic("t", cursor: .init("c", commit: .manual)).subscribe(recorder)
    #expect(stage.world.run { records.count == 10 })
    #expect(try place("c") == 0)
    records[5].commit()
    // A lower offset, so no frame is sent.
    records[2].commit()
    #expect(try place("c") == 6)
    records[0].commits?.commit(through: 7)
    #expect(try place("c") == 8)
    // Records that weren't received can't be committed.
    records[0].commits?.commit(through: .max)
    #expect(try place("c") == 10)
    #expect(recorder.completion == nil)
  }

  @Test func theLastRecordsOfATopicThatHasEndedAreCommitted() throws {
    try stage.wait { client.subject("t").complete(.finished, completion: $0) }
    let automatic = Recorder<TopicRecord>()
    client.topic("t", cursor: "a").subscribe(automatic)
    var records: [TopicRecord] = []
    let manual = Recorder<TopicRecord> { _, record in
      records.append(record)
      return .none
    }
    client.topic("t", cursor: .init("m", commit: .manual)).subscribe(manual)
    let late = Recorder<TopicRecord>(initial: .max(4))
    client.topic("t", cursor: "late", prefetch: .keepFull(100)).subscribe(late)
    #expect(stage.world.run { automatic.completion == .finished && manual.completion == .finished })
    #expect(stage.world.run { late.values.count == 4 })
    #expect(try place("a") == 10 && place("m") == 0 && place("late") == 4)
    records[3].commit()
    late.subscription?.request(.unlimited)
    #expect(try place("m") == 4 && place("late") == 10)
    // The free stream number belongs to another subscription by then.
    let other = Recorder<TopicRecord>()
    client.topic("t", cursor: "other").subscribe(other)
    #expect(stage.world.run { other.completion == .finished })
    records[9].commit()
    #expect(try place("m") == 10 && place("other") == 10)
  }

  @Test func whoComesLaterTakesItOver() throws {
    let first = Recorder<TopicRecord>()
    client.topic("t", cursor: "c").subscribe(first)
    #expect(stage.world.run { first.values.count == 10 })
    let second = Recorder<TopicRecord>()
    client.topic("t", cursor: "c").subscribe(second)
    #expect(stage.world.run { first.completion != nil })
    #expect(first.completion == .failure(.cursorTaken))
    try stage.publish(["10"], to: "t", with: client)
    #expect(stage.world.run { second.values == ["10"] })
    #expect(first.values.count == 10)
  }

  @Test func movingAndDeletingEndTheSubscription() throws {
    let first = Recorder<TopicRecord>()
    client.topic("t", cursor: "c").subscribe(first)
    #expect(stage.world.run { first.values.count == 10 })
    try stage.wait { client.moveCursor("c", of: "t", to: .last(2), completion: $0) }
    #expect(stage.world.run { first.completion == .failure(.cursorMoved) })
    let second = Recorder<TopicRecord>()
    client.topic("t", cursor: "c").subscribe(second)
    #expect(stage.world.run { second.values == ["8", "9"] })
    try stage.wait { client.deleteCursor("c", of: "t", completion: $0) }
    #expect(stage.world.run { second.completion == .failure(.cursorDeleted) })
    #expect(try stage.failure { client.deleteCursor("c", of: "t", completion: $0) }?.code == .unknownCursor)
    #expect(
      try stage.failure { client.moveCursor("a b", of: "t", to: .new, completion: $0) }?.code == .invalidTopic
    )
    #expect(try stage.failure { client.cursors(of: "u", completion: $0) }?.code == .unknownTopic)
    #expect(try place("c") == nil)
  }

  @Test func anOutageIsAPauseAndTheCursorGoesAlong() throws {
    let persistent = try stage.persistentClient()
    let recorder = Recorder<TopicRecord>()
    persistent.topic("t", cursor: "c").subscribe(recorder)
    #expect(stage.world.run { recorder.values.count == 10 })
    for number in 10..<20 {
      if number % 3 == 0 { stage.world.network.connections.last { !$0.isOver }?.reset() }
      let publisher = try stage.client("publisher \(number)")
      try stage.publish([Message("\(number)")], to: "t", with: publisher)
    }
    #expect(stage.world.run { recorder.values.count == 20 })
    #expect(recorder.values == numbers(0..<20))
    let observer = try stage.client("observer")
    #expect(
      try stage.wait { observer.cursors(of: "t", completion: $0) }.map(\.nextOffset) == [20])
  }

  @Test func movingDuringAnOutageIsNoticed() throws {
    let persistent = try stage.persistentClient()
    let recorder = Recorder<TopicRecord>()
    persistent.topic("t", cursor: "c").subscribe(recorder)
    #expect(stage.world.run { recorder.values.count == 10 })
    let link = stage.world.network.connections.last { !$0.isOver }
    link?.cut()
    try stage.wait { client.moveCursor("c", of: "t", to: .earliest, completion: $0) }
    link?.reset()
    #expect(stage.world.run { recorder.completion != nil })
    #expect(recorder.completion == .failure(.cursorMoved))
    #expect(try place("c") == 0)
  }

  @Test func aNameThatIsNoneIsRefusedHere() throws {
    let recorder = Recorder<TopicRecord>()
    client.topic("t", cursor: "a b").subscribe(recorder)
    #expect(stage.world.run { recorder.completion == .failure(.invalidTopic) })
  }
}
