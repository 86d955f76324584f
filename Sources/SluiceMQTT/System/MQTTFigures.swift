/// The figures of a broker from which the values of `$SYS/broker/…` are made, as they are at one moment.
package struct MQTTFigures: Hashable, Sendable {
  /// Packets and bytes from and to clients since the broker started.
  package struct Traffic: Hashable, Sendable {
    /// Packets of every type.
    package var packetsReceived: UInt64 = 0
    package var packetsSent: UInt64 = 0
    package var publishesReceived: UInt64 = 0
    package var publishesSent: UInt64 = 0
    package var bytesReceived: UInt64 = 0
    package var bytesSent: UInt64 = 0
    /// Accepted connections, and CONNECT packets on them.
    package var sockets: UInt64 = 0
    package var connects: UInt64 = 0

    package init() {}
  }

  package var traffic = Traffic()
  /// Messages that weren't published, since their topics may not have such names.
  package var publishesDropped: UInt64 = 0
  package var connected = 0
  /// The most clients that were connected at the same time.
  package var mostConnected = 0
  /// Sessions without a connection.
  package var disconnected = 0
  /// Sessions that have expired.
  package var expired = 0
  /// Subscriptions of connected clients, shared ones included.
  package var subscriptions = 0
  package var sharedSubscriptions = 0
  package var retained = 0
  package var retainedBytes = 0

  package init() {}
}

/// Packets of one session since they were last taken.
package struct MQTTPacketCount: Hashable, Sendable {
  package var received: UInt32 = 0
  package var publishesReceived: UInt32 = 0
  package var sent: UInt32 = 0
  package var publishesSent: UInt32 = 0
}

/// Subscriptions of one session.
package struct MQTTSubscriptionCount: Hashable, Sendable {
  package var all: UInt16 = 0
  package var shared: UInt16 = 0

  package init() {}
}
