import SluiceAccess
import SluiceBroker
import SluiceDoors
import SluiceTLS
import SluiceWire
import Synchronization
import Testing

@testable import SluiceStore

/// How streams end, and where their readers resume.
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
    // With one topic, the same records have ids.
    #expect(ids(stage.ask("GET /topics/a.x?from=earliest&until=live", "", events)).map(\.offset) == [0])
  }

  @Test(arguments: ["GET /topics/a.%2A", "GET /topics/%3E"]) func aPatternIsNotResumedAtOneOffset(
    line: String
  ) {
    _ = stage.publish("a.x", "1")
    let answer = stage.ask(line, "", events, "Last-Event-ID: 5")
    #expect(answer.status == 400)
    #expect(answer.body.contains("Last-Event-ID can't give a position in each topic of a pattern"))
  }

  @Test func anIdThatIsNoneIsRefused() {
    _ = stage.publish("t", "1")
    for id in [
      "yesterday", "\(UInt64.max)", "+5", "-5", "5-", "0-5", "a-b-5", "A-5", "a-+5", "a-\(UInt64.max)",
      "zzzzzzzzzzzzzz-5", "-end", "0-end", "A-end", "1-End", "1-2-end", "1-end-2", "zzzzzzzzzzzzzz-end",
    ] {
      #expect(stage.ask("GET /topics/t", "", events, "Last-Event-ID: \(id)").status == 400, "\(id)")
    }
  }

  /// The ids of a response's events. Each has an epoch.
  private func ids(_ answer: HTTPStage.Answer) -> [(epoch: String, offset: Int)] {
    answer.body.split(whereSeparator: \.isNewline).filter { $0.hasPrefix("id: ") }.compactMap { line in
      let parts = line.dropFirst(4).split(separator: "-")
      guard parts.count == 2, let offset = Int(parts[1]) else { return nil }
      return (String(parts[0]), offset)
    }
  }

  @Test func anIdNamesTheLifeOfTheTopicThatItIsOf() throws {
    for text in ["a", "b", "c"] { _ = stage.publish("t", text) }
    let all = ids(stage.ask("GET /topics/t?from=earliest&until=live", "", events))
    #expect(all.map(\.offset) == [0, 1, 2] && Set(all.map(\.epoch)).count == 1)
    let epoch = try #require(all.first?.epoch)
    let settings = stage.ask("GET /topics/t/settings").body
    let number = try #require(UInt64(epoch, radix: 36))
    #expect(settings.contains("\"epoch\":\"\(number)\""), "\(settings)")
    let rest = stage.ask("GET /topics/t?until=live", "", events, "Last-Event-ID: \(epoch)-0")
    #expect(ids(rest).map(\.offset) == [1, 2] && !rest.body.contains("restarted"), "\(rest)")
    let none = stage.ask("GET /topics/t?until=live", "", events, "Last-Event-ID: \(epoch)-2")
    #expect(ids(none).isEmpty && !none.body.contains("restarted"), "\(none)")
  }

  /// The new epoch has more records than the client received in the old one, so an offset alone can't show the change.
  @Test(arguments: ["", "&cursor=c", "&count=2", "&demand=1"])
  func aNewLifeThatHasGrownBeyondTheOffsetIsTold(parameters: String) throws {
    for text in ["a", "b"] { _ = stage.publish("t", text) }
    let old = try #require(ids(stage.ask("GET /topics/t?from=earliest&until=live", "", events)).first?.epoch)
    #expect(stage.ask("DELETE /topics/t").status == 204)
    for text in ["A", "B", "C", "D"] { _ = stage.publish("t", text) }
    let answer = stage.ask(
      "GET /topics/t?until=live\(parameters)", "", events, "Last-Event-ID: \(old)-1")
    #expect(answer.status == 200)
    #expect(answer.body.contains("event: restarted\ndata: {\"topic\":\"t\"}\n\n"), "\(answer)")
    let found = ids(answer)
    #expect(found.map(\.offset) == (parameters == "&count=2" ? [0, 1] : [0, 1, 2, 3]), "\(answer)")
    #expect(found.allSatisfy { $0.epoch != old })
  }

  @Test func anIdOfATopicThatIsGoneIsAnsweredAsWithoutOne() {
    #expect(stage.ask("GET /topics/t", "", events, "Last-Event-ID: 1kx-5").status == 404)
  }

  @Test func aDurableTopicGoesOnOverTheEndOfItsBroker() throws {
    let stage = try HTTPStage(store: MemoryStore())
    for text in ["a", "b"] { _ = stage.publish("t", text) }
    let epoch = try #require(
      ids(stage.ask("GET /topics/t?from=earliest&until=live", "", events)).first?.epoch)
    try stage.door.restart()
    _ = stage.publish("t", "c")
    let answer = stage.ask("GET /topics/t?until=live", "", events, "Last-Event-ID: \(epoch)-0")
    #expect(!answer.body.contains("restarted"), "\(answer)")
    #expect(ids(answer).map(\.offset) == [1, 2], "\(answer)")
  }

  /// The topic has two records and gets two more. Then a copy of the store with the first two is restored.
  @Test func aClientThatKnowsWhatTheStoreHasLostGoesOnWhereTheHistoriesPart() throws {
    let store = MemoryStore()
    let stage = try HTTPStage(store: store) { $0.identity = nil }
    for text in ["a", "b"] { _ = stage.publish("t", text) }
    try stage.door.restart(orderly: true)
    let copy = store.state.withLock { $0 }
    for text in ["c", "d"] { _ = stage.publish("t", text) }
    let all = ids(stage.ask("GET /topics/t?from=earliest&until=live", "", events))
    let epoch = try #require(all.first?.epoch)
    #expect(all.map(\.offset) == [0, 1, 2, 3])
    try stage.door.restart(orderly: true) { store.state.withLock { $0 = copy } }
    let reader = stage.begin("GET /topics/t", "", [events, "Last-Event-ID: \(epoch)-3"])
    _ = stage.publish("t", "C")
    #expect(
      reader.text.contains("event: rewound\ndata: {\"topic\":\"t\",\"offset\":2}\n\n"), "\(reader.text)")
    let found = ids(HTTPStage.Answer(text: reader.text))
    #expect(found.map(\.offset) == [2] && found.allSatisfy { $0.epoch != epoch }, "\(reader.text)")
    // A client that received no lost record isn't rewound.
    let other = stage.ask("GET /topics/t?until=live", "", events, "Last-Event-ID: \(epoch)-1")
    #expect(!other.body.contains("rewound") && ids(other).map(\.offset) == [2], "\(other)")
  }

  /// A topic in memory has a new epoch with the next broker.
  @Test func aTopicInMemoryIsAnotherWithTheNextBroker() throws {
    let stage = try HTTPStage { $0.identity = nil }
    for text in ["a", "b"] { _ = stage.publish("t", text) }
    let epoch = try #require(
      ids(stage.ask("GET /topics/t?from=earliest&until=live", "", events)).first?.epoch)
    try stage.door.restart()
    for text in ["A", "B", "C"] { _ = stage.publish("t", text) }
    let answer = stage.ask("GET /topics/t?until=live", "", events, "Last-Event-ID: \(epoch)-1")
    #expect(answer.body.contains("event: restarted"), "\(answer)")
    #expect(ids(answer).map(\.offset) == [0, 1, 2], "\(answer)")
  }

  /// For example, the topic was in memory and the broker has restarted: the client has seen offsets that the topic doesn't have yet. It gets all records
  /// of the topic, and a notice.
  @Test(arguments: ["3", "1000000"]) func anIdOfAnotherLifeOfTheTopicBeginsWithItsFirstRecord(id: String) {
    for text in ["a", "b", "c"] { _ = stage.publish("t", text) }
    let answer = stage.ask("GET /topics/t?until=live", "", events, "Last-Event-ID: \(id)")
    #expect(answer.status == 200)
    #expect(answer.body.contains("event: restarted\ndata: {\"topic\":\"t\"}\n\n"), "\(answer)")
    #expect(ids(answer).map(\.offset) == [0, 1, 2], "\(answer)")
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

  /// The gateway asks the broker by a subscription where the topic ends. The topic has a subscriber at all times, since it would restart otherwise.
  @Test func aTopicThatLastsAsLongAsItsReadersGoesOnForOneThatComesBack() throws {
    #expect(stage.ask("PUT /topics/t?scope=while-connected").status < 300)
    for text in ["a", "b", "c"] { _ = stage.publish("t", text) }
    let answer = stage.ask("GET /topics/t?until=live", "", events, "Last-Event-ID: 0")
    #expect(ids(answer).map(\.offset) == [1, 2], "\(answer)")
    #expect(!answer.body.contains("restarted"), "\(answer)")
  }

  /// The id of the event of the topic's end, `EPOCH-end`.
  private func endID(_ answer: HTTPStage.Answer) -> String? {
    let line = answer.body.split(whereSeparator: \.isNewline).last { $0.hasPrefix("id: ") }
    return line.map { String($0.dropFirst(4)) }
  }

  @Test(arguments: [Complete.Ending.finished, .failure(code: ErrorCode(rawValue: 7), message: "broken")])
  func aClientThatHasHadTheEndIsToldNotToComeAgain(ending: Complete.Ending) throws {
    try end("t", ending, after: ["a", "b"])
    // A client that received the last record but not the end gets the end.
    let answer = stage.ask("GET /topics/t", "", events, "Last-Event-ID: 1")
    #expect(answer.status == 200)
    let settings = stage.ask("GET /topics/t/settings").body
    let id = try #require(endID(answer))
    let epoch = try #require(UInt64(id.prefix { $0 != "-" }, radix: 36))
    #expect(answer.body.contains("id: \(id)\nevent: f") && id.hasSuffix("-end"), "\(answer)")
    #expect(settings.contains("\"epoch\":\"\(epoch)\""), "\(settings)")
    // Ids of earlier versions had no epoch.
    for id in [id, "end"] {
      for request in [
        "GET /topics/t", "HEAD /topics/t", "GET /topics/t?cursor=c", "GET /topics/t?until=live",
      ] {
        let again = stage.ask(request, "", events, "Last-Event-ID: \(id)")
        #expect(again.status == 204 && again.body.isEmpty, "\(request) after \(id): \(again)")
      }
    }
  }

  @Test(arguments: ["", "?cursor=c", "?demand=1", "?from=new"])
  func aClientThatHasHadTheEndOfAnotherLifeGetsTheNewOne(parameters: String) throws {
    try end("t", .finished, after: ["a", "b", "c"])
    let old = try #require(endID(stage.ask("GET /topics/t?from=earliest", "", events)))
    #expect(stage.ask("DELETE /topics/t").status == 204)
    #expect(stage.ask("GET /topics/t\(parameters)", "", events, "Last-Event-ID: \(old)").status == 404)
    try end("t", .finished, after: ["A", "B"])
    let head = stage.ask("HEAD /topics/t\(parameters)", "", events, "Last-Event-ID: \(old)")
    #expect(head.status == 200 && head.body.isEmpty)
    let answer = stage.ask("GET /topics/t\(parameters)", "", events, "Last-Event-ID: \(old)")
    #expect(answer.status == 200)
    #expect(answer.body.contains("event: restarted\ndata: {\"topic\":\"t\"}\n\n"), "\(answer)")
    #expect(ids(answer).map(\.offset) == [0, 1], "\(answer)")
    let new = try #require(endID(answer))
    #expect(new != old && new.hasSuffix("-end"))
    #expect(stage.ask("GET /topics/t", "", events, "Last-Event-ID: \(new)").status == 204)
  }

  /// The new epoch hasn't ended, so its reader stays.
  @Test func aClientThatHasHadTheEndOfAnotherLifeStaysForTheNewOne() throws {
    try end("t", .finished, after: ["a"])
    let old = try #require(endID(stage.ask("GET /topics/t?from=earliest", "", events)))
    #expect(stage.ask("DELETE /topics/t").status == 204)
    _ = stage.publish("t", "A")
    let client = stage.begin("GET /topics/t", "", [events, "Last-Event-ID: \(old)"])
    _ = stage.publish("t", "B")
    #expect(client.text.contains("\"payload\":\"A\"") && client.text.contains("\"payload\":\"B\""))
    #expect(client.text.ranges(of: "event: restarted").count == 1 && !client.hasEnded, "\(client.text)")
  }

  @Test(arguments: [true, false]) func theEndOfADurableTopicIsThatOfTheNextBrokerToo(orderly: Bool) throws {
    let stage = try HTTPStage(store: MemoryStore())
    let native = try NativeClient(stage.door)
    native.publish("t", ["a", "b"], stream: 1)
    native.send(Complete(.finished), stream: 1)
    native.settle(.seconds(2))
    let id = try #require(endID(stage.ask("GET /topics/t?from=earliest", "", events)))
    try stage.door.restart(orderly: orderly)
    let answer = stage.ask("GET /topics/t", "", events, "Last-Event-ID: \(id)")
    #expect(answer.status == 204, "\(answer)")
  }

  @Test func theEndOfALifeThatGoesOnIsNoId() throws {
    _ = stage.publish("t", "a")
    let all = ids(stage.ask("GET /topics/t?from=earliest&until=live", "", events))
    let epoch = try #require(all.first?.epoch)
    #expect(stage.ask("GET /topics/t", "", events, "Last-Event-ID: \(epoch)-end").status == 400)
  }

  @Test func theEndOfALifeTellsNothingToAClientThatMayNotRead() throws {
    var policy = AccessPolicy()
    policy.users["u"] = PasswordHash(of: "p", cost: .init(logN: 4, r: 1, p: 1))
    policy.permissions["u"] = Permissions([
      Permissions.Rule([.publish, .create], on: try TopicPattern(">"))
    ])
    let user = "Authorization: Basic dTpw"
    let stage = try HTTPStage(access: policy)
    _ = stage.publish("t", "1", user)
    for topic in ["t", "missing"] {
      let answer = stage.ask("GET /topics/\(topic)", "", user, events, "Last-Event-ID: 1kx-end")
      #expect(answer.status == 403, "\(topic): \(answer)")
    }
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
