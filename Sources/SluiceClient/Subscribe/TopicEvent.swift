import ReactiveCore

/// What happens in a topic, as one subscription sees it.
public enum TopicEvent<Value> {
  /// A record, or what it was decoded to.
  case record(Value)
  /// What was kept for late subscribers has been delivered; records from this offset on were published after the subscription
  /// stood. Comes once.
  case live(nextOffset: UInt64)
  /// So many records were dropped before they were asked for; the next has that offset.
  case lagged(missed: UInt64, nextOffset: UInt64)
  /// The topic was started anew while there was no connection, and the subscription goes on with what is there: records from that
  /// offset on, which mean others than before. Records of the former life may have been missed. With
  /// ``SubscriptionPlan/Lag/skip`` only.
  case restarted(nextOffset: UInt64)
  /// The broker ended without warning, and lost the last records of a durable topic, whose setting `sync` allows that. What came with that
  /// offset and later ones isn't in the topic any more; what comes now has these offsets anew, and is other records or the same, published
  /// again. What came before is still there, and nothing of what is there is missed: so this comes whatever
  /// ``SubscriptionPlan/lag`` says, and only if the subscription had received something that is lost.
  case rewound(nextOffset: UInt64)
  /// The number of producers that are attached to the topic. Only for ``RemoteTopic/events(including:)`` with ``TopicEventKinds/producers``.
  ///
  /// The event comes when the subscription begins if there is no producer, and whenever the number has changed; one event may stand for several
  /// changes. 0 means that no record comes before a producer attaches: the last producer has left, was killed, or has lost its
  /// connection, and has not ended the topic. A topic can fail then: see `TopicSettings.whenProducerLost`.
  case producers(Int)
  /// Something about one of the topics of a pattern, of that name. Where a subscription is to a pattern, ``live(nextOffset:)`` says that all
  /// topics are live that there were when it began, and ``lagged(missed:nextOffset:)``, ``restarted(nextOffset:)`` and
  /// ``rewound(nextOffset:)`` don't come: they are news of a topic.
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

/// What happens to one of the topics of a pattern, as one subscription sees it.
public enum TopicChange: Hashable, Sendable {
  /// The topic belongs to the subscription from now on: it is there, was created, or has started over. Its records begin at that offset.
  case matched(nextOffset: UInt64)
  /// As ``TopicEvent/live(nextOffset:)`` for a topic alone.
  case live(nextOffset: UInt64)
  /// As ``TopicEvent/lagged(missed:nextOffset:)`` for a topic alone.
  case lagged(missed: UInt64, nextOffset: UInt64)
  /// As ``TopicEvent/restarted(nextOffset:)`` for a topic alone.
  case restarted(nextOffset: UInt64)
  /// As ``TopicEvent/rewound(nextOffset:)`` for a topic alone.
  case rewound(nextOffset: UInt64)
  /// A producer has finished the topic, and all of its records have come.
  case finished
  /// A producer has failed the topic, and all of its records have come.
  case failed(ClientError)
  /// The topic was deleted, or the client may not subscribe to it any more. If one of that name is created, or that is allowed, it is matched again.
  case deleted
}

extension TopicEvent: Sendable where Value: Sendable {}
extension TopicEvent: Equatable where Value: Equatable {}

/// An event between records.
@usableFromInline
typealias TopicMark = TopicEvent<Never>

/// The kinds of ``TopicEvent`` that come only by request.
public struct TopicEventKinds: OptionSet, Sendable {
  public let rawValue: Int

  public init(rawValue: Int) {
    self.rawValue = rawValue
  }

  /// ``TopicEvent/producers(_:)``. Subscriptions to patterns and groups don't get these.
  public static let producers = TopicEventKinds(rawValue: 1)
}

/// A topic's records and what happens between them.
public struct TopicEvents<Value>: Publisher, Sendable {
  public typealias Output = TopicEvent<Value>
  public typealias Failure = ClientError

  @usableFromInline let topic: RemoteTopic<Value>
  @usableFromInline let kinds: TopicEventKinds

  @inlinable
  public func receive<S: Subscriber>(subscriber: S)
  where S.Input == TopicEvent<Value>, S.Failure == ClientError {
    let records: Receiver.Records
    if let decoding = topic.decoding {
      records = { batch, limit, subscription in
        batch.deliver(atMost: limit, unlessCancelled: subscription) { record in
          decoding.hand(record, for: subscription) { subscriber.receive(.record($0)) }
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
  /// The topic with what happens between its records: where replay ends, and where records are missing.
  ///
  /// Every event counts against demand, records or not.
  ///
  /// ```swift
  /// let events = client.topic("prices").events
  ///   .prefix(while: { if case .live = $0 { false } else { true } })
  ///   .sink { _ in print("that was what is kept") } receiveValue: { print($0) }
  /// ```
  public var events: TopicEvents<Output> { events(including: []) }

  /// The same as ``events``, with further kinds of events.
  ///
  /// Every event counts against demand, records or not, so a subscriber that asks for a number of values asks for these events, too.
  ///
  /// ```swift
  /// client.topic("prices").events(including: .producers)
  ///   .sink { _ in } receiveValue: { if case .producers(0) = $0 { print("the source is gone") } }
  /// ```
  public func events(including kinds: TopicEventKinds) -> TopicEvents<Output> {
    TopicEvents(topic: self, kinds: kinds)
  }
}
