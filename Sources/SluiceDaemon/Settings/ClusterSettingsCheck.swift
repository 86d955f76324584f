import SluiceBroker
import SluiceCommand
import SluiceIO
import SluiceWire

// Checks the settings of a node, and determines the address at which others reach it.
extension DaemonSettings {
  /// - Throws: `UsageError` for settings that contradict each other, and for an invalid name or address of the node.
  func checkCluster() throws(UsageError) {
    guard cluster.isOn else {
      if let given = givenClusterOption {
        throw UsageError(
          "--\(given): needs a cluster; name the servers of its engine with --cluster nats://A,B,C")
      }
      return
    }
    if data != nil {
      throw UsageError(
        "--data: a node of a cluster stores durable topics in the engine, not in a directory; leave out --data or --cluster"
      )
    }
    guard let node = cluster.node else {
      throw UsageError(
        "--cluster: this node has no name; give it a unique one with --node NAME")
    }
    guard NodeName.isValid(node) else {
      throw UsageError(
        "--node: '\(node)' can't be the name of a node; use 1 to 64 letters, digits, hyphens and underscores"
      )
    }
    try checkPeers()
    try checkEngineAccess()
  }

  /// Checks that nodes authenticate each other if clients authenticate.
  private func checkPeers() throws(UsageError) {
    guard cluster.peerAuthorities != nil else {
      if !cluster.peers.isEmpty {
        throw UsageError(
          "--cluster-peers: needs the authority of the nodes' certificates, which must sign no others; name it with --cluster-peer-ca FILE"
        )
      }
      let settings =
        "a certificate and its key with --tls-cert and --tls-key, their authority with --cluster-peer-ca, and the names in all nodes' certificates with --cluster-peers"
      if access.authenticatesClients {
        throw UsageError(
          "--cluster: if clients authenticate, nodes must authenticate to each other with certificates; listen on tls://HOST:PORT, and name \(settings)"
        )
      }
      let advertised = try advertisedAddress()
      if advertised.hasTLS {
        throw UsageError(
          "--cluster: nodes connect to each other over TLS (\(advertised)), and must authenticate with certificates; name \(settings)"
        )
      }
      return
    }
    if cluster.peers.isEmpty {
      throw UsageError(
        "--cluster-peer-ca: needs the names in the nodes' certificates; list them with --cluster-peers NAME,…"
      )
    }
    guard broker.listen.contains(where: { if case .tls = $0 { true } else { false } }) else {
      throw UsageError(
        "--cluster-peer-ca: other nodes connect to this one over TLS; listen on tls://HOST:PORT, with --tls-cert FILE --tls-key FILE"
      )
    }
    let advertised = try advertisedAddress()
    guard advertised.hasTLS else {
      throw UsageError(
        "--advertise: clients and other nodes connect to this one over TLS; write tls://\(advertised)")
    }
  }

  private func checkEngineAccess() throws(UsageError) {
    let ways = [
      ("cluster-user", cluster.user), ("cluster-token-file", cluster.tokenFile),
      ("cluster-credentials", cluster.credentials),
    ].filter { $0.1 != nil }.map(\.0)
    if ways.count > 1 { throw UsageError("--\(ways[0]): contradicts --\(ways[1]); give one of them") }
    if cluster.user != nil, cluster.passwordFile == nil {
      throw UsageError(
        "--cluster-user: needs --cluster-password-file FILE: other users could read a password on the command line"
      )
    }
    if cluster.passwordFile != nil, cluster.user == nil {
      throw UsageError("--cluster-password-file: needs --cluster-user NAME")
    }
    if cluster.certificate != nil, cluster.key == nil {
      throw UsageError("--cluster-tls-cert: its private key is missing; name it with --cluster-tls-key FILE")
    }
    if cluster.key != nil, cluster.certificate == nil {
      throw UsageError("--cluster-tls-key: needs --cluster-tls-cert FILE")
    }
  }

  private var givenClusterOption: String? {
    let texts = [
      ("node", cluster.node), ("advertise", cluster.advertised), ("cluster-user", cluster.user),
      ("cluster-password-file", cluster.passwordFile), ("cluster-token-file", cluster.tokenFile),
      ("cluster-credentials", cluster.credentials), ("cluster-tls-ca", cluster.authorities),
      ("cluster-tls-cert", cluster.certificate), ("cluster-tls-key", cluster.key),
      ("cluster-peer-ca", cluster.peerAuthorities), ("cluster-peers", cluster.peers.first),
    ]
    if let given = texts.first(where: { $0.1 != nil }) { return given.0 }
    let standard = ClusterSettings()
    if cluster.shards != standard.shards { return "cluster-shards" }
    if cluster.replicas != standard.replicas { return "cluster-replicas" }
    return cluster.isEngineUnsafe ? "engine-unsafe" : nil
  }

  /// The address at which clients and other nodes reach this node.
  ///
  /// - Throws: `UsageError` for an address to which no other machine could connect.
  func advertisedAddress() throws(UsageError) -> SocketAddress {
    let advice = "name the address for clients and other nodes with --advertise HOST:PORT"
    guard let text = cluster.advertised else {
      let isSecure = cluster.peerAuthorities != nil
      let first = broker.listen.first {
        switch $0 {
        case .unix: false
        case .tls: true
        case .host, .door: !isSecure
        }
      }
      guard let first, first.isReachable else {
        let reason = first.map { "other machines can't connect to \($0)" } ?? "no address is listened on"
        throw UsageError("--cluster: \(reason); \(advice)")
      }
      return first
    }
    let address: SocketAddress
    do {
      address = try Values.address(text, port: 7420)
    } catch {
      throw UsageError("--advertise: \(error)")
    }
    guard address.isReachable else {
      throw UsageError(
        "--advertise: other machines can't connect to '\(text)'; name a host and a port, like \(cluster.name).example:7420"
      )
    }
    return address
  }
}

extension SocketAddress {
  /// Whether a client could connect to the address: it must name a host and a port.
  fileprivate var isReachable: Bool {
    switch self {
    case .unix, .door: false
    case .host(let host, let port), .tls(let host, let port):
      port > 0 && !["", "0.0.0.0", "::", "*"].contains(host)
    }
  }
}
