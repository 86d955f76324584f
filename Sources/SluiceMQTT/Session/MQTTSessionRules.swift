/// What every session of a broker has in common.
package struct MQTTSessionRules: Hashable, Sendable {
  /// The longest packet that a client may send, in bytes. Told in CONNACK.
  package var maximumPacket: UInt32 = 1 << 20
  /// The longest CONNECT, in bytes: what a client may make the broker hold before it is known.
  package var maximumConnect: UInt32 = 128 << 10
  /// Messages at QoS 1 and 2 that a client may have under way at a time. Told in CONNACK.
  package var receiveMaximum: UInt16 = 1024
  /// Topic aliases that a client may set. Told in CONNACK.
  package var topicAliasMaximum: UInt16 = 32
  /// Topic aliases that the session sets for its client, where the client allows as many.
  package var outboundAliases: UInt16 = 16
  /// Messages at QoS 1 and 2 that are under way to a client at a time, where the client allows as many.
  package var window = 1024
  /// The same where the session outlives its connection: each one is a part of what an away session costs.
  package var lastingWindow = 32
  package var maximumSubscriptions = 10_000
  /// Seconds for which a session may outlive its connection; all ones: for ever.
  package var maximumSessionExpiry: UInt32 = .max
  /// The longest keep alive time, in seconds; 0 for any, none among them.
  package var maximumKeepAlive: UInt16 = 0
  /// A client that doesn't send CONNECT for so long is dropped, in nanoseconds.
  package var connectTimeout: UInt64 = 10_000_000_000
  /// In bytes.
  package var maximumClientID = 255
  /// The topic below which clients find topics for their responses; nil for no response information.
  package var responseTopic: String?
  package var maximumQoS = MQTTQoS.exactlyOnce
  package var takesRetained = true
  package var takesShared = true

  package init() {}

  /// Rules that all sessions refer to.
  package final class Shared: Sendable {
    let rules: MQTTSessionRules

    package init(_ rules: MQTTSessionRules) { self.rules = rules }
  }
}
