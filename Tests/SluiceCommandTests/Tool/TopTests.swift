import SluiceIO
import SluiceWire
import Testing

@testable import SluiceTool

@Suite("The table of topics in use")
struct TopTests {
  private func summary(
    _ topic: String, next: UInt64, epoch: UInt64 = 1, subscribers: UInt32 = 0, producers: UInt32 = 0
  ) -> TopicSummary {
    TopicSummary(
      topic: topic, epoch: epoch, firstOffset: 0, nextOffset: next, bytes: 0, ending: nil,
      subscriptions: subscribers, publications: producers)
  }

  private func info(
    _ summary: TopicSummary, _ subscriptions: [TopicInfo.Subscription],
    waiting: [UInt64] = []
  ) -> TopicInfo {
    TopicInfo(
      summary: summary, settings: TopicSettings(), subscriptions: subscriptions,
      publications: waiting.map {
        TopicInfo.Publication(connection: 9, client: "p", stream: 1, granted: 0, received: 0, waiting: $0)
      })
  }

  private func subscription(
    _ client: String, sent: UInt64, granted: UInt64 = .max, holding: UInt64 = 0, connection: UInt64 = 1,
    limit: TopicInfo.HoldLimit = .none, share: UInt16 = 0
  ) -> TopicInfo.Subscription {
    TopicInfo.Subscription(
      connection: connection, client: client, stream: 1, state: .live, nextOffset: 0, granted: granted,
      sent: sent, holding: holding, limit: limit, lastMinute: share, lastFiveMinutes: share / 2)
  }

  private func time(_ seconds: UInt64) -> MonotonicTime {
    MonotonicTime(nanoseconds: seconds * 1_000_000_000)
  }

