import SluiceIO

/// How the nodes of a cluster authenticate each other, so that one may send requests on behalf of its clients.
///
/// A node proves its role by the certificate of its TLS connection, signed by an authority that signs only nodes' certificates. A client that can't
/// prove that it is a node can't claim another identity than its own.
public struct PeerSecurity: Sendable {
  /// Where links to other nodes are opened: over TLS, with this node's certificate. Nil for the broker's own network.
  public var network: (any Network)?

  /// Whether links are opened to `tls://` addresses.
  public var usesTLS: Bool

  /// Returns whether the peer of a connection is a node, by the certificate that the peer has proved to own. From any loop.
  public var isNode: @Sendable (StreamSecurity) -> Bool

  /// - Parameters:
  ///   - network: where links to other nodes are opened; nil for the broker's own network.
  ///   - usesTLS: whether they are opened to `tls://` addresses.
  ///   - isNode: returns whether the peer of a connection is a node.
  public init(
    network: (any Network)? = nil, usesTLS: Bool = true, isNode: @escaping @Sendable (StreamSecurity) -> Bool
  ) {
    self.network = network
    self.usesTLS = usesTLS
    self.isNode = isNode
  }

  /// Accepts nodes whose certificates are signed by an authority of nodes and have one of these names.
  ///
  /// - Parameters:
  ///   - names: the names in the nodes' certificates.
  ///   - network: where links to other nodes are opened; nil for the broker's own network.
  public static func certificates(of names: PeerNames, network: (any Network)? = nil) -> PeerSecurity {
    PeerSecurity(network: network) { security in security.nodeName.map(names.contains) ?? false }
  }
}

/// Names in the certificates of nodes: whole ones, and `*.example.org`, which stands for each name with one more label in front.
public struct PeerNames: Hashable, Sendable, ExpressibleByArrayLiteral {
  /// In lower case.
  private let whole: Set<String>
  /// The parts after the `*`, each with its leading dot.
  private let suffixes: Set<String>

  public init(_ names: some Sequence<String>) {
    let names = names.map { $0.lowercased() }
    whole = Set(names.filter { !$0.hasPrefix("*.") })
    suffixes = Set(names.filter { $0.hasPrefix("*.") }.map { String($0.dropFirst()) })
  }

  public init(arrayLiteral names: String...) { self.init(names) }

  /// Whether a certificate with this name is among them. Upper and lower case are the same.
  public func contains(_ name: String) -> Bool {
    let name = name.lowercased()
    if whole.contains(name) { return true }
    guard let dot = name.firstIndex(of: "."), dot > name.startIndex else { return false }
    return suffixes.contains(String(name[dot...]))
  }
}
