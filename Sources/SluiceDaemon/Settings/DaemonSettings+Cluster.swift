import SluiceAccess
import SluiceBroker
import SluiceCluster
import SluiceCommand
import SluiceIO
import SluiceNATS
import SluiceTLS
import SluiceWire

/// How the broker takes part in a cluster; unused by a broker of one node.
struct ClusterSettings {
  /// The servers of the engine; none for a broker of one node.
  var engine: [NATSAddress] = []
  var node: String?
  var advertised: String?
  var user: String?
  var passwordFile: String?
  var tokenFile: String?
  var credentials: String?
  var authorities: String?
  var certificate: String?
  var key: String?
  /// The file with the authorities of nodes' certificates; nil where nodes don't prove themselves.
  var peerAuthorities: String?
  /// The names in them.
  var peers: [String] = []
  var shards = 64
  var replicas = 3
  var isEngineUnsafe = false

  var isOn: Bool { !engine.isEmpty }
}

extension DaemonSettings {
  static func clusterSettings() -> [Setting] {
    let flag = CommandOption(
      "engine-unsafe", value: "BOOL", bare: "true",
      help: "Join a cluster whose engine may lose what it has acknowledged, or can't be asked about that.",
      standard: "false")
    let word = Values.choice(["true": true, "false": false, "on": true, "off": false, "1": true, "0": false])
    return [
      engineSetting(),
      text(
        "node", "NAME", \.cluster.node,
        "The name of this node: from 1 to 64 letters, digits, hyphens and underscores. No two nodes of a cluster may have the same."
      ),
      text(
        "advertise", "ADDR", \.cluster.advertised,
        "Where clients and other nodes reach this node: HOST:PORT. The first address of --listen, unless that stands for all addresses or any port."
      ),
      text(
        "cluster-user", "NAME", \.cluster.user,
        "The user of the engine's account, with --cluster-password-file."),
      .path(
        "cluster-password-file", "FILE", \.cluster.passwordFile,
        "The user's password: the first line of FILE."),
      .path(
        "cluster-token-file", "FILE", \.cluster.tokenFile, "A token for the engine: the first line of FILE."),
      .path(
        "cluster-credentials", "FILE", \.cluster.credentials,
        "Credentials for the engine: a file with a JWT and a seed, as nsc makes it, or with the seed of an nkey alone."
      ),
      .path(
        "cluster-tls-ca", "FILE", \.cluster.authorities,
        "Trust servers of the engine that the authorities in FILE have signed, rather than those that the system trusts."
      ),
      .path(
        "cluster-tls-cert", "FILE", \.cluster.certificate,
        "Show this certificate to servers of the engine that ask for one; with --cluster-tls-key."),
      .path("cluster-tls-key", "FILE", \.cluster.key, "Its private key, in PEM."),
      .path(
        "cluster-peer-ca", "FILE", \.cluster.peerAuthorities,
        "Know the other nodes by certificates that the authorities in FILE have signed, which sign those of nodes only. --tls-cert is such a certificate."
      ),
      peerSetting(),
      .count(
        "cluster-shards", \.cluster.shards, in: 1...65_536,
        "How many shards a cluster has that this node makes; one that exists keeps its number."),
      .count(
        "cluster-replicas", \.cluster.replicas, in: 1...5,
        "On how many servers of the engine everything is kept: 3 or 5; with 1 or 2, the loss of a server stops the cluster."
      ),
      Setting(flag, write: { $0.cluster.isEngineUnsafe ? "true" : "false" }) {
        arguments, settings throws(UsageError) in
        if let value = try arguments.value("engine-unsafe", word) { settings.cluster.isEngineUnsafe = value }
      },
    ]
  }

  private static func engineSetting() -> Setting {
    let option = CommandOption(
      "cluster", value: "URL",
      help:
        "Be a node of a cluster, whose engine has these servers: nats://HOST:PORT or tls://HOST:PORT, with commas between them. Without a port, 4222.",
      isRepeatable: true)
    return Setting(
      option,
      write: { settings in
        guard settings.cluster.isOn else { return nil }
        return settings.cluster.engine.map { $0.requiresTLS ? "\($0)" : "nats://\($0)" }.joined(
          separator: ",")
      }
    ) { arguments, settings throws(UsageError) in
      let texts = arguments.texts("cluster")
      guard !texts.isEmpty else { return }
      do throws(NATSError) {
        settings.cluster.engine = try NATSAddress.list(parsing: texts.joined(separator: ","))
      } catch {
        throw UsageError("--cluster: \(error.message)")
      }
    }
  }

  private static func peerSetting() -> Setting {
    let option = CommandOption(
      "cluster-peers", value: "NAME",
      help:
        "The names in the certificates of all nodes, with commas between them; *.example.org stands for each name with one more label in front.",
      isRepeatable: true)
    return Setting(
      option, write: { $0.cluster.peers.isEmpty ? nil : $0.cluster.peers.joined(separator: ",") }
    ) { arguments, settings throws(UsageError) in
      let lists = try arguments.values("cluster-peers") { text throws(ValueError) in
        let names = text.split(separator: ",").map(String.init)
        for name in names where !Self.isPeerName(name) {
          throw ValueError("'\(name)' is no name of a certificate, such as n1.example.org")
        }
        return names
      }
      if !lists.isEmpty { settings.cluster.peers = Array(lists.joined()) }
    }
  }

