import SluiceWire

/// A subscription to the broker's topics.
package struct MQTTSubscriptionRequest: Hashable, Sendable {
  /// The session's number for it, which is part of the names of the durable cursors of a session that outlives its connection.
  package var number: UInt16
  /// The broker's patterns, no two of which select the same topic.
  package var patterns: [String]
  /// The group that shares the records; nil for a subscription without a group.
  package var group: String?
  package var start: Subscribe.Start
  /// Whether records are delivered without demand: at QoS 0, where only the transport limits delivery. Otherwise all subscriptions of the session share
  /// demand: see ``MQTTAction/request(_:)``.
  package var isUnlimited: Bool
  /// Whether it has durable cursors. In each topic that the patterns select it begins at `start`, and in each topic created later at its first record,
  /// whether or not the client is connected.
  package var keepsCursors: Bool
  /// Whether it existed before: it continues at its cursors, or at its present position.
  package var isResumed: Bool
  /// The places from which it continues in topics with records in flight: each is the last of its topic.
  package var underWay: [MQTTPlace]
}

/// The rest of a session after its connection has ended.
package struct MQTTDeparture: Hashable, Sendable {
  package var clientID: String
  /// The state of the session, to be kept; nil if the session and its cursors end with the connection.
  package var state: [UInt8]?
  /// Seconds for which it is kept; all ones: forever.
  package var expiry: UInt32
  /// To be published after ``willDelay``, unless the client returns before; nil for none.
  package var will: MQTTConnect.Will?
  /// Seconds. At most ``expiry``.
  package var willDelay: UInt32
}

/// Filters of one SUBSCRIBE that were refused.
package struct MQTTRefusedFilters: Hashable, Sendable {
  package var count: Int
  /// The first refused filter.
  package var filter: String
  /// The reason that the client gets for it.
  package var reason: MQTTReason
  package var message: String

  package init(count: Int, filter: String, reason: MQTTReason, message: String) {
    self.count = count
    self.filter = filter
    self.reason = reason
    self.message = message
  }
}

/// A request of a session to the broker. Memory is valid during the call only.
@safe
package enum MQTTAction {
  /// Authenticate the client, end the connection that the session has now, and look up its state. Answered by ``MQTTSession/connected(_:now:output:)`` or
  /// ``MQTTSession/refused(_:_:output:_:)``; no bytes are consumed until then.
  case connect(MQTTConnect)

  // Messages from the client
  /// Open a publication with that number.
  case openPublication(UInt16, topic: String)
  /// The publication is no longer used.
  case closePublication(UInt16)
  /// Append a message to the topic of a publication. Answered by ``MQTTSession/appended(_:_:output:_:)`` if there is a packet identifier.
  ///
  /// With a sequence the message is appended once, however often it is sent: the session is the producer. While the topic accepts no records, the caller
  /// reads no bytes from the connection.
  case publish(MQTTPublish, publication: UInt16, sequence: UInt64?)
  /// Make the message the topic's retained one; a message without a payload removes it. Precedes ``publish(_:publication:sequence:)``.
  case retain(MQTTPublish, topic: String)

  // Messages for the client
  /// Subscribe. Answered by ``MQTTSession/subscribed(_:_:output:)``.
  case subscribe(MQTTSubscriptionRequest)
  /// A subscription leaves out the client's own messages: from now, the broker must mark those that the client publishes.
  case tellOwn
  /// End a subscription and delete its cursors. No more records are delivered on it, and it uses no more demand.
  case unsubscribe(UInt16)
  /// Deliver so many more records in all, on those subscriptions of the session that aren't unlimited: ``MQTTSession/deliver(_:on:now:output:)``.
  case request(Int)
  /// Deliver the retained messages that the subscription selects, in the same way and with the same demand.
  case sendRetained(UInt16)
  /// Read a record again, for a message in flight. Answered by ``MQTTSession/fetched(_:_:now:output:)``.
  case fetch(UInt16, MQTTPlace)
  /// Move the subscription's cursor in a topic to that offset.
  case commit(UInt16, MQTTPlace)
  /// Settle the record in the subscription's group.
  case settle(UInt16, MQTTPlace)

  /// Filters were refused, which the client learns from SUBACK: for the log.
  case refused(MQTTRefusedFilters)
  /// The broker can't name the topic of a message or will, and doesn't publish it: for the log.
  case unnamed(topic: String, reason: String)

  // The session
  /// Store ``MQTTSession/encodedState``, as it is now or later. Output of earlier events isn't sent until the state is as durable as the session's topics.
  /// Commits of the same flush are stored together with it, and records settled by the same flush are settled after it.
  case store
  /// Delete the stored state of an earlier session of that client, and its cursors.
  case forget
  /// Send the output, then close the transport. No action follows. The reason and a sentence are for the log.
  case end(MQTTDeparture?, MQTTReason, String)
}
