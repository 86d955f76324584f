import ReactiveCore

/// A break in the records of a topic, as met by one of the client's subscriptions.
public struct TopicNotice: Hashable, Sendable, CustomStringConvertible {
  /// The topic's name.
  public var topic: String
  /// ``TopicChange/restarted(nextOffset:)``, ``TopicChange/lagged(missed:nextOffset:)`` or ``TopicChange/rewound(nextOffset:)``.
  public var change: TopicChange

  /// A sentence for a log.
  public var description: String {
    switch change {
    case .restarted(let next):
      "topic \(topic) was recreated: its earlier records are lost, and records from offset \(next) on follow"
    case .lagged(let missed, let next):
      "\(missed) records of topic \(topic) were dropped before they were requested; offset \(next) follows"
    case .rewound(let next):
      "the broker has lost the last records of topic \(topic), from offset \(next) on"
    case .matched, .live, .finished, .failed, .deleted: "\(topic): \(change)"
    }
  }
}

extension TopicNotice {
  /// Nil for an event that isn't a break.
  init?(_ mark: TopicMark, of topic: String) {
    switch mark {
    case .restarted(let next): self.init(topic: topic, change: .restarted(nextOffset: next))
    case .lagged(let missed, let next):
      self.init(topic: topic, change: .lagged(missed: missed, nextOffset: next))
    case .rewound(let next): self.init(topic: topic, change: .rewound(nextOffset: next))
    case .topic(let name, let change):
      switch change {
      case .restarted, .lagged, .rewound: self.init(topic: name, change: change)
      case .matched, .live, .finished, .failed, .deleted: return nil
      }
    case .record, .live, .producers: return nil
    }
  }
}

extension Client {
  /// The breaks in the records of all topics to which the client subscribes, regardless of their subscribers.
  ///
  /// A subscriber of ``RemoteTopic/events`` gets the same between its records, at their position. A plain subscriber, such as a `sink` of records, gets
  /// records only. These notices inform the program that a broker was restarted and has lost its topics in memory.
  ///
  /// ```swift
  /// let notices = client.notices.sink { print($0) }
  /// ```
  ///
  /// Values are delivered on the client's loop, one for each subscription concerned, when the client learns of the break: records from before it may still
  /// wait for demand. Values without a subscriber aren't kept. Finishes when the client is closed; cancelling affects this subscription only.
  public var notices: AnyPublisher<TopicNotice, Never> { core.notices.eraseToAnyPublisher() }
}
