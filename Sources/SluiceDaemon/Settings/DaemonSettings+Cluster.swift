import SluiceAccess
import SluiceBroker
import SluiceCluster
import SluiceCommand
import SluiceIO
import SluiceNATS
import SluiceTLS

/// The broker's settings as a node of a cluster; unused by a broker of one node.
struct ClusterSettings {
  /// The servers of the engine; empty for a broker of one node.
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
  /// The file with the authorities of nodes' certificates; nil if nodes don't authenticate each other.
  var peerAuthorities: String?
  /// The names in nodes' certificates.
  var peers: [String] = []
  var shards = 64
  var replicas = 3
  var isEngineUnsafe = false

  var isOn: Bool { !engine.isEmpty }
  /// The node's name, or a placeholder for messages about settings.
  var name: String { node ?? "node" }
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

  /// A setting that accepts any text.
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

  // MARK: Options for the cluster

  /// - Throws: `UsageError` for files that can't be read.
  func clusterOptions() throws(UsageError) -> ClusterOptions {
    var options = ClusterOptions(
      name: cluster.name, advertisedAddress: try advertisedAddress().description, engine: cluster.engine)
    options.version = Version.text
    options.shards = cluster.shards
    options.replicas = cluster.replicas
    options.engineUnsafe = cluster.isEngineUnsafe
    options.nats.name = "sluiced \(cluster.name)"
    options.nats.credentials = try engineCredentials()
    options.nats.tls.authorities = cluster.authorities
    options.nats.tls.certificate = cluster.certificate
    options.nats.tls.key = cluster.key
    return options
  }

  private func engineCredentials() throws(UsageError) -> NATSCredentialsSource {
    // The files are read at each connection. Reading them here reports unreadable files at the start.
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
