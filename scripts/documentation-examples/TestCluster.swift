import Foundation

/// The cluster of `scripts/cluster.sh`, in a directory in which blocks of a page run.
final class TestCluster {
  /// In seconds: starting three servers and three brokers takes longer than other blocks.
  static let patience: Double = 240

  let directory: String
  let environment: [String: String]

  /// Starts the cluster; nil if the engine isn't installed.
  init?(on bench: Workbench) throws {
    let directory = try bench.directory("cluster")
    let log = directory + "/engine"
    var environment = bench.environment(home: directory + "/home")
    if let engine = ProcessInfo.processInfo.environment["SLUICE_NATS_SERVER"] {
      environment["SLUICE_NATS_SERVER"] = engine
    } else {
      let path = try Child(
        [bench.root + "/scripts/nats-server.sh", "--path"], directory: directory, environment: environment,
        output: log, errors: directory + "/engine.errors")
      guard path.waitForEnd(seconds: bench.patience) == 0 else { return nil }
      environment["SLUICE_NATS_SERVER"] = Workbench.text(of: log).trimmingSpaces
    }
    environment["SLUICE_BIN_DIR"] = bench.programs
    // With this setting, the cluster also ends if this program is killed.
    environment["SLUICE_CLUSTER_OWNER"] = "\(getpid())"
    self.directory = directory
    self.environment = environment
    do {
      try call("up")
    } catch {
      try? erase()
      throw error
    }
  }

  /// Ends all processes.
  func erase() throws { try call("erase") }

  private func call(_ command: String) throws {
    let log = "\(directory)/\(command).log"
    let child = try Child(
      ["scripts/cluster.sh", command], directory: directory + "/block", environment: environment, output: log,
      errors: log)
    guard child.waitForEnd(seconds: Self.patience) == 0 else {
      child.kill()
      throw Trouble("scripts/cluster.sh \(command) fails:\n" + Workbench.text(of: log))
    }
  }
}
