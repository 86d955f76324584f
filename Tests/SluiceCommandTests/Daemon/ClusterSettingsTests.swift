import SluiceBroker
import SluiceCluster
import SluiceCommand
import SluiceIO
import SluiceNATS
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

@testable import SluiceDaemon

@Suite("The daemon's settings for a cluster")
struct ClusterSettingsTests {
  private func settings(
    _ arguments: [String], environment: [String: String] = [:]
  ) throws(UsageError) -> DaemonSettings {
    try DaemonSettings(
      ArgumentParser(DaemonPage.page()).parse(arguments, environment: { environment[$0] }))
  }

  private let node = [
    "--cluster", "nats://10.0.0.1,10.0.0.2:4333", "--node", "n1", "--listen", "10.0.0.9:7420",
    "--allow-unauthenticated",
  ]

  @Test("options reach the node")
  func options() throws {
    #expect(try !settings([]).cluster.isOn)
    let options = try settings(
      node + ["--cluster-shards", "16", "--cluster-replicas", "5", "--engine-unsafe"]
    )
    .clusterOptions()
    #expect(options.name == "n1" && options.advertisedAddress == "10.0.0.9:7420")
    #expect(options.engine.map(\.host) == ["10.0.0.1", "10.0.0.2"])
    #expect(options.engine.map(\.port) == [4222, 4333])
    #expect(options.shards == 16 && options.replicas == 5 && options.engineUnsafe)
    #expect(options.version == Version.text)
  }

  @Test("the environment and the file say the same")
  func environment() throws {
    let environment = [
      "SLUICED_CLUSTER": "tls://e1,e2", "SLUICED_NODE": "n2", "SLUICED_ADVERTISE": "n2.example",
    ]
    let options = try settings([], environment: environment).clusterOptions()
    #expect(options.name == "n2" && options.advertisedAddress == "n2.example:7420")
    #expect(options.engine.allSatisfy(\.requiresTLS) && options.engine.count == 2)
    let text = """
      [cluster]
      engine = ["nats://e1", "nats://e2"]
      node = "n3"
      advertise = "[fd00::3]:7420"
      shards = 8
      """
    let file = try ConfigurationFile("sluiced.toml", Array(text.utf8))
    let written = try DaemonSettings(ParsedArguments(), file: file).clusterOptions()
    #expect(written.name == "n3" && written.shards == 8 && written.engine.count == 2)
    #expect(written.advertisedAddress == "[fd00::3]:7420")
  }

  @Test("credentials come from files")
  func credentials() throws {
    let directory = try TemporaryDirectory()
    let (password, seed) = (directory.file("password"), directory.file("seed"))
    try writeFile(password, Array("secret\n".utf8))
    try writeFile(seed, Array("SUAIBDPBAUTWCWBKIO6XHQNINK5FWJW4OHLXC3HQ2KFE4PEJUA44CNHTC4\n".utf8))
    let user = try settings(node + ["--cluster-user", "u", "--cluster-password-file", password])
    guard case .passwordFile("u", password) = try user.clusterOptions().nats.credentials else {
      throw TestFailure("the password isn't used")
    }
    let token = try settings(node + ["--cluster-token-file", password]).clusterOptions()
    guard case .tokenFile(password) = token.nats.credentials else { throw TestFailure("no token") }
    guard
      case .seedFile(seed) = try settings(node + ["--cluster-credentials", seed]).clusterOptions().nats
        .credentials
    else { throw TestFailure("the seed's file isn't one") }
    guard
      case .file(password) = try settings(node + ["--cluster-credentials", password]).clusterOptions().nats
        .credentials
    else { throw TestFailure("the credentials' file isn't one") }
    let missing = try settings(node + ["--cluster-token-file", directory.file("none")])
    #expect(throws: UsageError.self) { try missing.clusterOptions() }
  }

