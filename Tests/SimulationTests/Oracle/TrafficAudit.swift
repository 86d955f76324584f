import SluiceLog
import SluiceWire
import Synchronization

@testable import SluiceBroker

/// Whether what a broker says of the traffic of its topics adds up, whoever comes and goes.
struct TrafficAudit {
  private struct Seen {
    weak var topic: Topic?
    var traffic: TopicTraffic
  }

  /// By the names of the topics.
  private var seen: [String: Seen] = [:]

  /// What is wrong with a topic's numbers now, if anything is.
  mutating func check(_ topic: Topic) -> String? {
    var count = topic.state.withLock { $0.traffic }
    for tap in topic.taps { count.add(tap.traffic) }
    let traffic = count.shown
    let former = seen[topic.name].flatMap { $0.topic === topic ? $0.traffic : nil } ?? TopicTraffic()
    seen[topic.name] = Seen(topic: topic, traffic: traffic)
    if !Self.hasGrown(from: former, to: traffic) { return "went from \(former) to \(traffic)" }
    if topic.settings.scope == .forever, topic.storage == nil {
      let head = topic.life.log.head
      if traffic.received != head { return "has \(head) records and counts \(traffic.received)" }
    }
    if traffic.acknowledged > traffic.received || traffic.received > traffic.granted {
      return
        "counts \(traffic.acknowledged) records as acknowledged, \(traffic.received) as received, \(traffic.granted) as granted"
    }
    let subscriptions = topic.taps.flatMap(\.subscriptions).filter { !($0 is PatternMember) }
    let sent = subscriptions.reduce(0) { $0 + $1.credit.spent }
    if sent > traffic.sent { return "has sent \(sent) records and counts \(traffic.sent)" }
    return nil
  }

  private static func hasGrown(from former: TopicTraffic, to traffic: TopicTraffic) -> Bool {
    let numbers: [KeyPath<TopicTraffic, UInt64>] = [
      \.granted, \.received, \.receivedBytes, \.acknowledged, \.requested, \.sent, \.sentBytes, \.missed,
      \.starved, \.heldUp,
    ]
    return numbers.allSatisfy { traffic[keyPath: $0] >= former[keyPath: $0] }
  }
}
