import SluiceBroker
import SluiceCommand
import SluiceWire

/// Durable cursors and groups in the API.
enum ConsumerJSON {
  /// The summary in a topic's object: counts, sums over the groups, and the largest lags.
  static func summary(_ summary: ConsumerSummary) -> JSON {
    [
      "cursors": .exact(summary.cursors), "groups": .exact(summary.groups), "behind": .exact(summary.behind),
      "lag": .exact(summary.lag), "lagBytes": known(summary.bytes), "lagSeconds": seconds(summary.age),
      "unacknowledged": .exact(summary.unacknowledged), "redeliveries": .exact(summary.redeliveries),
      "deadLetters": .exact(summary.deadLetters), "abandoned": .exact(summary.abandoned),
      "missed": .exact(summary.missed), "delayed": .exact(summary.delayed),
      "furthest": summary.furthest.first.map { .text($0.name) },
    ]
  }

  /// - Parameter topic: the topic's name; nil if the context shows it.
  static func object(_ consumer: TopicInfo.Consumer, of topic: String? = nil) -> JSON {
    [
      "topic": topic.map { .text($0) }, "name": .text(consumer.name),
      "kind": .text(consumer.kind == .group ? "group" : "cursor"), "nextOffset": .exact(consumer.nextOffset),
      "lag": .exact(consumer.lag), "lagBytes": known(consumer.bytes), "lagSeconds": seconds(consumer.age),
      "members": .number(consumer.members), "unacknowledged": .exact(consumer.unacknowledged),
      "redeliveries": .exact(consumer.redeliveries), "deadLetters": .exact(consumer.deadLetters),
      "abandoned": .exact(consumer.abandoned), "missed": .exact(consumer.missed),
      "idleSeconds": .seconds(milliseconds: consumer.idle), "delayed": .exact(consumer.delayed),
      "nextRetrySeconds": .seconds(milliseconds: consumer.nextRetry),
    ]
  }

  /// The consumers of all topics, those with the oldest next record first, then those of unknown age by their lag.
  static func list(_ snapshot: BrokerSnapshot, limit: Int) -> JSON {
    let all = snapshot.topics.flatMap { topic in
      topic.consumers.furthest.map { (topic: topic.summary.topic, consumer: $0) }
    }.sorted { left, right in
      let (first, second) = (age(left.consumer), age(right.consumer))
      if first != second { return first > second }
      return TopicInfo.Consumer.precedes(left.consumer, right.consumer)
    }
    return [
      "consumers": .array(all.prefix(limit).map { object($0.consumer, of: $0.topic) }),
      "count": .exact(snapshot.topics.reduce(0) { $0 + $1.consumers.count }),
      "selected": .exact(snapshot.topics.reduce(0) { $0 + $1.consumers.selected }),
    ]
  }

  private static func age(_ consumer: TopicInfo.Consumer) -> UInt64 {
    consumer.age == TopicInfo.Consumer.unknown ? 0 : consumer.age
  }

  /// Null while the broker looks the value up in its store.
  private static func known(_ value: UInt64?) -> JSON {
    value.flatMap { $0 == TopicInfo.Consumer.unknown ? nil : .exact($0) } ?? .null
  }

  private static func seconds(_ milliseconds: UInt64?) -> JSON {
    milliseconds.flatMap { $0 == TopicInfo.Consumer.unknown ? nil : .seconds(milliseconds: $0) } ?? .null
  }
}
