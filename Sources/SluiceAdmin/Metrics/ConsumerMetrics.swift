import SluiceBroker
import SluiceWire

/// The metrics of durable cursors and groups.
///
/// Each topic with lines of its own has the largest lag of its cursors and groups. Groups, and cursors if they are enabled, have lines of their own up to a
/// limit, since a topic may have 100,000 of them. Another metric counts the groups without lines.
enum ConsumerMetrics {
  typealias Value = (
    name: String, unit: String?, scale: Double, kind: MetricsText.Kind, help: String,
    value: KeyPath<TopicInfo.Consumer, UInt64>
  )

  private static var lags: [Value] {
    [
      (
        "lag_records", nil, 1, .gauge, "Records from the first that isn't committed or done to the end.",
        \.lag
      ),
      (
        "lag_bytes", "bytes", 1, .gauge,
        "Bytes of those records; absent while the broker looks them up in its store.", \.bytes
      ),
      (
        "lag_seconds", "seconds", 1e-3, .gauge,
        "The age of the first of those records; absent while the broker looks it up in its store.", \.age
      ),
    ]
  }

  private static var counts: [Value] {
    [
      ("unacknowledged_records", nil, 1, .gauge, "Records that are with members.", \.unacknowledged),
      ("delayed_records", nil, 1, .gauge, "Records that wait for the time of their retry.", \.delayed),
      (
        "next_retry_seconds", "seconds", 1e-3, .gauge,
        "When the first of those records is delivered again, from now; 0 without any.", \.nextRetry
      ),
      ("redeliveries", nil, 1, .counter, "How often a record was delivered again.", \.redeliveries),
      ("dead_letters", nil, 1, .counter, "Records that were sent to the dead letters.", \.deadLetters),
      (
        "abandoned_records", nil, 1, .counter, "Records that were given up without dead letters.",
        \.abandoned
      ),
      (
        "missed_records", nil, 1, .counter,
        "Records that the topic had dropped before they could be delivered.", \.missed
      ),
      ("idle_seconds", "seconds", 1e-3, .gauge, "For how long there has been no member.", \.idle),
    ]
  }

  /// The lines of topics: the largest value of any cursor or group, and the sums over groups.
  ///
  /// - Parameters:
  ///   - topics: the topics with lines of their own.
  ///   - others: the other topics, which have one line together.
  static func write(_ topics: [TopicSnapshot], _ others: [TopicSnapshot], to text: inout MetricsText) {
    typealias Gauge = (name: String, unit: String?, help: String, value: (ConsumerSummary) -> Double?)
    let gauges: [Gauge] = [
      ("consumers", nil, "Durable cursors and groups.", { Double($0.count) }),
      ("consumers_behind", nil, "Durable cursors and groups with a lag.", { Double($0.behind) }),
      ("consumer_lag_records", nil, "The largest lag of a cursor or group in records.", { Double($0.lag) }),
      (
        "consumer_lag_bytes", "bytes", "The largest backlog of a cursor or group in bytes.",
        { $0.bytes.map { Double($0) } }
      ),
      (
        "consumer_lag_seconds", "seconds",
        "The age of the oldest record that a cursor or group has yet to commit.",
        { $0.age.map { Double($0) / 1000 } }
      ),
      (
        "unacknowledged_records", nil, "Records that are with members of groups.",
        { Double($0.unacknowledged) }
      ),
    ]
    for gauge in gauges {
      text.family("sluice_topic_\(gauge.name)", .gauge, unit: gauge.unit, gauge.help)
      for topic in topics {
        if let value = gauge.value(topic.consumers) { text.sample(value, ["topic": topic.summary.topic]) }
      }
      let rest = others.compactMap { gauge.value($0.consumers) }
      let isLargest = gauge.name.hasPrefix("consumer_lag")
      text.sample(
        isLargest ? rest.max() ?? 0 : rest.reduce(0, +), ["topic": TopicMetrics.others])
    }
  }

  /// The lines of single groups and cursors.
  static func write(_ chosen: ConsumerSelection.Chosen, to text: inout MetricsText) {
    write(chosen.groups, "group", lags + counts, to: &text)
    text.single(
      "sluice_groups_without_lines", .gauge, "Groups without lines of their own.", chosen.groupsLeftOut)
    if !chosen.cursors.isEmpty { write(chosen.cursors, "cursor", lags, to: &text) }
    text.single(
      "sluice_cursors_without_lines", .gauge, "Durable cursors without lines of their own.",
      chosen.cursorsLeftOut)
  }

  private static func write(
    _ consumers: [(topic: String, consumer: TopicInfo.Consumer)], _ label: String, _ values: [Value],
    to text: inout MetricsText
  ) {
    for value in values {
      text.family("sluice_\(label)_\(value.name)", value.kind, unit: value.unit, value.help)
      for (topic, consumer) in consumers {
        let number = consumer[keyPath: value.value]
        guard number != TopicInfo.Consumer.unknown else { continue }
        text.sample(
          Double(number) * value.scale,
          label == "group"
            ? ["topic": topic, "group": consumer.name] : ["topic": topic, "cursor": consumer.name])
      }
    }
  }
}

/// Chooses the groups and cursors with lines of their own. A chosen one keeps its lines as long as the snapshot lists it.
struct ConsumerSelection {
  struct Chosen {
    var groups: [(topic: String, consumer: TopicInfo.Consumer)] = []
    var cursors: [(topic: String, consumer: TopicInfo.Consumer)] = []
    var groupsLeftOut: UInt64 = 0
    var cursorsLeftOut: UInt64 = 0
  }

  private struct Key: Hashable {
    var topic: String
    var name: String
    var kind: CursorInfo.Kind
  }

  private let groups: Int
  private let cursors: Int
  private var known: Set<Key> = []

  /// - Parameters:
  ///   - groups: the most groups with lines.
  ///   - cursors: the most cursors with lines.
  init(groups: Int, cursors: Int) {
    self.groups = groups
    self.cursors = cursors
  }

  mutating func select(_ topics: [TopicSnapshot]) -> Chosen {
    var chosen = Chosen()
    var present: Set<Key> = []
    for keepsKnown in [true, false] {
      for topic in topics {
        let name = topic.summary.topic
        for consumer in topic.consumers.furthest {
          let key = Key(topic: name, name: consumer.name, kind: consumer.kind)
          guard known.contains(key) == keepsKnown, !present.contains(key) else { continue }
          switch consumer.kind {
          case .group where chosen.groups.count < groups: chosen.groups.append((name, consumer))
          case .cursor where chosen.cursors.count < cursors: chosen.cursors.append((name, consumer))
          default: continue
          }
          present.insert(key)
        }
      }
    }
    known = present
    let all = topics.reduce((groups: 0, cursors: 0)) { sum, topic in
      (sum.groups + topic.consumers.groups, sum.cursors + topic.consumers.cursors)
    }
    chosen.groupsLeftOut = UInt64(max(all.groups - chosen.groups.count, 0))
    chosen.cursorsLeftOut = UInt64(max(all.cursors - chosen.cursors.count, 0))
    return chosen
  }
}