  @Test(
    "what can't be a node is refused with what to do",
    arguments: [
      (["--node", "n1"], "--node: needs a cluster; name the servers"),
      (["--engine-unsafe"], "--engine-unsafe: needs a cluster"),
      (["--cluster-shards", "8"], "--cluster-shards: needs a cluster"),
      (["--cluster", "nats://e"], "--node NAME"),
      (["--cluster", "http://e", "--node", "n1"], "use nats:// or tls://"),
      (["--cluster", "nats://u:p@e", "--node", "n1"], "credentials in a file"),
      (["--cluster", "nats://e", "--node", "a.b"], "--node: 'a.b' can't be the name"),
      (["--cluster", "nats://e", "--node", ""], "--node: is empty"),
      (["--cluster", "nats://e", "--node", "n1", "--data", "d"], "--data: a node of a cluster stores"),
      (
        ["--cluster", "nats://e", "--node", "n1", "--advertise", "0.0.0.0:7420"],
        "--advertise: other machines can't connect to"
      ),
      (
        ["--cluster", "nats://e", "--node", "n1", "--advertise", "h:0"],
        "--advertise: other machines can't connect to"
      ),
      (
        ["--cluster", "nats://e", "--node", "n1", "--advertise", "unix:/x"],
        "--advertise: other machines can't connect to"
      ),
      (
        ["--cluster", "nats://e", "--node", "n1", "--listen", "127.0.0.1:0"],
        "--cluster: other machines can't connect to 127.0.0.1:0"
      ),
      (["--cluster", "nats://e", "--node", "n1", "--listen", "unix:/x"], "--advertise HOST:PORT"),
      (["--cluster", "nats://e", "--node", "n1", "--cluster-user", "u"], "--cluster-password-file FILE"),
      (["--cluster", "nats://e", "--node", "n1", "--cluster-password-file", "p"], "--cluster-user NAME"),
      (
        ["--cluster", "nats://e", "--node", "n1", "--cluster-token-file", "t", "--cluster-credentials", "c"],
        "--cluster-token-file: contradicts --cluster-credentials"
      ),
      (["--cluster", "nats://e", "--node", "n1", "--cluster-tls-cert", "c"], "--cluster-tls-key FILE"),
      (["--cluster", "nats://e", "--node", "n1", "--cluster-tls-key", "c"], "--cluster-tls-cert FILE"),
      (["--cluster-peer-ca", "f"], "--cluster-peer-ca: needs a cluster"),
      (["--cluster-peers", "n1"], "--cluster-peers: needs a cluster"),
      (
        ["--cluster", "nats://e", "--node", "n1", "--cluster-peers", "a*"], "'a*' isn't a certificate's name"
      ),
      (["--cluster", "nats://e", "--node", "n1", "--cluster-peers", "n1"], "with --cluster-peer-ca FILE"),
      (["--cluster", "nats://e", "--node", "n1", "--cluster-peer-ca", "f"], "with --cluster-peers NAME,…"),
      (
        [
          "--cluster", "nats://e", "--node", "n1", "--advertise", "h", "--cluster-peer-ca", "f",
          "--cluster-peers", "n1",
        ], "--cluster-peer-ca: other nodes connect to this one over TLS; listen on tls://HOST:PORT"
      ),
      (
        [
          "--cluster", "nats://e", "--node", "n1", "--advertise", "h", "--listen", "tls://127.0.0.1:7420",
          "--cluster-peer-ca", "f", "--cluster-peers", "n1",
        ], "--advertise: clients and other nodes connect to this one over TLS; write tls://h:7420"
      ),
      (
        ["--cluster", "nats://e", "--node", "n1", "--users", "u", "--listen", "127.0.0.1:7420"],
        "--cluster: if clients authenticate, nodes must authenticate to each other"
      ),
      (
        ["--cluster", "nats://e", "--node", "n1", "--listen", "tls://127.0.0.1:7420"],
        "and must authenticate with certificates; name a certificate and its key with --tls-cert"
      ),
    ])
  func contradictions(arguments: [String], part: String) throws {
    let error = #expect(throws: UsageError.self) { try settings(arguments) }
    #expect(error?.description.contains(part) == true, "\(error?.description ?? "")")
  }

  private let secure = [
    "--cluster", "tls://e", "--node", "n1", "--listen", "127.0.0.1:0", "--listen", "tls://127.0.0.1:7420",
    "--users", "u", "--tls-cert", "c", "--tls-key", "k", "--cluster-peer-ca", "ca", "--cluster-peers",
    "n1,*.example.org",
  ]

  @Test("nodes know each other by certificates where clients authenticate")
  func peers() throws {
    let settings = try settings(secure)
    #expect(settings.cluster.peers == ["n1", "*.example.org"])
    #expect(try settings.advertisedAddress().description == "tls://127.0.0.1:7420")
    #expect(try settings.tlsOptions()?.nodeAuthorities == "ca")
    #expect(try settings.tlsOptions()?.clientCertificates == .off)
    let names = PeerNames(settings.cluster.peers)
    for name in ["n1", "N1", "a.example.org"] { #expect(names.contains(name)) }
    for name in [
      "n2", "example.org", ".example.org", "a.b.example.org", "*.example.org.", "n1.example.net", "",
    ] {
      #expect(!names.contains(name), "\(name)")
    }
    let text = """
      listen = ["tls://127.0.0.1:7420"]
      [tls]
      cert = "c"
      key = "k"
      [access]
      users = "u"
      [cluster]
      engine = ["tls://e"]
      node = "n1"
      peer-ca = "ca"
      peers = ["n1", "n2"]
      """
    let file = try ConfigurationFile("/etc/sluiced.toml", Array(text.utf8))
    let written = try DaemonSettings(ParsedArguments(), file: file)
    #expect(written.cluster.peers == ["n1", "n2"] && written.cluster.peerAuthorities == "/etc/ca")
  }

  @Test("a node looks whether other nodes take its certificate for a node's")
  func ownCertificate() throws {
    let nodes = try TestCertificates(nodes: ["n1", "n2"])
    let others = try TestCertificates()
    func problem(_ certificate: String, _ key: String, _ authority: String, _ names: [String]) throws
      -> String
    {
      var settings = try settings(secure)
      settings.tls.certificate = certificate
      settings.tls.key = key
      settings.cluster.peerAuthorities = authority
      settings.cluster.peers = names
      do {
        let tls = try Startup.tlsServer(settings, Logger(level: .error, format: .text))
        #expect(try Startup.clusterPeers(settings, tls) != nil)
        return ""
      } catch {
        return "\(error)"
      }
    }
    let (certificate, key) = (nodes.path(of: "n1.pem"), nodes.path(of: "n1.key"))
    #expect(try problem(certificate, key, nodes.authority, ["n1"]).isEmpty)
    #expect(
      try problem(certificate, key, others.authority, ["n1"]).contains("n1.pem': as a server certificate: "))
    #expect(
      try problem(others.server, others.serverKey, others.authority, ["localhost"]).contains(
        "as a client certificate: "))
    #expect(
      try problem(certificate, key, nodes.authority, ["n2"]).contains("own certificate, 'n1', is missing"))
    #expect(try problem(certificate, key, "/none", ["n1"]).contains("'/none': can't be read"))
  }

  @Test("durable topics need no directory in a cluster")
  func durable() throws {
    #expect(try settings(node + ["--storage", "durable"]).broker.topicDefaults.storage == .durable)
  }
}
