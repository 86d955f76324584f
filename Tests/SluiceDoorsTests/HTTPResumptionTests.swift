import SluiceDoors
import SluiceWire
import Testing

/// How streams end, and where their readers go on.
@Suite struct HTTPResumptionTests {
  private let stage: HTTPStage
  private let events = "Accept: text/event-stream"

  init() throws {
    stage = try HTTPStage()
  }

  private func end(_ topic: String, _ ending: Complete.Ending, after texts: [String]) throws {
    let native = try NativeClient(stage.door)
    native.publish(topic, texts, stream: 1)
    native.send(Complete(ending), stream: 1)
    native.settle()
  }

  @Test func eventsOfAPatternHaveNoIds() {
    _ = stage.publish("a.x", "1")
    _ = stage.publish("a.y", "2")
    let answer = stage.ask("GET /topics/a.%2A?from=earliest&until=live", "", events)
    #expect(
      answer.body.contains("\"payload\":\"1\"") && answer.body.contains("\"payload\":\"2\""), "\(answer)")
    #expect(!answer.body.contains("id:"), "\(answer)")
    // The same records of one topic have them.
    #expect(stage.ask("GET /topics/a.x?from=earliest&until=live", "", events).body.contains("id: 0\n"))
  }

  @Test(arguments: ["GET /topics/a.%2A", "GET /topics/%3E"]) func aPatternIsNotResumedAtOneOffset(
    line: String
  ) {
    _ = stage.publish("a.x", "1")
    let answer = stage.ask(line, "", events, "Last-Event-ID: 5")
    #expect(answer.status == 400)
    #expect(answer.body.contains("Last-Event-ID can't say where each topic of a pattern goes on"))
  }

  @Test func anIdThatIsNoneIsRefused() {
    _ = stage.publish("t", "1")
    #expect(stage.ask("GET /topics/t", "", events, "Last-Event-ID: yesterday").status == 400)
    #expect(stage.ask("GET /topics/t", "", events, "Last-Event-ID: \(UInt64.max)").status == 400)
  }

  /// The topic was in memory, say, and the broker has been started again: the client has had offsets that this topic doesn't have yet. It gets all of its
  /// records, and is told so.
  @Test(arguments: ["3", "1000000"]) func anIdOfAnotherLifeOfTheTopicBeginsWithItsFirstRecord(id: String) {
    for text in ["a", "b", "c"] { _ = stage.publish("t", text) }
    let answer = stage.ask("GET /topics/t?until=live", "", events, "Last-Event-ID: \(id)")
    #expect(answer.status == 200)
    #expect(answer.body.contains("event: restarted\ndata: {\"topic\":\"t\"}\n\n"), "\(answer)")
    for offset in 0..<3 { #expect(answer.body.contains("id: \(offset)\n"), "\(answer)") }
    let last = stage.ask("GET /topics/t?until=live", "", events, "Last-Event-ID: 2")
    #expect(!last.body.contains("data:"), "\(last)")
  }

  @Test func readersOfAnotherLifeOfTheTopicGetItsNewRecordsToo() {
    _ = stage.publish("t", "a")
    let client = stage.begin("GET /topics/t?demand=1", "", [events, "Last-Event-ID: 7"])
    _ = stage.publish("t", "b")
    let text = client.text
    #expect(text.contains("\"payload\":\"a\"") && text.contains("\"payload\":\"b\""), "\(text)")
  }

  /// The broker is asked where the topic ends by a subscription. The topic has a subscriber all the time: it would start over otherwise.
  @Test func aTopicThatLastsAsLongAsItsReadersGoesOnForOneThatComesBack() throws {
    #expect(stage.ask("PUT /topics/t?scope=while-connected").status < 300)
    for text in ["a", "b", "c"] { _ = stage.publish("t", text) }
    let answer = stage.ask("GET /topics/t?until=live", "", events, "Last-Event-ID: 0")
    #expect(answer.body.contains("id: 1\n") && answer.body.contains("id: 2\n"), "\(answer)")
    #expect(!answer.body.contains("restarted"), "\(answer)")
  }

  @Test(arguments: [Complete.Ending.finished, .failure(code: ErrorCode(rawValue: 7), message: "broken")])
  func aClientThatHasHadTheEndIsToldNotToComeAgain(ending: Complete.Ending) throws {
    try end("t", ending, after: ["a", "b"])
    // One that has had the last record and not the end gets the end.
    let answer = stage.ask("GET /topics/t", "", events, "Last-Event-ID: 1")
    #expect(answer.status == 200)
    #expect(answer.body.contains("id: end\nevent: f"), "\(answer)")
    let again = stage.ask("GET /topics/t", "", events, "Last-Event-ID: end")
    #expect(again.status == 204)
    #expect(again.body.isEmpty)
  }

  @Test func payloadsAloneOfATopicThatFailedAreNotWhole() throws {
    try end("good", .finished, after: ["a", "b"])
    try end("bad", .failure(code: ErrorCode(rawValue: 7), message: "broken"), after: ["a", "b"])
    let raw = "Accept: application/octet-stream"
    let good = stage.begin("GET /topics/good?from=earliest", "", [raw])
    let bad = stage.begin("GET /topics/bad?from=earliest", "", [raw])
    #expect(good.hasEnded && bad.hasEnded)
    #expect(good.text.hasSuffix("\r\n0\r\n\r\n"))
    #expect(bad.text.hasSuffix("ab\r\n"), "\(bad.text)")
  }

  @Test func idleEventsGetCommentsAtAnInterval() throws {
    _ = stage.publish("t", "1")
    let client = stage.begin("GET /topics/t", "", [events])
    #expect(!client.text.contains(":\n\n"))
    // The record was written in the first interval.
    stage.door.settle(.seconds(46))
    #expect(
      client.text.split(separator: "3\r\n:\n\n\r\n", omittingEmptySubsequences: false).count == 3,
      "\(client.text)")
  }

  @Test func linesAreKeptAliveWhereTheClientAsks() throws {
    _ = stage.publish("t", "1")
    let (plain, asked) = (
      stage.begin("GET /topics/t?from=earliest"), stage.begin("GET /topics/t?from=earliest&keepalive=2s")
    )
    stage.door.settle(.seconds(7))
    #expect(plain.text.hasSuffix("\"payload\":\"1\"}\n\r\n"))
    #expect(asked.text.hasSuffix("\"payload\":\"1\"}\n\r\n1\r\n\n\r\n1\r\n\n\r\n"), "\(asked.text)")
    let raw = stage.ask("GET /topics/t?keepalive=2s", "", "Accept: application/octet-stream")
    #expect(raw.status == 400)
  }

  @Test func withoutAnIntervalNothingIsSent() throws {
    var options = DoorOptions()
    options.keepalive = .zero
    let stage = try HTTPStage(options: options)
    _ = stage.publish("t", "1")
    let client = stage.begin("GET /topics/t", "", [events])
    stage.door.settle(.seconds(100))
    #expect(!client.text.contains(":\n\n"))
    #expect(!client.hasEnded)
  }
}
