import SluiceBroker
import SluiceCluster
import SluiceCommand
import SluiceNATS
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
    guard case .fixed(.password("u", "secret")) = try user.clusterOptions().nats.credentials else {
      throw TestFailure("the password isn't used")
    }
    let token = try settings(node + ["--cluster-token-file", password]).clusterOptions()
    guard case .fixed(.token("secret")) = token.nats.credentials else { throw TestFailure("no token") }
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
      (["--node", "n1"], "--node: is about a cluster; name the servers"),
      (["--engine-unsafe"], "--engine-unsafe: is about a cluster"),
      (["--cluster-shards", "8"], "--cluster-shards: is about a cluster"),
      (["--cluster", "nats://e"], "--node NAME"),
      (["--cluster", "http://e", "--node", "n1"], "use nats:// or tls://"),
      (["--cluster", "nats://u:p@e", "--node", "n1"], "credentials in a file"),
      (["--cluster", "nats://e", "--node", "a.b"], "--node: 'a.b' can't be the name"),
      (["--cluster", "nats://e", "--node", ""], "--node: is empty"),
      (["--cluster", "nats://e", "--node", "n1", "--data", "d"], "--data: a node of a cluster keeps"),
      (
        ["--cluster", "nats://e", "--node", "n1", "--advertise", "0.0.0.0:7420"], "is no address that others"
      ),
      (["--cluster", "nats://e", "--node", "n1", "--advertise", "h:0"], "is no address that others"),
      (["--cluster", "nats://e", "--node", "n1", "--advertise", "unix:/x"], "is no address that others"),
      (
        ["--cluster", "nats://e", "--node", "n1", "--listen", "127.0.0.1:0"],
        "--cluster: 127.0.0.1:0 is no address to connect to"
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
    ])
  func contradictions(arguments: [String], part: String) throws {
    let error = #expect(throws: UsageError.self) { try settings(arguments) }
    #expect(error?.description.contains(part) == true, "\(error?.description ?? "")")
  }

  @Test("durable topics need no directory in a cluster")
  func durable() throws {
    #expect(try settings(node + ["--storage", "durable"]).broker.topicDefaults.storage == .durable)
  }
}
