import ReactiveCore

/// When a topic's source is subscribed to.
public enum PublishCondition: Hashable, Sendable {
  /// The publisher is subscribed to each time the topic becomes connected, as its setting `connect` says, and cancelled each time the topic becomes
  /// disconnected. If the topic's `scope` is `whileConnected`, the publisher is also subscribed to again after its end, with the next subscriber.
  case connected
  /// The publisher is subscribed to at once, until it ends.
  case always
}

extension Publisher where Output == Message {
  /// Publishes this publisher's values to a topic while the topic is connected.
  ///
  /// With a topic whose setting `connect` is `auto(1)`, this is `share()` across processes. The publisher is subscribed to when the topic's first subscriber
  /// arrives, in any process; it publishes for all of them, and is cancelled after the last has left.
  ///
  /// ```swift
  /// let publication = sensor.readings
  ///   .map { Message("\($0)") }
  ///   .publish(to: client.subject("readings"), when: .connected)
  /// ```
  ///
  /// - Demand: the client requests what the broker grants, see ``TopicSubject``.
  /// - Its end ends the topic, for all its producers and subscribers: `.finished`, or a failure that is sent as a ``TopicFailure``.
  /// - A lost connection doesn't cancel it; the client requests nothing meanwhile. It is cancelled if the topic isn't connected any more on the
  ///   next connection.
  /// - Threads: it is subscribed to, requested from and cancelled on the client's loop; with ``PublishCondition/always`` this call subscribes to it.
  ///   Its values may come from any thread.
  /// - A topic whose setting `scope` is `whileConnected` starts over when its last subscriber leaves or the publisher has ended, as
  ///   `share(replay:scope: .whileConnected)` does in a process. The publisher is subscribed to again with the next subscriber. Records of the
  ///   last run that the broker hasn't acknowledged are dropped, also those of ``TopicSubject/send(_:)->_`` on the same subject. A subject with a
  ///   ``TopicSubject/Producer`` isn't restarted after the publisher's end.
  /// - Several sources of a topic, in one process or in many, are independent: each is subscribed to.
  ///
  /// - Parameters:
  ///   - subject: the topic's subject.
  ///   - condition: when the publisher is subscribed to.
  ///   - failure: returns the failure that subscribers get for the publisher's failure; nil for ``TopicFailure/init(describing:)``.
  /// - Returns: an object that keeps the publisher subscribed and reports its end. Cancelling it, from any thread, or releasing it cancels this publisher and
  ///   releases the subject, which ends the publication unless the caller holds the subject. The topic continues.
  public func publish(
    to subject: TopicSubject, when condition: PublishCondition, failure: ((Failure) -> TopicFailure)? = nil
  ) -> SourcePublication {
    let publication = subject.publication
    let attachment = SourceAttachment(publication, isRepeating: condition == .connected) { subscriber in
      mapError { error -> ClientError in
        if let failure { return .topicFailure(failure(error)) }
        return (error as? ClientError) ?? .topicFailure(TopicFailure(describing: error))
      }.subscribe(subscriber)
    }
    // Subscribes to the publication's end before it can occur.
    let result = SourcePublication(attachment, subject)
    switch condition {
    case .connected: if !publication.add(attachment) { attachment.cancel() }
    case .always: attachment.connected(true)
    }
    return result
  }

  /// Publishes this publisher's values to a topic, as `publish(to:when:)` with a new subject does.
  ///
  /// ```swift
  /// let publication = (1...3).publisher
  ///   .map { Message("\($0)") }
  ///   .publish(to: client, topic: "numbers", settings: .shared(replay: 2), when: .connected)
  /// ```
  ///
  /// - Parameters:
  ///   - client: the client whose connection is used. The caller retains it for as long as the publication runs.
  ///   - topic: the topic's name.
  ///   - settings: the settings stated for the topic, as in ``Client/subject(_:settings:acknowledgement:buffer:whenFull:producer:)``; nil for none.
  ///   - condition: when the publisher is subscribed to.
  ///   - failure: as in `publish(to:when:failure:)`.
  public func publish(
    to client: Client, topic: String, settings: TopicSettings? = nil, when condition: PublishCondition,
    failure: ((Failure) -> TopicFailure)? = nil
  ) -> SourcePublication {
    publish(to: client.subject(topic, settings: settings), when: condition, failure: failure)
  }
}

extension Publisher {
  /// Publishes this publisher's values encoded: see `publish(to:when:failure:)`. A value that can't be encoded ends the topic with a failure.
  ///
  /// - Parameters:
  ///   - subject: the topic's subject.
  ///   - condition: when the publisher is subscribed to.
  ///   - encoder: encodes the values.
  ///   - failure: returns the failure that subscribers get for the publisher's failure, or for a value that can't be encoded; nil for
  ///     ``TopicFailure/init(describing:)``.
  public func publish<Coder: TopLevelEncoder>(
    to subject: TopicSubject, when condition: PublishCondition, encoder: Coder,
    failure: ((any Error) -> TopicFailure)? = nil
  ) -> SourcePublication where Output: Encodable, Coder.Output == [UInt8] {
    tryMap { try Message(encoding: $0, encoder: encoder) }
      .publish(to: subject, when: condition, failure: failure)
  }
}
