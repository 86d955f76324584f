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

  @Test("What limits have dropped is told by limit, and what was dropped before the broker's start")
  func dropped() {
    #expect(row("dropped", info()) == "100 records before the broker's start")
    #expect(row("dropped", info { $0.summary.firstOffset = 0 }) == "none")
    let info = info { info in
      info.dropped[.bytes] = .init(records: 60, bytes: 61_440)
      info.dropped[.age] = .init(records: 1, bytes: 10)
    }
    #expect(
      row("dropped", info)
        == "60 records, 60.0 KiB, by replay-bytes; 1 record, 10 B, by replay-age; 39 records before the broker's start"
    )
    #expect(TopicJSON.line(info).contains("\"replay-bytes\":{\"records\":60,\"bytes\":61440}"))
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
    #expect(row("store", info) == "full for 12s, publishers wait; 4.00 MiB of 4.00 MiB used (100 %)")
    #expect(row("pump", info)?.hasSuffix("11s  storage full") == true, "\(TopicTable.show(info))")
    #expect(TopicJSON.line(info).contains("\"wait_reason\":\"storage full\""))
    #expect(TopicJSON.line(info).contains("\"store\":{\"state\":\"full\",\"since_ms\":12000"))
  }
}
