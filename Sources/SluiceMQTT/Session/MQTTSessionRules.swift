/// The rules that all sessions of a broker share.
package struct MQTTSessionRules: Hashable, Sendable {
  /// The longest packet that a client may send, in bytes. Sent in CONNACK.
  package var maximumPacket: UInt32 = 1 << 20
  /// The longest CONNECT, in bytes: the memory that a client may use before it is authenticated.
  package var maximumConnect: UInt32 = 128 << 10
  /// The most messages at QoS 1 and 2 that a client may have in flight. Sent in CONNACK.
  package var receiveMaximum: UInt16 = 1024
  /// The most topic aliases that a client may set. Sent in CONNACK.
  package var topicAliasMaximum: UInt16 = 32
  /// The most topic aliases that the session sets for its client, if the client allows as many.
  package var outboundAliases: UInt16 = 16
  /// The most messages at QoS 1 and 2 in flight to a client, if the client allows as many.
  package var window = 1024
  /// The same for a session that outlives its connection: each message adds to the size of its stored state.
  package var lastingWindow = 32
  package var maximumSubscriptions = 10_000
  /// Seconds for which a session may outlive its connection; all ones: for ever.
  package var maximumSessionExpiry: UInt32 = .max
  /// The longest keep alive time, in seconds; 0 for any, including none.
  package var maximumKeepAlive: UInt16 = 0
  /// The nanoseconds after which a client that hasn't sent CONNECT is disconnected.
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
