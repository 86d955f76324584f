import SluiceClient

/// What `sluice sub` says on standard error of its topics.
enum SubscriptionNote {
  /// - Parameter topic: nil for the only one.
  static func lag(_ missed: UInt64, _ next: UInt64, of topic: String? = nil) -> String {
    let place = topic.map { " of \($0)" } ?? ""
    let what =
      missed == 1
      ? "1 record\(place) was dropped before it was requested"
      : "\(missed) records\(place) were dropped before they were requested"
    return "\(what); going on at offset \(next)"
  }

  static func restart(of topic: String, _ next: UInt64) -> String {
    "\(topic) was started anew while there was no connection, records may be missing; going on at its offset \(next)"
  }

  static func rewind(of topic: String, _ next: UInt64) -> String {
    "the broker has lost the last records of \(topic), some of which were received; going on at offset \(next), which another record has now"
  }

  /// Nil for a change that isn't told.
  static func change(_ change: TopicChange, of topic: String) -> String? {
    switch change {
    case .matched, .live: nil
    case .lagged(let missed, let next): lag(missed, next, of: topic)
    case .restarted(let next): restart(of: topic, next)
    case .rewound(let next): rewind(of: topic, next)
    case .finished: "\(topic) has finished"
    case .failed(let error): error.message
    case .deleted: "\(topic) is gone: it was deleted, or may not be read any more"
    }
  }
}
