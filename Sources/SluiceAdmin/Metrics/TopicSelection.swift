import SluiceBroker
import SluiceWire

/// Which topics have lines of their own in the metrics, and what becomes of the rest.
///
/// Whoever has a line keeps it as long as the topic is there. The sum of the others only grows, as counters do: what a topic
/// had counted that is gone, or has got a line of its own, stays in it.
struct TopicSelection {
  /// Topics without lines of their own, together.
  struct Others {
    var count: UInt64 = 0
    var traffic = TopicTraffic()
    /// Gauges, added up.
    var sum = TopicGauges()
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
      others.count += 1
      others.traffic.add(topic.traffic)
      others.sum.add(TopicGauges(topic))
    }
    for (name, traffic) in rest {
      // Less than before: it is another one of the same name.
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
