import ReactiveCore

/// When a publisher that feeds a topic is subscribed to.
public enum PublishCondition: Hashable, Sendable {
  /// The publisher is subscribed to each time the topic becomes connected, as its setting `connect` says, and cancelled when the topic is no longer
  /// connected. If the topic's `scope` is `whileConnected`, the publisher is also subscribed to again after its end, with the next subscriber.
  case connected
  /// At once, and until it ends.
  case always
}

extension Publisher where Output == Message {
  /// Publishes this publisher's values to a topic while somebody wants them.
  ///
  /// With a topic whose setting `connect` is `auto(1)`, this is `share()` across processes: the publisher is subscribed to when the
  /// topic's first subscriber arrives, wherever that is, feeds all of them, and is cancelled after the last has left.
  ///
  /// ```swift
  /// let publication = sensor.readings
  ///   .map { Message("\($0)") }
  ///   .publish(to: client.subject("readings"), when: .connected)
  /// ```
  ///
  /// - Demand: it is asked for what the broker grants and not for more, see ``TopicSubject``.
  /// - Its end ends the topic, for all its producers and subscribers: `.finished` or a failure, which becomes one of the topic's.
  /// - A lost connection is no reason to cancel it: it isn't asked for more meanwhile. It is cancelled when the next connection
  ///   tells that the topic isn't connected any more.
  /// - Threads: it is subscribed to, asked and cancelled on the client's loop, with ``PublishCondition/always`` subscribed to here and now.
  ///   Its values may come from any thread.
  /// - A topic whose setting `scope` is `whileConnected` starts over when its last subscriber leaves or the publisher has ended, as
  ///   `share(replay:scope: .whileConnected)` does in a process. The publisher is subscribed to again with the next subscriber. Records of the
  ///   last run that the broker hasn't acknowledged are dropped, also those of ``TopicSubject/send(_:)`` on the same subject. A subject with a
  ///   ``TopicSubject/Producer`` isn't restarted after the publisher's end.
  /// - Several sources of a topic, in one process or in many, don't know of each other: each is subscribed to.
  ///
  /// - Returns: an object that keeps the publisher subscribed and reports its end. Cancelling it, from any thread, or releasing it cancels this publisher
  ///   and releases the subject, which ends the publication unless the caller holds the subject. The topic goes on.
  public func publish(to subject: TopicSubject, when condition: PublishCondition) -> SourcePublication {
    let publication = subject.publication
    let attachment = SourceAttachment(publication, isRepeating: condition == .connected) { subscriber in
      mapError { ($0 as? ClientError) ?? .topicFailure("\($0)") }.subscribe(subscriber)
    }
    // Before it can end.
    let result = SourcePublication(attachment, subject)
    switch condition {
    case .connected: if !publication.add(attachment) { attachment.cancel() }
    case .always: attachment.connected(true)
    }
    return result
  }

  /// Publishes this publisher's values to a topic while somebody wants them: `publish(to:when:)` with a subject of its own.
  ///
  /// ```swift
  /// let publication = (1...3).publisher
  ///   .map { Message("\($0)") }
  ///   .publish(to: client, topic: "numbers", as: .shared(replay: 2), when: .connected)
  /// ```
  ///
  /// - Parameters:
  ///   - client: the client whose connection is used. The caller holds it for as long as the publication runs.
  ///   - topic: the topic's name.
  ///   - settings: what is stated of the topic, as in ``Client/subject(_:as:acknowledgement:buffer:whenFull:producer:)``; nil for nothing.
  ///   - condition: when the publisher is subscribed to.
  public func publish(
    to client: Client, topic: String, as settings: TopicSettings? = nil, when condition: PublishCondition
  ) -> SourcePublication {
    publish(to: client.subject(topic, as: settings), when: condition)
  }
}

extension Publisher {
  /// Publishes what an encoder makes of this publisher's values: see `publish(to:when:)`. A value that can't be encoded
  /// ends the topic with a failure.
  public func publish<Coder: TopLevelEncoder>(
    to subject: TopicSubject, when condition: PublishCondition, encoder: Coder
  ) -> SourcePublication where Output: Encodable, Coder.Output == [UInt8] {
    tryMap { try Message(encoding: $0, encoder: encoder) }.publish(to: subject, when: condition)
  }
}