  private static func isPeerName(_ text: String) -> Bool {
    let name = text.dropFirst(text.hasPrefix("*.") ? 2 : 0)
    return IdentityRules.objection(to: String(name)) == nil && !name.contains("*")
  }

  /// A setting with any text.
  private static func text(
    _ name: String, _ placeholder: String, _ target: WritableKeyPath<DaemonSettings, String?>, _ help: String
  ) -> Setting {
    let option = CommandOption(name, value: placeholder, help: help)
    return Setting(option, write: { $0[keyPath: target] }) { arguments, settings throws(UsageError) in
      guard let text = arguments.text(name) else { return }
      guard !text.isEmpty else { throw UsageError("--\(name): is empty") }
      settings[keyPath: target] = text
    }
  }

  // MARK: What doesn't go together

  /// - Throws: `UsageError` for settings that contradict each other, and for what can't be a node's name or address.
  func checkCluster() throws(UsageError) {
    guard cluster.isOn else {
      if let given = givenClusterOption {
        throw UsageError(
          "--\(given): is about a cluster; name the servers of its engine with --cluster nats://A,B,C")
      }
      return
    }
    if data != nil {
      throw UsageError(
        "--data: a node of a cluster keeps durable topics in the cluster's engine, not in a directory; leave one of --data and --cluster out"
      )
    }
    guard let node = cluster.node else {
      throw UsageError(
        "--cluster: this node has no name; give it one, that no other node has, with --node NAME")
    }
    guard NodeName.isValid(node) else {
      throw UsageError(
        "--node: '\(node)' can't be the name of a node; it has from 1 to 64 letters, digits, hyphens and underscores"
      )
    }
    try checkPeers()
    try checkEngineAccess()
  }

  /// Nodes prove themselves to each other where clients do to the broker.
  private func checkPeers() throws(UsageError) {
    guard cluster.peerAuthorities != nil else {
      if !cluster.peers.isEmpty {
        throw UsageError(
          "--cluster-peers: name the authority that has signed the nodes' certificates, and signs those of nodes only, with --cluster-peer-ca FILE"
        )
      }
      let settings =
        "a certificate and its key with --tls-cert and --tls-key, their authority with --cluster-peer-ca, and the names in all nodes' certificates with --cluster-peers"
      if access.authenticatesClients {
        throw UsageError(
          "--cluster: clients authenticate, and a node asks others on behalf of its clients, so it has to prove that it is a node; listen on tls://HOST:PORT, and name \(settings)"
        )
      }
      let advertised = try advertisedAddress()
      if advertised.hasTLS {
        throw UsageError(
          "--cluster: nodes connect to each other over TLS, as \(advertised) says, and have to know each other's certificates; name \(settings)"
        )
      }
      return
    }
    if cluster.peers.isEmpty {
      throw UsageError(
        "--cluster-peer-ca: name the certificates that are nodes', by the names in them, with --cluster-peers NAME,…"
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
        "--cluster-user: needs --cluster-password-file FILE: a password isn't given on the command line, where others can read it"
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

  /// Where clients and other nodes reach this one.
  ///
  /// - Throws: `UsageError` for an address that no other machine could connect to.
  func advertisedAddress() throws(UsageError) -> SocketAddress {
    let advice = "say where clients and other nodes reach this one with --advertise HOST:PORT"
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
        let reason = first.map { "\($0) is no address to connect to" } ?? "there is no address to connect to"
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
        "--advertise: '\(text)' is no address that others could connect to; name the host and the port, like \(node).example:7420"
      )
    }
    return address
  }

  private var node: String { cluster.node ?? "node" }

  // MARK: For the cluster

  /// - Throws: `UsageError` for files that can't be read.
  func clusterOptions() throws(UsageError) -> ClusterOptions {
    var options = ClusterOptions(
      name: node, advertisedAddress: try advertisedAddress().description, engine: cluster.engine)
    options.version = Version.text
    options.shards = cluster.shards
    options.replicas = cluster.replicas
    options.engineUnsafe = cluster.isEngineUnsafe
    options.nats.name = "sluiced \(node)"
    options.nats.credentials = try engineCredentials()
    options.nats.tls.authorities = cluster.authorities
    options.nats.tls.certificate = cluster.certificate
    options.nats.tls.key = cluster.key
    return options
  }

  private func engineCredentials() throws(UsageError) -> NATSCredentialsSource {
    // The files are read again at each connection; one that can't be read is told at the start.
    if let user = cluster.user, let path = cluster.passwordFile {
      _ = try SecretFile.firstLine(of: path)
      return .passwordFile(user: user, path)
    }
    if let path = cluster.tokenFile {
      _ = try SecretFile.firstLine(of: path)
      return .tokenFile(path)
    }
    guard let path = cluster.credentials else { return .fixed(.none) }
    let line = try SecretFile.firstLine(of: path)
    return line.hasPrefix("SU") ? .seedFile(path) : .file(path)
  }
}

extension SocketAddress {
  /// Whether a client could connect to it: neither all addresses of a machine, nor any port, nor a file.
  fileprivate var isReachable: Bool {
    switch self {
    case .unix, .door: false
    case .host(let host, let port), .tls(let host, let port):
      port > 0 && !["", "0.0.0.0", "::", "*"].contains(host)
    }
  }
}
