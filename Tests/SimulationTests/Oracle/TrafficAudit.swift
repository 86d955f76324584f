import SluiceLog
import SluiceWire
import Synchronization

@testable import SluiceBroker
@testable import SluiceTopics

/// Checks that the broker's traffic counters add up, also when streams attach and detach.
struct TrafficAudit {
  private struct Seen {
    weak var topic: Topic?
    var traffic: TopicTraffic
  }

  /// By the names of the topics.
  private var seen: [String: Seen] = [:]

  /// Checks a topic's counters. Returns a description of the first error, or nil.
  ///
  /// - Parameter longestRecord: the most bytes a record may have.
  mutating func check(_ topic: Topic, longestRecord: Int) -> String? {
    var count = topic.state.withLock { $0.traffic }
    for loopState in topic.loopStates { count.add(loopState.traffic) }
    let traffic = count.shown
    let former = seen[topic.name].flatMap { $0.topic === topic ? $0.traffic : nil } ?? TopicTraffic()
    seen[topic.name] = Seen(topic: topic, traffic: traffic)
    if !Self.hasGrown(from: former, to: traffic) { return "went from \(former) to \(traffic)" }
    if topic.settings.scope == .forever, topic.storage == nil {
      let head = topic.epoch.log.head
      if traffic.received != head { return "has \(head) records and counts \(traffic.received)" }
    }
    let isBeyond =
      traffic.received > traffic.granted && published(topic, traffic, longestRecord) > traffic.granted
    if traffic.acknowledged > traffic.received || isBeyond {
      return
        "counts \(traffic.acknowledged) records as acknowledged, \(traffic.received) as received, \(traffic.granted) as granted; \(published(topic, traffic, longestRecord)) aren't letters, and its epoch has \(topic.epoch.log.head) records"
    }
    let subscriptions = topic.loopStates.flatMap(\.subscriptions).filter {
      ($0 as? SubscriptionStream)?.owner == nil
    }
    let sent = subscriptions.reduce(0) { $0 + $1.credit.spent }
    if sent > traffic.sent { return "has sent \(sent) records and counts \(traffic.sent)" }
    return nil
  }

  /// The number of a topic's records that came from producers, which need a grant for each: all except dead letters, which the broker publishes.
  private func published(_ topic: Topic, _ traffic: TopicTraffic, _ longestRecord: Int) -> UInt64 {
    let log = topic.epoch.log
    var (cursor, _) = log.cursor(at: .earliest, from: 0)
    // Dropped records may have been dead letters, in this or a former epoch of the topic.
    let former = traffic.received - min(log.head, traffic.received)
    var letters = former + cursor.nextOffset
    let isLetter = RecordFilter([.init(.header("sluice-dead-topic"), .exists)])
    while case .slice(let slice) = log.next(&cursor, bytes: .max) {
      var records = BatchIterator(slice.bytes, count: UInt32(slice.count), time: 0)
      while let record = try? records.next() {
        // A dead letter whose headers would make it too long has none. With the short names of the scenarios, they use less than this.
        let mayBeTooLong = record.body.count + 256 > longestRecord
        letters += mayBeTooLong || isLetter.wants(record) ? 1 : 0
      }
    }
    return traffic.received - min(letters, traffic.received)
  }

  private static func hasGrown(from former: TopicTraffic, to traffic: TopicTraffic) -> Bool {
    let numbers: [KeyPath<TopicTraffic, UInt64>] = [
      \.granted, \.received, \.receivedBytes, \.acknowledged, \.requested, \.sent, \.sentBytes, \.missed,
      \.starved, \.heldUp,
    ]
    return numbers.allSatisfy { traffic[keyPath: $0] >= former[keyPath: $0] }
  }
}
