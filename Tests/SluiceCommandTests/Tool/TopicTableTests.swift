import SluiceCommand
import SluiceWire
import Testing

@testable import SluiceTool

@Suite("What is shown of a topic")
struct TopicTableTests {
  private func info(_ change: (inout TopicInfo) -> Void = { _ in }) -> TopicInfo {
    var info = TopicInfo(
      summary: TopicSummary(
        topic: "t", epoch: 1, firstOffset: 100, nextOffset: 200, bytes: 5, ending: nil, subscriptions: 0,
        publications: 0, storage: .durable),
      settings: TopicSettings(replayRecords: TopicSettings.unlimited), subscriptions: [], publications: [])
    change(&info)
    return info
  }

  private func row(_ name: String, _ info: TopicInfo) -> String? {
    TopicTable.show(info).split(separator: "\n").first { $0.hasPrefix("\(name) ") }.map {
      String($0.dropFirst(name.count).drop { $0 == " " })
    }
  }

  @Test(
    "What was dropped is told by cause, and what was dropped before the broker's start")
  func dropped() {
    #expect(row("dropped", info()) == "100 records before the broker started, or trimmed and not freed yet")
    #expect(row("dropped", info { $0.summary.firstOffset = 0 }) == "none")
    let info = info { info in
      info.dropped[.bytes] = .init(records: 60, bytes: 61_440)
      info.dropped[.age] = .init(records: 1, bytes: 10)
      info.dropped[.trim] = .init(records: 30, bytes: 30_720)
    }
    #expect(
      row("dropped", info)
        == "60 records, 60.0 KiB, by replay-bytes; 1 record, 10 B, by replay-age; 30 records, 30.0 KiB, by trim; 9 records before the broker started, or trimmed and not freed yet"
    )
    #expect(TopicJSON.line(info).contains("\"replay-bytes\":{\"records\":60,\"bytes\":61440}"))
    #expect(TopicJSON.line(info).contains("\"trim\":{\"records\":30,\"bytes\":30720}"))
  }

  @Test("What stops producers is told in a sentence, with its limit, since when, and its shares")
  func holders() {
    #expect(row("blocked by", info()) == nil)
    func subscription(_ connection: UInt64, holding: UInt64, _ limit: TopicInfo.HoldLimit, _ minute: UInt16)
      -> TopicInfo.Subscription
    {
      .init(
        connection: connection, client: connection == 4 ? "" : "orders-ui", stream: 1, state: .live,
        nextOffset: 9, granted: 10, sent: 9, holding: holding, limit: limit, lastMinute: minute,
        lastFiveMinutes: 710)
    }
    var held = info { info in
      info.summary.subscriptions = 2
      info.subscriptions = [
        subscription(3, holding: 312_900, .demand, 939), subscription(5, holding: 0, .none, 4),
      ]
      info.holds = [.init(reason: .subscribers, milliseconds: 400_000, lastMinute: 1, lastFiveMinutes: 1)]
    }
    #expect(
      row("blocked by", held)
        == "orders-ui on connection 3, stream 1 (no demand), for 5 min 12 s, 93 % of the last minute, 71 % of the last five"
    )
    let table = TopicTable.show(held)
    #expect(table.contains("5 min 12 s   93 %   71 %\n"), "\(table)")
    #expect(table.contains("0.4 %   71 %\n"), "\(table)")
    let json = TopicJSON.line(held)
    #expect(
      json.contains(
        "\"holding_ms\":312900,\"holding_limit\":\"demand\",\"held_last_minute\":0.939,\"held_last_five_minutes\":0.710"
      ), "\(json)")
    #expect(json.contains("\"holds\":[{\"reason\":\"subscribers\",\"holding_ms\":400000,"), "\(json)")
    held.subscriptions = (1...5).map { subscription($0, holding: 100, .groupDemand, 0) }
    let many = TopicTable.show(held).split(separator: "\n").filter { $0.hasPrefix("blocked by") }
    #expect(many.count == 4 && many.last?.hasSuffix(" and 2 more") == true, "\(many)")
    #expect(
      HoldText.sentence(subscription(4, holding: 999, .buffer, 0)).hasPrefix("a client without a name on"))
    // Blocks not caused by a subscriber are shown as well.
    held.subscriptions = []
    held.summary.subscriptions = 0
    #expect(row("blocked by", held)?.hasPrefix("lack of subscribers, for 6 min 40 s, ") == true)
    held.holds[0].reason = .storageBacklog
    #expect(
      row("blocked by", held)?.hasPrefix("storage backlog, for 6 min 40 s, 0.1 % of the last minute") == true)
    held.holds[0].milliseconds = 0
    #expect(row("blocked by", held) == nil)
  }

  @Test("Times of holds have their two largest units")
  func times() {
    let times: [(UInt64, String)] = [
      (1, "1 ms"), (999, "999 ms"), (1_000, "1 s"), (59_999, "59 s"), (60_000, "1 min 0 s"),
      (3_600_000, "1 h 0 min"), (180_000_000, "50 h 0 min"),
    ]
    for (milliseconds, text) in times { #expect(HoldText.time(milliseconds) == text) }
    #expect([0, 4, 10, 999, 1000].map { HoldText.share($0) } == ["0 %", "0.4 %", "1 %", "99 %", "100 %"])
    #expect((1...7).allSatisfy { !HoldText.words(.init(rawValue: $0)).isEmpty })
  }

  @Test("The store is shown with its size, and why publishers wait")
  func store() {
    #expect(row("store", info()) == nil)
    #expect(
      row("store", info { $0.storage = StorageStatus(state: .working, used: 1 << 20, limit: 4 << 20) })
        == "1.00 MiB of 4.00 MiB used (25 %)")
    let info = info { info in
      info.storage = StorageStatus(state: .full, since: 12_000, used: 4 << 20, limit: 4 << 20)
      info.publications = [
        .init(
          connection: 3, client: "pump", stream: 1, granted: 0, received: 0, waiting: 11_000,
          reason: .storageFull)
      ]
    }
    #expect(row("store", info) == "full for 12 s, producers blocked; 4.00 MiB of 4.00 MiB used (100 %)")
    #expect(row("pump", info)?.hasSuffix("11 s  storage full") == true, "\(TopicTable.show(info))")
    #expect(TopicJSON.line(info).contains("\"wait_reason\":\"storage full\""))
    #expect(TopicJSON.line(info).contains("\"store\":{\"state\":\"full\",\"since_ms\":12000"))
  }
}
