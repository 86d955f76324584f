import SluiceCommand

@testable import SluiceTool

/// Command lines of tests, given as text.
extension ArgumentParser {
  func parse(
    _ arguments: some Sequence<String>, environment: (String) -> String? = { _ in nil }
  ) throws(UsageError) -> ParsedArguments {
    try parse(arguments.map { Argument($0) }, environment: environment)
  }
}

extension CommandLineChoice {
  static func read(_ arguments: [String], naming name: inout String) throws(UsageError) -> CommandLineChoice {
    try read(arguments.map { Argument($0) }, naming: &name)
  }
}
