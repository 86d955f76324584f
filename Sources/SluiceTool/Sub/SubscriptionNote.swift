import SluiceClient

/// Messages of `sluice sub` about changes of its topics.
enum SubscriptionNote {
  /// - Parameter topic: nil for the only topic of a subscription.
  static func lag(_ missed: UInt64, _ next: UInt64, of topic: String? = nil) -> String {
    let place = topic.map { " of \($0)" } ?? ""
    let what =
      missed == 1
      ? "1 record\(place) was dropped before it was requested"
      : "\(missed) records\(place) were dropped before they were requested"
    return "\(what); continuing at offset \(next)"
  }

  static func restart(of topic: String, _ next: UInt64) -> String {
    "\(topic) was recreated while there was no connection, and records may be missing; continuing at its offset \(next)"
  }

  static func rewind(of topic: String, _ next: UInt64) -> String {
    "the broker has lost the last records of \(topic), including received ones; continuing at offset \(next), which now belongs to another record"
  }

  /// Nil for a change that isn't reported.
  static func change(_ change: TopicChange, of topic: String) -> String? {
    switch change {
    case .matched, .live: nil
    case .lagged(let missed, let next): lag(missed, next, of: topic)
    case .restarted(let next): restart(of: topic, next)
    case .rewound(let next): rewind(of: topic, next)
    case .finished: "topic \(topic) has completed"
    case .failed(let error): error.message
    case .deleted: "topic \(topic) was deleted, or the client has lost its permission to subscribe"
    }
  }
}
