import Glibc
import EngineTestSupport
import SluiceClient
import SluiceNATS
import TestSupport

/// Three servers of the engine and three brokers, as `scripts/cluster.sh` runs them, on their own address and in their own folder. If this machine
/// supports it, each process has its own network, which can be cut, and each server its own disk, which can lose power.
///
/// `SLUICE_BIN_DIR` is the folder of `sluiced`, by default the tests' build.
final class ClusterStage {
  /// A server of the engine or a broker.
  struct Member: Hashable {
    var name: String
    var address: String
    var process: Int32

    func signal(_ signal: Int32) { kill(process, signal) }
    var isRunning: Bool { kill(process, 0) == 0 }
  }

  /// Why the tests of this stage are skipped.
  static let absence = "nats-server isn't installed: run scripts/nats-server.sh"

  static let hasEngine: Bool = {
    if let path = getenv("SLUICE_NATS_SERVER"), path.pointee != 0 { return true }
    return access(checkout + "/.build/engine/nats-server-2.15.1", X_OK) == 0
  }()

  /// Why this machine can't cut the network between processes; nil if it can.
  static let cutObstacle = obstacle("can-cut")
  /// Why this machine can't take the power from disks; nil if it can.
  static let powerObstacle = obstacle("can-lose-power")

  private static func obstacle(_ command: String) -> String? {
    guard let child = try? ChildProcess("/bin/bash", [checkout + "/scripts/cluster.sh", command]),
      let exit = try? child.waitForExit()
    else { return "scripts/cluster.sh doesn't run" }
    if exit == .code(0) { return nil }
    return child.standardError.lines.last.map { String($0) } ?? "scripts/cluster.sh \(command) fails"
  }

  static let checkout: String = {
    let path = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(4)
    return path.joined(separator: "/")
  }()

  private let directory: TemporaryDirectory
  private let host = Loopback.freshHost()
  private(set) var engines: [Member] = []
  private(set) var nodes: [Member] = []
  /// Two paths of folders with `sluiced`.
  private let programs: [String]
  private var program = 0

  /// Whether all authenticate over TLS.
  let isSecure: Bool
  /// Whether each process has its own network, which can be cut, and each server of the engine its own disk, which can lose power.
  private let hasCables: Bool
  private let hasDisks: Bool

  /// - Parameters:
  ///   - users: the users of a secure cluster besides `admin`, and their permissions; nil for a cluster without TLS and authentication.
  ///   - isFragile: whether links are cut and disks lose power, as far as this machine supports it. A process has at most one such stage.
  init(users: [(name: String, permissions: String)]? = nil, isFragile: Bool = false) throws {
    directory = try TemporaryDirectory()
    var folder = getenv("SLUICE_BIN_DIR").map { String(cString: $0) } ?? ""
    if folder.isEmpty {
      folder = try BuiltProduct.path("sluiced").split(separator: "/", omittingEmptySubsequences: false)
        .dropLast()
        .joined(separator: "/")
    }
    programs = [folder, directory.file("programs")]
    mkdir(programs[1], 0o755)
    let copy = try ChildProcess("/bin/cp", [folder + "/sluiced", programs[1]])
    try require(try copy.waitForExit() == .code(0), "\(copy.name): \(copy.messages)")
    isSecure = users != nil
    (hasCables, hasDisks) = (isFragile && Self.cutObstacle == nil, isFragile && Self.powerObstacle == nil)
    if let users { try addUsers(users) }
    try up()
  }

  private func addUsers(_ users: [(name: String, permissions: String)]) throws {
    mkdir(directory.file("cluster"), 0o700)
    var permissions = ""
    for user in users {
      let password = path("\(user.name)-password")
      try writeFile(password, Array("the password of \(user.name)\n".utf8))
      let child = try ChildProcess(
        BuiltProduct.path("sluice"),
        ["user", "add", user.name, "--file", path("users"), "--password-file", password])
      try require(try child.waitForExit() == .code(0), "\(child.messages)")
      permissions += "\(user.name) \(user.permissions)\n"
    }
    try writeFile(path("permissions"), Array(permissions.utf8))
    chmod(path("permissions"), 0o600)
  }

  /// The path of a file in the cluster's folder.
  func path(_ file: String) -> String { directory.file("cluster/\(file)") }

  deinit { _ = try? run("erase") }

  /// Starts every process that isn't running, and waits until all are ready.
  func up() throws {
    let child = try run("up", isSecure ? ["--secure"] : [])
    guard try child.waitForExit() == .code(0) else {
      throw TestFailure("\(child.name): \(child.messages)\(logs)")
    }
    func members(_ kind: String) -> [Member] {
      child.standardOutput.lines.compactMap { line in
        let words = line.split(separator: " ").map(String.init)
        guard words.count == 4, words[0] == kind, let process = Int32(words[3]) else { return nil }
        return Member(name: words[1], address: words[2], process: process)
      }
    }
    (engines, nodes) = (members("engine"), members("node"))
    try require(engines.count == 3 && nodes.count == 3, "cluster.sh printed \(child.standardOutput.text)")
  }

