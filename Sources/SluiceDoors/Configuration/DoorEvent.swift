/// An event of a gateway for the operator, in addition to the broker's events of the gateway's connections.
public enum DoorEvent: Hashable, Sendable {
  /// An MQTT client was refused a session that outlives its connection, or more subscriptions in such a session: the limit on all sessions is reached.
  case mqttSessionRefused(client: String, identity: String)
  /// Topic filters in a client's SUBSCRIBE were refused: how many, the first one, its reason code and the cause.
  case mqttSubscriptionsRefused(
    client: String, identity: String, filter: String, count: Int, code: UInt8, reason: String)
  /// A subscription of an MQTT client can't be opened, or was closed by the broker. The gateway retries until it is open.
  case mqttSubscriptionWaits(client: String, identity: String, filter: String, reason: String)
  /// A message or will of an MQTT client has a topic that the broker can't name, and isn't published. MQTT 5 clients get an error, except at QoS 0.
  ///
  /// `isFirst`: whether it is the first such event of that client.
  case mqttTopicUnnamed(client: String, identity: String, topic: String, reason: String, isFirst: Bool)
  /// An MQTT session wasn't kept: it would exceed the limit on all sessions, or it is longer than a record may be.
  case mqttSessionEnded(client: String, identity: String)
  /// The will of an MQTT client was published before its delay had passed: the limit on all waiting wills is reached.
  case mqttWillPublishedEarly(client: String, identity: String)
}
