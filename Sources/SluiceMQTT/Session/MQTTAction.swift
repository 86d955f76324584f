import SluiceWire

/// A subscription to the broker's topics.
package struct MQTTSubscriptionRequest: Hashable, Sendable {
  /// The session's number for it: names the durable cursors of a session that outlives its connection.
  package var number: UInt16
  /// The broker's patterns, no two of which select the same topic.
  package var patterns: [String]
  /// The group that shares the records; nil for a subscription of its own.
  package var group: String?
  package var start: Subscribe.Start
  /// Whether records are delivered without demand: at QoS 0, where the transport alone holds them back. Otherwise demand is shared by all subscriptions
  /// of the session: see ``MQTTAction/request(_:)``.
  package var isUnlimited: Bool
  /// Whether it has durable cursors: one in each topic that the patterns select, at `start` from now on, and in each topic that appears later, at its
  /// first record, whether the client is there or away.
  package var keepsCursors: Bool
  /// Whether it was there before: it goes on at its cursors, or where it is.
  package var isResumed: Bool
  /// Where it goes on in topics of which records are under way: each is the last of its topic.
  package var underWay: [MQTTPlace]
}

/// What a session leaves when its connection has ended.
package struct MQTTDeparture: Hashable, Sendable {
  package var clientID: String
  /// The session, to be kept; nil where it ends with the connection, with its cursors.
  package var state: [UInt8]?
  /// Seconds for which it is kept; all ones: for ever.
  package var expiry: UInt32
  /// To be published after ``willDelay``, unless the client is back before; nil for none.
  package var will: MQTTConnect.Will?
  /// Seconds. At most ``expiry``.
  package var willDelay: UInt32
}

/// Filters of one SUBSCRIBE that were refused.
package struct MQTTRefusedFilters: Hashable, Sendable {
  package var count: Int
  /// The first of them.
  package var filter: String
  /// What the client is told about it.
  package var reason: MQTTReason
  package var message: String

  package init(count: Int, filter: String, reason: MQTTReason, message: String) {
    self.count = count
    self.filter = filter
    self.reason = reason
    self.message = message
  }
}

/// What a session asks of the broker. Memory is valid during the call only.
@safe
package enum MQTTAction {
  /// Authenticate the client, end the connection that the session has now, and look for its state. Answered by
  /// ``MQTTSession/connected(_:now:output:)`` or ``MQTTSession/refused(_:_:output:_:)``; no bytes are taken until then.
  case connect(MQTTConnect)

  // Messages of the client
  /// Open a publication under that number.
  case openPublication(UInt16, topic: String)
  /// The publication isn't used any more.
  case closePublication(UInt16)
  /// Append a message to the topic of a publication. Answered by ``MQTTSession/appended(_:_:output:_:)`` where there is a packet identifier.
  ///
  /// With a sequence the message is in the log once, however often it comes: the session is the producer. While the topic takes no more, the caller
  /// takes no more bytes of the connection.
  case publish(MQTTPublish, publication: UInt16, sequence: UInt64?)
  /// Make the message the topic's retained one; one without a payload removes it. Comes in front of ``publish(_:publication:sequence:)``.
  case retain(MQTTPublish, topic: String)

  // Messages for the client
  /// Subscribe. Answered by ``MQTTSession/subscribed(_:_:output:)``.
  case subscribe(MQTTSubscriptionRequest)
  /// A subscription leaves out the client's own messages: those that it publishes from now on have to be told from others.
  case tellOwn
  /// End a subscription and delete its cursors. Nothing is delivered on it any more, and what was requested isn't spent by it.
  case unsubscribe(UInt16)
  /// Deliver so many more records on the subscriptions of the session that aren't unlimited, in all: ``MQTTSession/deliver(_:on:now:output:)``.
  case request(Int)
  /// Deliver the retained messages that the subscription selects, in the same way and with the same demand.
  case sendRetained(UInt16)
  /// Read a record again, for a message that is under way. Answered by ``MQTTSession/fetched(_:_:now:output:)``.
  case fetch(UInt16, MQTTPlace)
  /// The subscription's cursor in a topic goes on at that offset.
  case commit(UInt16, MQTTPlace)
  /// The record is settled in the subscription's group.
  case settle(UInt16, MQTTPlace)

  /// The client is told that filters were refused: for the log.
  case refused(MQTTRefusedFilters)
  /// A message of the client, or its will, has a topic that the broker can't name, and isn't published: for the log.
  case unnamed(topic: String, reason: String)

  // The session
  /// Keep ``MQTTSession/encodedState``, as it is now or later. Output of the events before isn't sent until the state is as durable as the session's
  /// topics are; what is committed by the same flush is kept with it, and what is settled by the same flush is settled behind it.
  case store
  /// Delete what is kept of an earlier session of that client, and its cursors.
  case forget
  /// Send the output, then close the transport. Nothing follows. The reason and a sentence are for the log.
  case end(MQTTDeparture?, MQTTReason, String)
}
