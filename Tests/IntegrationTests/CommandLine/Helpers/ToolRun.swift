import Foundation
import TestSupport
import Testing

extension BrokerProcess {
  /// Runs `sluice` until it exits, which must be with `code`.
  @discardableResult
  func run(
    _ arguments: [String], input: ChildProcess.Input = .nothing, code: Int32 = 0,
    environment: [String: String] = [:], at location: SourceLocation = #_sourceLocation
  ) throws -> ChildProcess {
    let process = try start(arguments, input: input, environment: environment)
    let exit = try process.waitForExit()
    #expect(exit == .code(code), "\(arguments): \(process.messages)", sourceLocation: location)
    return process
  }

  /// The same, with each argument as a parameter.
  @discardableResult
  func run(
    _ arguments: String..., input: ChildProcess.Input = .nothing, code: Int32 = 0,
    environment: [String: String] = [:], at location: SourceLocation = #_sourceLocation
  ) throws -> ChildProcess {
    try run(arguments, input: input, code: code, environment: environment, at: location)
  }

  /// Starts `sluice` with additional environment variables.
  func start(
    _ arguments: [String], input: ChildProcess.Input = .nothing, environment: [String: String] = [:]
  ) throws -> ChildProcess {
    try ChildProcess(
      BuiltProduct.path("sluice"), arguments,
      environment: ChildProcess.environment(server: address).merging(environment) { $1 }, input: input)
  }

  /// The output of `sluice topic show --json`.
  func shown(_ topic: String) throws -> [String: Any] {
    try object(try run("topic", "show", topic, "--json").standardOutput.text)
  }
}

/// Parses a JSON object.
func object(_ text: String) throws -> [String: Any] {
  try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any], "\(text)")
}
