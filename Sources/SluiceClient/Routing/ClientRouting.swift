/// How a client of a cluster reaches topics that are served by other nodes than its own broker.
public enum ClientRouting: Hashable, Sendable {
  /// The client connects to the topic's node, when its broker names it, and publishes and subscribes there. One connection serves all of the client's streams
  /// at a node, with the same credentials and the same security; it is closed after a while without streams.
  ///
  /// Streams whose node can't be reached within 2 s are relayed for a minute, as with ``relay``. So are streams whose node has an address with less security
  /// than the client's broker: a node without TLS, if the broker has TLS or is on this machine.
  case direct
  /// The client's broker relays all streams to the other nodes. For clients behind a load balancer, or outside the cluster's network.
  case relay
}
