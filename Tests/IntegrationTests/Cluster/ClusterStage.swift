import Glibc
import SluiceClient
import TestSupport

/// Three servers of the engine and three brokers, as `scripts/cluster.sh` runs them, on an address and in a folder of their own.
final class ClusterStage {
  /// A server of the engine or a broker.
  struct Member: Hashable {
    var name: String
    var address: String
    var process: Int32

    func signal(_ signal: Int32) { kill(process, signal) }
  }

  /// Why the tests of this stage are skipped where they are.
  static let absence = "nats-server isn't installed: run scripts/nats-server.sh"

  static let hasEngine: Bool = {
    if let path = getenv("SLUICE_NATS_SERVER"), path.pointee != 0 { return true }
    return access(checkout + "/.build/engine/nats-server-2.15.1", X_OK) == 0
  }()

  private static let checkout: String = {
    let path = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(4)
    return path.joined(separator: "/")
  }()

  private let directory: TemporaryDirectory
  private let host = Loopback.freshHost()
  private(set) var engines: [Member] = []
  private(set) var nodes: [Member] = []

  init() throws {
    directory = try TemporaryDirectory()
    try up()
  }

  deinit { _ = try? run("erase") }

  /// Starts what doesn't run, and waits until all is ready.
  func up() throws {
    let child = try run("up")
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

  /// Stops all processes in order; what is stored stays.
  func down() throws {
    let child = try run("down")
    try require(try child.waitForExit() == .code(0), "\(child.name): \(child.messages)")
  }

  private func run(_ command: String) throws -> ChildProcess {
    let program = try BuiltProduct.path("sluiced")
    let child = try ChildProcess(
      "/bin/bash", [Self.checkout + "/scripts/cluster.sh", command],
      environment: [
        "SLUICE_CLUSTER_DIR": directory.file("cluster"), "SLUICE_CLUSTER_HOST": host,
        "SLUICE_CLUSTER_OWNER": "\(getpid())",
        "SLUICE_BIN_DIR": program.split(separator: "/", omittingEmptySubsequences: false).dropLast()
          .joined(separator: "/"),
      ])
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

  /// How often a node has ended in order.
  func stops(of member: String) -> Int { log(of: member).count { $0.hasSuffix(" stopped") } }

  /// A client that looks for another node when its own has gone.
  ///
  /// - Parameter first: the node that it begins with.
  func connect(first: Int = 0) async throws -> Client {
    var options = ClientOptions()
    options.keepalive = .seconds(2)
    options.connectTimeout = .seconds(600)
    var policy = ReconnectPolicy()
    policy.initialDelay = .milliseconds(10)
    policy.maximumDelay = .milliseconds(100)
    policy.includesFirst = true
    options.reconnect = policy
    let addresses = nodes.indices.map { nodes[($0 + first) % nodes.count].address }
    return try await Client.connect(to: addresses, options: options)
  }

  /// Runs `sluice` on a node.
  func sluice(_ arguments: String..., at node: Int = 0) throws -> (text: String, exit: ChildProcess.Exit) {
    let process = try ChildProcess.sluice(arguments, server: nodes[node].address)
    let exit = try process.waitForExit()
    return (process.standardOutput.text, exit)
  }

  /// The address of a node's admin listener.
  func admin(_ node: Int = 0) -> String {
    let parts = nodes[node].address.split(separator: ":")
    return "\(parts[0]):\(Int(parts[1])! + 1)"
  }
}
