import SluiceIO

/// How the nodes of a cluster know each other, so that one may ask another on behalf of its clients.
///
/// A node proves itself by the certificate of its TLS connection, which an authority has signed that this broker trusts. A client that can't prove that it is
/// a node can't name another identity than its own.
public struct PeerSecurity: Sendable {
  /// Where links to other nodes are opened: over TLS, with this node's certificate. Nil for the broker's own network.
  public var network: (any Network)?

  /// Whether links are opened to `tls://` addresses.
  public var usesTLS: Bool

  /// Whether the peer of a connection is a node, by the certificate that it has proved to be its own. From any loop.
  public var isNode: @Sendable (StreamSecurity) -> Bool

  /// - Parameters:
  ///   - network: where links to other nodes are opened; nil for the broker's own network.
  ///   - usesTLS: whether they are opened to `tls://` addresses.
  ///   - isNode: whether the peer of a connection is a node.
  public init(
    network: (any Network)? = nil, usesTLS: Bool = true, isNode: @escaping @Sendable (StreamSecurity) -> Bool
  ) {
    self.network = network
    self.usesTLS = usesTLS
    self.isNode = isNode
  }

  /// Nodes whose certificates have these names.
  ///
  /// - Parameters:
  ///   - names: the names in the nodes' certificates.
  ///   - network: where links to other nodes are opened; nil for the broker's own network.
  public static func certificates(of names: Set<String>, network: (any Network)? = nil) -> PeerSecurity {
    PeerSecurity(network: network) { security in security.peerName.map(names.contains) ?? false }
  }
}
