import ReactiveCore

extension RemoteTopic {
  /// What happens in a topic, as one subscription sees it.
  public enum Event: Sendable {
    case record(TopicRecord)
    /// What was kept for late subscribers has been delivered; records from this offset on were published after the subscription
    /// stood. Comes once.
    case live(nextOffset: UInt64)
    /// So many records were dropped before they were asked for; the next has that offset.
    case lagged(missed: UInt64, nextOffset: UInt64)
    /// The topic was started anew while there was no connection, and the subscription goes on with what is there: records from that
    /// offset on, which mean others than before. Records of the former life may have been missed. With ``Lag/skip`` only.
    case restarted(nextOffset: UInt64)
  }

  /// What happens between records.
  @usableFromInline
  enum Mark: Equatable, Sendable {
    case live(nextOffset: UInt64)
    case lagged(missed: UInt64, nextOffset: UInt64)
    case restarted(nextOffset: UInt64)

    @inlinable
    var event: Event {
      switch self {
      case .live(let nextOffset): .live(nextOffset: nextOffset)
      case .lagged(let missed, let nextOffset): .lagged(missed: missed, nextOffset: nextOffset)
      case .restarted(let nextOffset): .restarted(nextOffset: nextOffset)
      }
    }
  }

  /// The topic with what happens between its records: where replay ends, and where records are missing.
  ///
  /// Every event counts against demand, records or not.
  ///
  /// ```swift
  /// client.topic("prices").events
  ///   .prefix(while: { if case .live = $0 { false } else { true } })
  ///   .sink { _ in print("that was what is kept") } receiveValue: { print($0) }
  /// ```
  public var events: Events { Events(topic: self) }

  /// A topic's records and what happens between them.
  public struct Events: Publisher, Sendable {
    public typealias Output = Event
    public typealias Failure = ClientError

    @usableFromInline let topic: RemoteTopic

    @inlinable
    public func receive<S: Subscriber>(subscriber: S) where S.Input == Event, S.Failure == ClientError {
      let bridge = DemandBridge(
        topic,
        Receiver(
          records: { batch, limit, bridge in
            batch.deliver(atMost: limit, unlessCancelled: bridge) { subscriber.receive(.record($0)) }
          },
          mark: { subscriber.receive($0.event) },
          completion: { subscriber.receive(completion: $0) }))
      subscriber.receive(subscription: bridge)
      bridge.start()
    }
  }
}
