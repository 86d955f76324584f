import SluiceCommand
import TestSupport
import Testing

@testable import SluiceTool

/// A failed write is an error: `/dev/full` accepts no byte.
@Suite(.onItsOwnThread) struct OutputFailureTests {
  private static let message = "cannot write to standard output: No space left on device"

  private func expectFailure(_ process: ChildProcess, _ arguments: [String]) throws {
    #expect(try process.waitForExit() == .code(1), "\(arguments): \(process.messages)")
    #expect(process.standardError.text.contains(Self.message), "\(arguments): \(process.messages)")
  }

  @Test func everyHelpOfTheTool() throws {
    let pages = Commands.all.flatMap { kind in
      [kind.page] + ((kind as? any CommandGroup.Type)?.members.map { $0.page } ?? [])
    }
    for words in [["--help"], ["--version"], ["help"], ["help", "connecting"]]
      + pages.map({ page in
        page.name.split(separator: " ").dropFirst().map(String.init) + ["--help"]
      })
    {
      let process = try ChildProcess(BuiltProduct.path("sluice"), words, output: .file("/dev/full"))
      try expectFailure(process, words)
    }
  }

  @Test func everyTextOfTheBroker() throws {
    let directory = try TemporaryDirectory()
    try writeFile(directory.file("sluiced.toml"), [])
    for words in [
      ["--help"], ["--version"], ["--manual"], ["--manual=sluiced.toml"], ["--completions", "bash"],
      ["--check-config", directory.file("sluiced.toml")],
    ] {
      let process = try ChildProcess(BuiltProduct.path("sluiced"), words, output: .file("/dev/full"))
      try expectFailure(process, words)
    }
  }

  @Test func commandsThatPrintSomething() throws {
    let broker = try BrokerProcess()
    try broker.run("pub", "t", "x", "--quiet")
    try broker.run("sub", "t", "--cursor", "c", "--until-live")
    for words in [
      ["ping"], ["ping", "--alive"], ["ping", "--count", "2", "--interval", "1ms"], ["topic", "list"],
      ["topic", "list", "--names"], ["topic", "list", "--json"], ["topic", "show", "t"],
      ["topic", "create", "u"],
      ["topic", "set", "u", "--replay-records", "1"], ["topic", "trim", "u", "--keep-last", "1"],
      ["topic", "purge", "u", "--yes"], ["status"], ["status", "--json"], ["why", "t"], ["top", "--once"],
      ["cursor", "list"], ["connection", "list"], ["sub", "t", "--until-live"],
      ["sub", "t", "--until-live", "--json"], ["bench", "--records", "10", "--for", "0"],
    ] {
      try expectFailure(try broker.sluice(words, output: .file("/dev/full")), words)
    }
  }

  @Test func commandsWithoutABroker() throws {
    let directory = try TemporaryDirectory()
    let environment = ["XDG_CONFIG_HOME": directory.path]
    func start(_ words: [String], _ output: ChildProcess.Output) throws -> ChildProcess {
      try ChildProcess(BuiltProduct.path("sluice"), words, environment: environment, output: output)
    }
    #expect(try start(["context", "add", "a", "--server", "h"], .captured).waitForExit() == .code(0))
    for words in [
      ["manual"], ["manual", "pub"], ["completions", "zsh"], ["context", "list"], ["context", "show"],
      ["context", "add", "b", "--server", "h"],
    ] {
      try expectFailure(try start(words, .file("/dev/full")), words)
    }
  }

  /// A broker serves although its output can't be written, and logs that.
  @Test func theBrokersFirstLines() throws {
    let process = try ChildProcess(
      BuiltProduct.path("sluiced"), ["--listen", "\(Loopback.freshHost()):0", "--admin", "off"],
      output: .file("/dev/full"))
    _ = try process.standardError.line(startingWith: "")
    try eventually("the warning") { process.standardError.text.contains(Self.message) }
    try eventually("readiness") { process.standardError.text.contains(" ready ") }
    #expect(process.currentExit == nil)
  }
}
