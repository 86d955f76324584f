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
      help: "Join a cluster although its engine may lose acknowledged records, or can't be checked.",
      standard: "false")
    let word = Values.choice(["true": true, "false": false, "on": true, "off": false, "1": true, "0": false])
    return [
      engineSetting(),
      text(
        "node", "NAME", \.cluster.node,
        "The name of this node, unique in its cluster: 1 to 64 letters, digits, hyphens and underscores."
      ),
      text(
        "advertise", "ADDR", \.cluster.advertised,
        "The address for clients and other nodes: HOST:PORT. The default is the first address of --listen, unless that is for all addresses or any port."
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
        "Trust engine certificates that are signed by the authorities in FILE, instead of the system's authorities."
      ),
      .path(
        "cluster-tls-cert", "FILE", \.cluster.certificate,
        "The node's certificate for servers of the engine that request one; with --cluster-tls-key."),
      .path("cluster-tls-key", "FILE", \.cluster.key, "The private key of --cluster-tls-cert, in PEM."),
      .path(
        "cluster-peer-ca", "FILE", \.cluster.peerAuthorities,
        "Accept nodes whose certificates are signed by the authorities in FILE, which must sign only nodes' certificates. --tls-cert is such a certificate."
      ),
      peerSetting(),
      .count(
        "cluster-shards", \.cluster.shards, in: 1...65_536,
        "The number of shards of a new cluster. An existing cluster keeps its number."),
      .count(
        "cluster-replicas", \.cluster.replicas, in: 1...5,
        "On how many servers the engine stores everything: 3 or 5. With 1 or 2, the loss of a server stops the cluster."
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
        "Join the cluster whose engine has these servers: nats://HOST:PORT or tls://HOST:PORT, separated by commas. The default port is 4222.",
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
        "The names in the certificates of all nodes, separated by commas; *.example.org matches names with one more label.",
      isRepeatable: true)
    return Setting(
      option, write: { $0.cluster.peers.isEmpty ? nil : $0.cluster.peers.joined(separator: ",") }
    ) { arguments, settings throws(UsageError) in
      let lists = try arguments.values("cluster-peers") { text throws(ValueError) in
        let names = text.split(separator: ",").map(String.init)
        for name in names where !Self.isPeerName(name) {
          throw ValueError("'\(name)' isn't a certificate's name; write it like n1.example.org")
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
