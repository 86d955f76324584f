import Glibc
import SluiceNATS
import TestSupport

/// The engine as `scripts/cluster.sh` runs it, with its own address and folder.
final class ClusterScript {
  private static let checkout: String = {
    let path = #filePath.split(separator: "/", omittingEmptySubsequences: false).dropLast(4)
    return path.joined(separator: "/")
  }()

  static let hasEngine: Bool = {
    if let path = getenv("SLUICE_NATS_SERVER"), path.pointee != 0 { return true }
    return access(checkout + "/.build/engine/nats-server-2.15.1", X_OK) == 0
  }()

  struct Engine: Equatable {
    var name: String
    var address: String
    var process: Int32
  }

  private let directory: TemporaryDirectory
  private let host = Loopback.freshHost()

  init() throws {
    directory = try TemporaryDirectory()
  }

  deinit { _ = try? run("erase") }

  /// Runs a command of the script until it exits.
  func run(_ command: String) throws -> (engines: [Engine], isSuccess: Bool) {
    let child = try ChildProcess(
      "/bin/bash", [Self.checkout + "/scripts/cluster.sh", command],
      environment: [
        "SLUICE_CLUSTER_DIR": directory.file("cluster"), "SLUICE_CLUSTER_HOST": host,
        "SLUICE_CLUSTER_NODES": "0", "SLUICE_CLUSTER_OWNER": "\(getpid())",
      ])
    let exit = try child.waitForExit()
    let engines = child.standardOutput.lines.compactMap { line -> Engine? in
      let words = line.split(separator: " ").map(String.init)
      guard words.count == 4, words[0] == "engine", let process = Int32(words[3]) else { return nil }
      return Engine(name: words[1], address: words[2], process: process)
    }
    guard exit == .code(0) || command == "status" else {
      throw TestFailure("\(child.name): \(child.messages)")
    }
    return (engines, exit == .code(0))
  }

  var password: String {
    get throws { String(decoding: try readFile(directory.file("cluster/password")), as: UTF8.self) }
  }
}
