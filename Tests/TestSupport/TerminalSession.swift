/// A program on a separate terminal, run by `script` of util-linux.
public enum TerminalSession {
  /// Runs the program until it exits.
  ///
  /// - Parameters:
  ///   - command: the program and its arguments, without single quotes.
  ///   - text: the typed input.
  ///   - environment: variables in addition to the tests' own.
  /// - Returns: the terminal's output, and the exit code.
  public static func run(
    _ command: [String], typing text: String = "", server: String, environment: [String: String] = [:]
  ) throws -> (output: String, code: Int32) {
    let line = command.map { "'\($0)'" }.joined(separator: " ")
    let process = try ChildProcess(
      "/usr/bin/script", ["--quiet", "--return", "--command", line, "/dev/null"],
      environment: ChildProcess.environment(server: server).merging(environment) { $1 }, input: .open)
    try process.write(Array(text.utf8))
    let exit = try process.waitForExit()
    guard case .code(let code) = exit else { throw TestFailure("\(command) \(exit)") }
    return (process.standardOutput.text, code)
  }
}
