import Foundation

/// A language whose blocks are complete programs that use the client in Clients/.
enum Interpreter: String {
  case python
  // JavaScript, as a module for Node.
  case js

  /// The program that must be installed.
  var program: String {
    switch self {
    case .python: "python3"
    case .js: "node"
    }
  }

  /// Writes the program into the block's directory, in which it finds the client. Returns the shell lines that run it.
  ///
  /// - Parameter twice: the program runs twice, and only the output of the second run is compared.
  func script(running text: String, in directory: String, of root: String, twice: Bool) throws -> String {
    let command: String
    switch self {
    case .python:
      try text.write(toFile: directory + "/example.py", atomically: true, encoding: .utf8)
      command = "PYTHONPATH='\(root)/Clients/python/src' python3 -u ../example.py"
    case .js:
      try text.write(toFile: directory + "/example.mjs", atomically: true, encoding: .utf8)
      try FileManager.default.createDirectory(
        atPath: directory + "/node_modules", withIntermediateDirectories: true)
      try FileManager.default.createSymbolicLink(
        atPath: directory + "/node_modules/sluice-client",
        withDestinationPath: root + "/Clients/javascript")
      command = "node ../example.mjs"
    }
    return (twice ? command + " >/dev/null\n" : "") + "exec env \(command)\n"
  }
}
