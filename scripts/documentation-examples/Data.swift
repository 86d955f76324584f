import Foundation

/// Checks blocks that are data: configuration files, JSON, package manifests.
struct DataChecker {
  let bench: Workbench

  /// Passes a configuration file to the broker.
  func check(configuration block: Block) throws -> Outcome {
    try check(
      block, file: "sluiced.toml", command: ["sluiced", "--check-config", "sluiced.toml"],
      message: "the broker doesn't take the configuration")
  }

  /// Reads JSON: one value, or one in each line.
  func check(json block: Block) throws -> Outcome {
    func isJSON(_ text: String) -> Bool {
      (try? JSONSerialization.jsonObject(with: Data(text.utf8), options: .fragmentsAllowed)) != nil
    }
    guard isJSON(block.text) || block.lines.allSatisfy(isJSON) else { throw block.failure("that is no JSON") }
    return .compared
  }

  /// Lets SwiftPM read a manifest, next to this package in a folder `sluice`, and checks that it finds each product that the manifest names.
  func check(manifest block: Block) throws -> Outcome {
    guard let name = block.text.firstMatch(of: #/\.(?:executableTarget|target)\(\s*name: "(\w+)"/#)?.output.1
    else {
      throw block.failure("the manifest has no target")
    }
    return try check(
      block, file: "Package.swift",
      command: [
        "sh", "-c",
        "mkdir -p Sources/\(name) && touch Sources/\(name)/main.swift && ln -s '\(bench.root)' ../sluice && swift package show-dependencies",
      ],
      message: "SwiftPM doesn't take the manifest")
  }

  private func check(_ block: Block, file: String, command: [String], message: String) throws -> Outcome {
    let directory = try bench.directory("data")
    if let directive = block.directive(.setup) {
      try Shell(bench: bench).setUp(directive, for: block, in: directory)
    }
    try block.text.write(toFile: "\(directory)/block/\(file)", atomically: true, encoding: .utf8)
    let log = directory + "/log"
    let child = try Child(
      command, directory: directory + "/block", environment: bench.environment(home: directory + "/home"),
      output: log, errors: log)
    defer { child.kill() }
    guard child.waitForEnd(seconds: bench.patience) == 0 else {
      throw block.failure(message, details: Workbench.text(of: log))
    }
    return .compared
  }
}