  @Test("Rates are what came and went since the look before, and the busiest come first")
  func rates() {
    var board = TopBoard()
    let quiet = summary("a.quiet", next: 7)
    let busy = summary("busy", next: 100, subscribers: 2)
    var rows = board.take(
      TopSample(
        time: time(1), topics: [quiet, busy],
        details: [
          "busy": info(busy, [subscription("s", sent: 50), subscription("t", sent: 5, connection: 2)])
        ]))
    #expect(
      rows.map(\.topic) == ["a.quiet", "busy"] && rows.allSatisfy { $0.inRate == 0 && $0.outRate == 0 })
    let later = summary("busy", next: 300, subscribers: 2)
    // One topic was deleted, another created.
    rows = board.take(
      TopSample(
        time: time(3), topics: [quiet, later],
        details: [
          "busy": info(later, [subscription("s", sent: 150), subscription("u", sent: 20, connection: 3)])
        ]))
    #expect(rows.map(\.topic) == ["busy", "a.quiet"])
    #expect(rows[0].inRate == 100 && rows[0].outRate == 60)
    // In another epoch it counts from zero.
    rows = board.take(TopSample(time: time(4), topics: [summary("busy", next: 2, epoch: 2)]))
    #expect(rows.map(\.inRate) == [0])
  }

  @Test("A topic whose details weren't asked for has no lag of 0, and the title says of how many it is known")
  func unasked() {
    var board = TopBoard()
    let (known, unknown) = (summary("known", next: 9), summary("unknown", next: 9))
    let rows = board.take(
      TopSample(
        time: time(1), topics: [known, unknown], details: ["known": info(known, [])], unasked: ["unknown"]))
    #expect(rows.map(\.isMeasured) == [true, false])
    #expect(TopTable.title(rows, server: "here").hasPrefix("here: 2 topics (lag of 1 known), in"))
    let lines = TopTable.render(rows, title: "").split(separator: "\n").map { $0.split(separator: " ") }
    #expect(lines.dropFirst().map { $0[4] } == ["0", "?"])
    #expect(TopTable.line(rows[1]).contains("\"lag\":null,\"lag_ms\":null"))
    let screen = TopScreen.plain(rows, titles: [""], width: 80)
    #expect(
      screen.split(separator: "\n").filter { $0.contains("?") }.map { $0.hasPrefix("unknown") } == [true])
  }

  @Test("The age of a lag is that of the oldest record that a subscriber, cursor or group has yet to take")
  func ages() {
    var board = TopBoard()
    let topic = summary("t", next: 9, subscribers: 1)
    var late = subscription("s", sent: 0)
    late.age = 12_000
    var details = info(topic, [late])
    details.consumers = [.init(name: "c", kind: .cursor, nextOffset: 8, lag: 1, age: 3_000)]
    let rows = board.take(TopSample(time: time(1), topics: [topic], details: ["t": details]))
    #expect(rows[0].lag == 9 && rows[0].lagAge == 12_000)
  }

  @Test("Numbers that only a strange peer has, or a strange broker tells, are shown as the largest")
  func extremes() {
    var board = TopBoard()
    let before = summary("t", next: 0)
    _ = board.take(TopSample(time: MonotonicTime(nanoseconds: 0), topics: [before]))
    let after = summary("t", next: .max)
    let subscriptions = [
      subscription("s", sent: 0, granted: .max - 1),
      subscription("t", sent: 0, granted: .max - 1, connection: 2),
    ]
    let rows = board.take(
      TopSample(
        time: MonotonicTime(nanoseconds: 1), topics: [after], details: ["t": info(after, subscriptions)]))
    #expect(rows[0].outstanding == .max)
    #expect(TopTable.render(rows, title: "").contains("1,000,000,000,000,000,000"))
  }

  @Test("Publishers that wait for the store are told, and how full that is")
  func storage() {
    var board = TopBoard()
    let topic = summary("jobs", next: 0)
    var details = info(topic, [])
    details.publications = [
      .init(
        connection: 1, client: "p", stream: 1, granted: 0, received: 0, waiting: 12_000, reason: .storageFull)
    ]
    details.storage = StorageStatus(state: .full, since: 12_000, used: 100, limit: 100)
    let rows = board.take(TopSample(time: time(1), topics: [topic], details: ["jobs": details]))
    #expect(TopTable.render(rows, title: "").contains("storage full for 12 s (1 blocked)"))
    let store = "; store: full for 12 s, producers blocked; 100 B of 100 B used (100 %)"
    #expect(TopTable.title(rows, server: "s").hasSuffix(store))
    #expect(
      TopTable.title(rows, server: "s", node: "n", commits: 4_230).hasSuffix("\(store); commits: 4.2 ms"))
    #expect(TopTable.line(rows[0]).contains("\"wait_reason\":\"storage full\",\"store_state\":\"full\""))
  }

  @Test("Who holds up producers is told, and what is asked for")
  func holders() {
    var board = TopBoard()
    let topic = summary("jobs", next: 0, subscribers: 2, producers: 2)
    let rows = board.take(
      TopSample(
        time: time(1), topics: [topic],
        details: [
          "jobs": info(
            topic,
            [
              subscription("slow", sent: 3, granted: 5, holding: 2_500),
              subscription(
                "slower", sent: 1, granted: 4, holding: 9_000, connection: 2, limit: .demand, share: 930),
            ], waiting: [8_000, 0])
        ]))
    #expect(rows[0].outstanding == 5 && rows[0].holder == "slower" && rows[0].holding == 9_000)
    let text = TopTable.render(rows, title: "here")
    #expect(text.contains("slower for 9 s, no demand, 93 % of the last minute (1 blocked)"))
    #expect(TopTable.line(rows[0]).contains("\"outstanding\":5,\"holder\":\"slower\",\"holding_ms\":9000"))
    #expect(
      TopTable.line(rows[0]).contains(
        "\"holding_limit\":\"demand\",\"held_last_minute\":0.930,\"held_last_five_minutes\":0.465"))
  }

  @Test("The title sums the rates of all topics")
  func title() {
    let rows = (0..<30).map {
      TopRow(
        topic: "a.topic.with.a.long.name.\($0)", state: "open", inRate: 1_234_567, outRate: 0, subscribers: 1,
        producers: 0, outstanding: nil)
    }
    let all = TopTable.render(rows, title: TopTable.title(rows, server: "h:1"))
    #expect(all.split(separator: "\n").count == 32)
    #expect(all.hasPrefix("h:1: 30 topics, in 37,037,010/s, out 0/s\n"))
    #expect(all.contains("1,234,567"))
  }
}
