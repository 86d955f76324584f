import ReactiveCore
import SluiceIO
import SluiceSimulation
import SluiceWire
import Testing

@testable import SluiceClient

/// Filters in the client's API: the frames sent, and the records received.
@Suite struct FilterTests {
  private let messages: [Message] = (0..<30).map {
    Message(
      "\($0)", key: "\($0 % 2 == 0 ? "eu" : "us").\($0)",
      headers: [.init("kind", $0 % 3 == 0 ? "new" : "old")])
  }

  @Test func conditionsAreAddedUp() {
    let filter: RecordFilter = .key(hasPrefix: "eu.") && .header("kind", equals: "new") && .hasHeader("x")
    #expect(
      filter.conditions == [
        .init(.key, .hasPrefix(Array("eu.".utf8))), .init(.header("kind"), .equals(Array("new".utf8))),
        .init(.header("x"), .exists),
      ])
    #expect((.all && .hasKey) == RecordFilter.hasKey)
    #expect(RecordFilter.all.isEmpty)
  }

  @Test func onlyWhatIsWantedComesAndCounts() throws {
    let stage = try Stage()
    let client = try stage.client()
    try stage.publish(messages, to: "orders", with: client)
    let filter: RecordFilter = .key(hasPrefix: "eu.") && .header("kind", hasPrefix: "n")
    let recorder = Recorder<TopicEvent<TopicRecord>>(initial: .max(4))
    client.topic("orders", where: filter).events.subscribe(recorder)
    #expect(stage.world.run { recorder.values.count == 4 })
    #expect(recorder.history == [.subscription, .value("0"), .value("6"), .value("12"), .value("18")])
    recorder.subscription?.request(.unlimited)
    #expect(stage.world.run { recorder.history.last == .live })
    try stage.publish(
      [Message("late", key: "eu.x", headers: [.init("kind", "new")])], to: "orders", with: client)
    #expect(stage.world.run { recorder.values.last == "late" })
    #expect(recorder.values == ["0", "6", "12", "18", "24", "late"])
  }

  @Test func anOutageLeavesNoGapAndNoRecordTwice() throws {
    let stage = try Stage()
    let client = try stage.persistentClient()
    let publisher = try stage.client("publisher")
    let recorder = Recorder<TopicRecord>()
    client.topic("orders", where: .key(hasPrefix: "us.")).subscribe(recorder)
    for start in stride(from: 0, to: 30, by: 5) {
      try stage.publish(Array(messages[start..<start + 5]), to: "orders", with: publisher)
      if start % 10 == 0 { stage.latestConnection(of: client.core.loop as! SimulatedLoop)?.reset() }
    }
    #expect(stage.world.run { recorder.values.count == 15 })
    #expect(recorder.values == (0..<15).map { "\($0 * 2 + 1)" })
  }

  @Test func oneThatIsTooMuchIsRefusedHere() throws {
    let stage = try Stage()
    let client = try stage.client()
    let long = Recorder<TopicRecord>()
    client.topic("t", where: .key(equals: String(repeating: "x", count: 1_025))).subscribe(long)
    let many = Recorder<TopicRecord>()
    let filter = (0..<17).reduce(RecordFilter.all) { filter, _ in filter && .hasKey }
    client.topic("t", where: filter).subscribe(many)
    #expect(stage.world.run { long.completion != nil && many.completion != nil })
    #expect(long.completion == .failure(.limitReached))
    #expect(many.completion == .failure(.limitReached))
    // The request was never sent.
    #expect(try stage.subscriptions("t", client) == nil)
  }
}
