import SluiceBroker
import SluiceWire

/// The metrics of each topic.
enum TopicMetrics {
  /// The label of the topics without lines of their own. Names of topics contain no spaces, so none can be equal.
  static let others = "all other topics"

  typealias Counter = (
    name: String, unit: String?, scale: Double, help: String, count: WritableKeyPath<TopicTraffic, UInt64>
  )

  static var counters: [Counter] {
    [
      ("records_granted", nil, 1, "Records that producers were granted.", \.granted),
      ("records_received", nil, 1, "Records that were published.", \.received),
      ("received_bytes", "bytes", 1, "Bytes of the records that were published.", \.receivedBytes),
      ("records_acked", nil, 1, "Records that were acknowledged to producers.", \.acknowledged),
      (
        "records_requested", nil, 1,
        "Records that subscribers have asked for, without those that want any number.", \.requested
      ),
      ("records_sent", nil, 1, "Records that subscribers were sent.", \.sent),
      ("sent_bytes", "bytes", 1, "Bytes of the records that subscribers were sent.", \.sentBytes),
      (
        "records_missed", nil, 1, "Records that were dropped before subscribers had asked for them.",
        \.missed
      ),
      (
        "starved_seconds", "seconds", 1e-3,
        "How long subscribers had no demand while there were records for them, added up.", \.starved
      ),
      (
        "records_dropped", nil, 1, "Records that the topic's retention limits, and trims, have dropped.",
        \.dropped
      ),
      (
        "dropped_bytes", "bytes", 1,
        "Bytes of the records that the topic's retention limits, and trims, have dropped.", \.droppedBytes
      ),
      ("held_up_seconds", "seconds", 1e-3, "How long producers had no demand, added up.", \.heldUp),
    ]
  }

  /// - Parameters:
  ///   - sum: combines the values of two topics.
  ///   - value: the value of a topic; nil for unlimited.
  typealias Gauge = (
    name: String, unit: String?, scale: Double, help: String, sum: (UInt64, UInt64) -> UInt64,
    value: (TopicSnapshot) -> UInt64?
  )

  static var gauges: [Gauge] {
    [
      ("retained_records", nil, 1, "Records that are kept.", &+, { $0.summary.records }),
      ("retained_bytes", "bytes", 1, "Bytes of the records that are kept.", &+, { $0.summary.bytes }),
      ("subscriptions", nil, 1, "Subscriptions.", &+, { UInt64($0.summary.subscriptions) }),
      ("publications", nil, 1, "Publications.", &+, { UInt64($0.summary.publications) }),
      (
        "demand_outstanding", nil, 1,
        "Records that subscribers have requested and not yet received; infinite with unlimited demand.", &+,
        { $0.outstanding }
      ),
      (
        "lag_records", nil, 1,
        "Records between the subscriber that is furthest behind and the end of the topic.", &+, { $0.lag }
      ),
      (
        "hold_age_seconds", "seconds", 1e-3,
        "For how long the producer that has waited longest has had no demand; 0 while none waits.", max,
        { $0.heldUp }
      ),
    ]
  }

  static func write(_ topics: [TopicSnapshot], _ others: TopicSelection.Others, to text: inout MetricsText) {
    text.single("sluice_topics", .gauge, "Topics.", UInt64(topics.count) + others.count)
    text.single(
      "sluice_topics_summed", .gauge,
      "Topics without lines of their own, which are summed as \(Self.others).", others.count)
    for counter in counters {
      text.family("sluice_topic_\(counter.name)", .counter, unit: counter.unit, counter.help)
      func sample(_ name: String, _ traffic: TopicTraffic) {
        text.sample(Double(traffic[keyPath: counter.count]) * counter.scale, ["topic": name])
      }
      for topic in topics { sample(topic.summary.topic, topic.traffic) }
      sample(Self.others, others.traffic)
    }
    for gauge in gauges {
      text.family("sluice_topic_\(gauge.name)", .gauge, unit: gauge.unit, gauge.help)
      func sample(_ name: String, _ value: UInt64?) {
        text.sample(value.map { Double($0) * gauge.scale } ?? .infinity, ["topic": name])
      }
      for topic in topics { sample(topic.summary.topic, gauge.value(topic)) }
      let sum = others.topics.reduce(0 as UInt64?) { sum, topic in
        sum.flatMap { sum in gauge.value(topic).map { gauge.sum(sum, $0) } }
      }
      sample(Self.others, sum)
    }
  }
}

/// Chooses the topics with lines of their own in the metrics, and sums the others.
///
/// A topic keeps its line as long as it exists. The sum of the others only grows, as counters must: it includes the counts of topics that were deleted, or
/// that got lines of their own.
struct TopicSelection {
  /// Topics without lines of their own, together.
  struct Others {
    var topics: [TopicSnapshot] = []
    var traffic = TopicTraffic()

    var count: UInt64 { UInt64(topics.count) }
  }

  private let limit: Int
  private var chosen: Set<String> = []
  private var rest: [String: TopicTraffic] = [:]
  private var gone = TopicTraffic()

  init(limit: Int) {
    self.limit = limit
  }

  mutating func select(_ topics: [TopicSnapshot]) -> (own: [TopicSnapshot], others: Others) {
    chosen.formIntersection(topics.map(\.summary.topic))
    for topic in topics where chosen.count < limit { chosen.insert(topic.summary.topic) }
    var own: [TopicSnapshot] = []
    var others = Others()
    var counted: [String: TopicTraffic] = [:]
    for topic in topics {
      let name = topic.summary.topic
      guard !chosen.contains(name) else {
        own.append(topic)
        continue
      }
      counted[name] = topic.traffic
      others.topics.append(topic)
      others.traffic.add(topic.traffic)
    }
    for (name, traffic) in rest {
      // A lower count than before belongs to a new topic with the same name.
      if let now = counted[name], now.isNot(before: traffic) { continue }
      gone.add(traffic)
    }
    rest = counted
    others.traffic.add(gone)
    return (own, others)
  }
}

extension TopicTraffic {
  fileprivate mutating func add(_ other: TopicTraffic) {
    for (_, _, _, _, count) in TopicMetrics.counters { self[keyPath: count] &+= other[keyPath: count] }
  }

  fileprivate func isNot(before former: TopicTraffic) -> Bool {
    TopicMetrics.counters.allSatisfy { self[keyPath: $0.count] >= former[keyPath: $0.count] }
  }
}
