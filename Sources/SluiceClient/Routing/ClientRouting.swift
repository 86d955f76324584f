/// How a client of a cluster reaches topics that other nodes serve than the one that it is connected to.
public enum ClientRouting: Hashable, Sendable {
  /// The client connects to the topic's node, when its broker names it, and publishes and subscribes there. One connection serves all of the client's streams
  /// at a node, with the same credentials and the same security; it is closed after a while without streams.
  ///
  /// Streams whose node can't be reached within 2 s are relayed for a minute, as with ``relay``; so are those whose node has an address with less
  /// security than the client's broker: without TLS where that one has TLS or is on this machine.
  case direct
  /// The client's broker serves everything by way of the other nodes. For clients behind a load balancer, or outside of the cluster's network.
  case relay
}
