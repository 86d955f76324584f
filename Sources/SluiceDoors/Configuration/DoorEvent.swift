/// What an operator should know of the doors, beside what the broker reports of their connections.
public enum DoorEvent: Hashable, Sendable {
  /// A client of MQTT was refused a session that outlives its connection, or more subscriptions in it: the limit on all sessions is reached.
  case mqttSessionRefused(client: String, identity: String)
  /// Topic filters in a SUBSCRIBE of a client of MQTT were refused: how many, the first one, the reason code for it and why.
  case mqttSubscriptionsRefused(
    client: String, identity: String, filter: String, count: Int, code: UInt8, reason: String)
  /// A subscription that a client of MQTT has can't be opened, or isn't any more: it is opened again until it stands.
  case mqttSubscriptionWaits(client: String, identity: String, filter: String, reason: String)
  /// A message or will of a client of MQTT has a topic that the broker can't name, and isn't published. A client of MQTT 5 is told so, except at QoS 0.
  ///
  /// `isFirst`: whether none of that client was reported before.
  case mqttTopicUnnamed(client: String, identity: String, topic: String, reason: String, isFirst: Bool)
  /// A session of MQTT wasn't kept: with it, the limit on all sessions would be exceeded, or it is longer than a record may be.
  case mqttSessionEnded(client: String, identity: String)
  /// The will of a client of MQTT was published before its delay was over: the limit on all wills that wait is reached.
  case mqttWillPublishedEarly(client: String, identity: String)
}
