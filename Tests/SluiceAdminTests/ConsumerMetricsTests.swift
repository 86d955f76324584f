import SluiceBroker
import SluiceCommand
import SluiceTopics
import SluiceWire
import Testing

@testable import SluiceAdmin

/// Metrics of durable cursors and groups.
@Suite struct ConsumerMetricsTests {
  private func consumer(_ name: String, _ kind: CursorInfo.Kind, lag: UInt64) -> TopicInfo.Consumer {
    TopicInfo.Consumer(
      name: name, kind: kind, nextOffset: 5, lag: lag, bytes: lag * 10, age: lag * 1_000, members: 2,
      unacknowledged: 3, redeliveries: 4, deadLetters: 6, abandoned: 7, missed: 8)
  }

  private func topic(_ name: String, _ consumers: [TopicInfo.Consumer]) -> TopicSnapshot {
    TopicSnapshot(name) { topic in
      topic.consumers.furthest = consumers
      topic.consumers.groups = consumers.count { $0.kind == .group }
      topic.consumers.cursors = consumers.count { $0.kind == .cursor }
      topic.consumers.behind = consumers.count { $0.lag > 0 }
      topic.consumers.unacknowledged = 3
    }
  }

  private func lines(_ topics: [TopicSnapshot], groups: Int, cursors: Int) -> [String] {
    var text = MetricsText(.prometheus)
    var selection = ConsumerSelection(groups: groups, cursors: cursors)
    ConsumerMetrics.write(topics, [], to: &text)
    ConsumerMetrics.write(selection.select(topics), to: &text)
    return text.text.split(separator: "\n").map(String.init)
  }

  @Test func groupsHaveLinesOfTheirOwnAndTopicsTheLargestLag() {
    let lines = lines(
      [topic("t", [consumer("g", .group, lag: 90), consumer("c", .cursor, lag: 20)])], groups: 5, cursors: 0)
    for line in [
      "sluice_topic_consumers{topic=\"t\"} 2", "sluice_topic_consumers_behind{topic=\"t\"} 2",
      "sluice_topic_consumer_lag_records{topic=\"t\"} 90", "sluice_topic_consumer_lag_bytes{topic=\"t\"} 900",
      "sluice_topic_consumer_lag_seconds{topic=\"t\"} 90",
      "sluice_topic_unacknowledged_records{topic=\"t\"} 3",
      "sluice_group_lag_records{topic=\"t\",group=\"g\"} 90",
      "sluice_group_lag_seconds{topic=\"t\",group=\"g\"} 90",
      "sluice_group_redeliveries_total{topic=\"t\",group=\"g\"} 4",
      "sluice_group_dead_letters_total{topic=\"t\",group=\"g\"} 6", "sluice_groups_without_lines 0",
      "sluice_cursors_without_lines 1",
    ] {
      #expect(lines.contains(line), "\(line)")
    }
    #expect(!lines.contains { $0.hasPrefix("sluice_cursor_lag") })
  }

  @Test func cursorsHaveLinesUpToTheirLimit() {
    let cursors = ["a", "b", "c"].map { consumer($0, .cursor, lag: 20) }
    let lines = lines([topic("t", cursors)], groups: 5, cursors: 2)
    #expect(lines.count { $0.hasPrefix("sluice_cursor_lag_records{") } == 2)
    #expect(lines.contains("sluice_cursors_without_lines 1"))
  }

  @Test func whatIsUnknownIsAbsent() {
    var unknown = consumer("g", .group, lag: 90)
    unknown.bytes = TopicInfo.Consumer.unknown
    unknown.age = TopicInfo.Consumer.unknown
    let topics = [topic("t", [unknown])]
    let lines = lines(topics, groups: 5, cursors: 0)
    #expect(lines.contains("sluice_group_lag_records{topic=\"t\",group=\"g\"} 90"))
    #expect(!lines.contains { $0.hasPrefix("sluice_group_lag_seconds{") })
    #expect(!lines.contains { $0.hasPrefix("sluice_topic_consumer_lag_bytes{topic=\"t\"") })
    let json = ConsumerJSON.object(unknown, of: "t").line
    #expect(json.contains("\"lagSeconds\":null") && json.contains("\"lagBytes\":null"))
  }

  @Test func aGroupKeepsItsLinesAsLongAsItIsListed() {
    var selection = ConsumerSelection(groups: 1, cursors: 0)
    #expect(
      selection.select([topic("t", [consumer("old", .group, lag: 1)])]).groups.map(\.consumer.name) == ["old"]
    )
    let both = [consumer("new", .group, lag: 9), consumer("old", .group, lag: 1)]
    let chosen = selection.select([topic("t", both)])
    #expect(chosen.groups.map(\.consumer.name) == ["old"] && chosen.groupsLeftOut == 1)
    #expect(
      selection.select([topic("t", [consumer("new", .group, lag: 9)])]).groups.map(\.consumer.name) == ["new"]
    )
  }
}
