import ReactiveCore

/// A record of a topic, or an event between records, as one subscription sees it.
public enum TopicEvent<Value> {
  /// A record, or the value decoded from it.
  case record(Value)
  /// The records kept for late subscribers were delivered; those from this offset on were published after the subscription began. Delivered once.
  case live(nextOffset: UInt64)
  /// `missed` records were dropped before they were requested; the next one has this offset.
  case lagged(missed: UInt64, nextOffset: UInt64)
  /// The topic was started anew while there was no connection, and the subscription continues with the new epoch's records from this offset
  /// on. Records of the earlier epoch may have been missed. Not with ``SubscriptionPlan/Lag/fail``.
  case restarted(nextOffset: UInt64)
  /// The broker has crashed and lost the last records of a durable topic, whose setting `sync` allows that. The records received with this offset and later
  /// ones are no longer in the topic; the next records have these offsets, and are different ones or the same, published again. Earlier records are still in
  /// the topic, and none of its records are missed. Therefore the event is delivered independently of ``SubscriptionPlan/lag``, and only if the subscription
  /// had received a lost record.
  case rewound(nextOffset: UInt64)
  /// The number of producers that are attached to the topic. Only for ``RemoteTopic/events(including:)`` with ``TopicEventKinds/producers``.
  ///
  /// The event is delivered when the subscription begins if there is no producer, and when the number has changed. One event may cover several changes. With
  /// 0, no record follows until a producer attaches: the last producer has left, was killed, or has lost its connection, and hasn't ended the topic. The
  /// topic can then fail: see `TopicSettings.whenProducerLost`.
  case producers(Int)
  /// An event of the pattern's topic of this name. A subscription to a pattern gets ``live(nextOffset:)`` when all topics are live that existed when it
  /// began. It never gets ``lagged(missed:nextOffset:)``, ``restarted(nextOffset:)`` and ``rewound(nextOffset:)`` for itself: these are events of a topic.
  case topic(String, TopicChange)

  @inlinable
  init(_ mark: TopicMark) {
    self =
      switch mark {
      case .live(let nextOffset): .live(nextOffset: nextOffset)
      case .lagged(let missed, let nextOffset): .lagged(missed: missed, nextOffset: nextOffset)
      case .restarted(let nextOffset): .restarted(nextOffset: nextOffset)
      case .rewound(let nextOffset): .rewound(nextOffset: nextOffset)
      case .producers(let count): .producers(count)
      case .topic(let name, let change): .topic(name, change)
      }
  }
}

/// An event of one topic of a pattern, as one subscription sees it.
public enum TopicChange: Hashable, Sendable {
  /// The subscription now includes the topic: it existed, was created, or has started over. Its records begin at this offset.
  case matched(nextOffset: UInt64)
  /// As ``TopicEvent/live(nextOffset:)`` for a topic alone.
  case live(nextOffset: UInt64)
  /// As ``TopicEvent/lagged(missed:nextOffset:)`` for a topic alone.
  case lagged(missed: UInt64, nextOffset: UInt64)
  /// As ``TopicEvent/restarted(nextOffset:)`` for a topic alone.
  case restarted(nextOffset: UInt64)
  /// As ``TopicEvent/rewound(nextOffset:)`` for a topic alone.
  case rewound(nextOffset: UInt64)
  /// A producer has finished the topic, and all of its records were delivered.
  case finished
  /// A producer has failed the topic, and all of its records were delivered.
  case failed(ClientError)
  /// The topic was deleted, or the client lost the permission to subscribe to it. A topic of this name that is created later, or permitted
  /// again, matches again.
  case deleted
}

extension TopicEvent: Sendable where Value: Sendable {}
extension TopicEvent: Equatable where Value: Equatable {}

/// An event between records.
@usableFromInline
typealias TopicMark = TopicEvent<Never>

extension TopicMark {
  /// One event that replaces this one and the directly following one; nil if both must be delivered. A broker may send any number of them to a subscriber
  /// without demand, which then need no more memory than one.
  func joined(with next: TopicMark) -> TopicMark? {
    switch (self, next) {
    case (.lagged(let missed, _), .lagged(let more, let nextOffset)):
      .lagged(missed: missed.addingSaturated(more), nextOffset: nextOffset)
    case (.producers, .producers): next
    case (.restarted, .restarted): next
    case (.topic(let name, .lagged(let missed, _)), .topic(let other, .lagged(let more, let nextOffset)))
    where name == other:
      .topic(name, .lagged(missed: missed.addingSaturated(more), nextOffset: nextOffset))
    default: nil
    }
  }
}

extension UInt64 {
  fileprivate func addingSaturated(_ other: UInt64) -> UInt64 {
    let (sum, isTooLarge) = addingReportingOverflow(other)
    return isTooLarge ? .max : sum
  }
}

/// The kinds of ``TopicEvent`` that are delivered only on request.
public struct TopicEventKinds: OptionSet, Sendable {
  public let rawValue: Int

  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// ``TopicEvent/producers(_:)``. Not for subscriptions to patterns and groups.
  public static let producers = TopicEventKinds(rawValue: 1)
}

/// A topic's records and the events between them, as a publisher.
public struct TopicEvents<Value>: Publisher, Sendable {
  public typealias Output = TopicEvent<Value>
  public typealias Failure = ClientError

  @usableFromInline let topic: RemoteTopic<Value>
  @usableFromInline let kinds: TopicEventKinds

  @inlinable
  public func receive<S: Subscriber>(subscriber: S)
  where S.Input == TopicEvent<Value>, S.Failure == ClientError {
    // As `RemoteTopic` does. Written out in both: a closure in between would cost each record a call.
    let records: Receiver.Records
    if let decoding = topic.decoding {
      records = { batch, limit, subscription in
        batch.deliver(atMost: limit, unlessCancelled: subscription) { record in
          decoding.deliver(record, for: subscription) { subscriber.receive(.record($0)) }
        }
      }
    } else {
      records = { batch, limit, subscription in
        // The same type, see `RemoteTopic.decoding`.
        batch.deliver(atMost: limit, unlessCancelled: subscription) {
          unsafe subscriber.receive(.record(unsafeBitCast($0, to: Value.self)))
        }
      }
    }
    let subscription = RemoteSubscription(
      topic.plan, topic.core,
      Receiver(
        records: records, mark: { subscriber.receive(TopicEvent($0)) },
        completion: { subscriber.receive(completion: $0) }),
      wantsProducers: kinds.contains(.producers))
    subscriber.receive(subscription: subscription)
    subscription.start()
  }
}

extension RemoteTopic {
  /// The topic's records with the events between them: the end of replay, and gaps in the records.
  ///
  /// Every event uses demand, like a record.
  ///
  /// ```swift
  /// let events = client.topic("prices").events
  ///   .prefix(while: { if case .live = $0 { false } else { true } })
  ///   .sink { _ in print("replay is over") } receiveValue: { print($0) }
  /// ```
  public var events: TopicEvents<Output> { events(including: []) }

  /// As ``events``, with further kinds of events, which use demand as well.
  ///
  /// ```swift
  /// client.topic("prices").events(including: .producers)
  ///   .sink { _ in } receiveValue: { if case .producers(0) = $0 { print("the source is gone") } }
  /// ```
  public func events(including kinds: TopicEventKinds) -> TopicEvents<Output> {
    TopicEvents(topic: self, kinds: kinds)
  }
}