  /// Stops all processes in order; stored records stay.
  func down() throws { try succeed("down") }

  /// The number of a node's shards, as reported by the first other node.
  func shards(of node: String) throws -> Int {
    let other = nodes.firstIndex { $0.name != node } ?? 0
    return try sluice("cluster", "shards", "--node", node, at: other).text.split(separator: "\n").count
  }

  /// Makes later starts of nodes use the other path.
  func changePrograms() { program = 1 - program }

  /// Starts losing packets.
  func cut(_ cuts: [ClusterLoss.Cut]) throws { try succeed("cut", cuts.flatMap { [$0.from, $0.to] }) }

  /// Ends all cuts.
  func heal() throws { try succeed("heal") }

  /// Takes the power from the engine's disks, and ends all processes.
  func losePower() throws { try succeed("lose-power") }

  /// Waits until every server of the engine has the same data as the others.
  func awaitCopies() throws { try succeed("await-copies") }

  private func succeed(_ command: String, _ arguments: [String] = []) throws {
    let child = try run(command, arguments)
    try require(try child.waitForExit() == .code(0), "\(child.name): \(child.messages)\(logs)")
  }

  private func run(_ command: String, _ arguments: [String] = []) throws -> ChildProcess {
    var environment = [
      "SLUICE_CLUSTER_DIR": directory.file("cluster"), "SLUICE_CLUSTER_HOST": host,
      "SLUICE_CLUSTER_OWNER": "\(getpid())", "SLUICE_BIN_DIR": programs[program],
    ]
    if hasCables {
      let process = Int(getpid())
      environment["SLUICE_CLUSTER_NETWORK"] = "10.\(200 + process / 200 % 50).\(1 + process % 200)"
    }
    // In MiB.
    if hasDisks { environment["SLUICE_CLUSTER_DISK"] = "1024" }
    let child = try ChildProcess(
      "/bin/bash", [Self.checkout + "/scripts/cluster.sh", command] + arguments, environment: environment)
    try child.waitForExit()
    return child
  }

  /// The last lines of the nodes' logs.
  var logs: String {
    nodes.map { "\n\($0.name):\n" + log(of: $0.name).suffix(20).joined(separator: "\n") }.joined()
  }

  func log(of member: String) -> [Substring] {
    let bytes = (try? readFile(directory.file("cluster/\(member).log"))) ?? []
    return String(decoding: bytes, as: UTF8.self).split(separator: "\n")
  }

  /// How often a node has stopped in order.
  func stops(of member: String) -> Int { log(of: member).count { $0.hasSuffix(" stopped") } }

  /// A client that connects to another node after its own has gone.
  ///
  /// - Parameter first: the index of its first node.
  func connect(first: Int = 0) async throws -> Client {
    let addresses = nodes.indices.map { nodes[($0 + first) % nodes.count].address }
    return try await Client.connect(to: addresses, options: Self.options)
  }

  /// A client that always reconnects to the same node.
  func connectAndStay(at node: Int) async throws -> Client {
    var options = Self.options
    options.routing = .relay
    return try await Client.connect(to: [nodes[node].address], options: options)
  }

  private static var options: ClientOptions {
    var options = ClientOptions()
    options.keepalive = .seconds(2)
    var policy = ReconnectPolicy()
    policy.initialDelay = .milliseconds(10)
    policy.maximumDelay = .milliseconds(100)
    policy.includesFirst = true
    options.reconnect = policy
    return options
  }

  /// A client of the engine with a node's rights.
  func engineClient() throws -> RealClient {
    let password = String(decoding: try readFile(directory.file("cluster/password")), as: UTF8.self)
    return try RealClient([], addresses: engines.map { try NATSAddress(parsing: $0.address) }) { options in
      // A cluster in its own network has no password.
      if !hasCables {
        options.credentials = .fixed(.password(user: "sluice", password: password))
      }
    }.open()
  }

  /// Runs `sluice` on a node.
  func sluice(_ arguments: String..., at node: Int = 0) throws -> (text: String, exit: ChildProcess.Exit) {
    let process = try ChildProcess.sluice(arguments, server: nodes[node].address)
    let exit = try process.waitForExit()
    return (process.standardOutput.text, exit)
  }

  /// The address of a node's admin listener.
  func admin(_ node: Int = 0) -> String {
    let parts = nodes[node].address.replacing("tls://", with: "").split(separator: ":")
    return "\(parts[0]):\(Int(parts[1])! + 1)"
  }
}
