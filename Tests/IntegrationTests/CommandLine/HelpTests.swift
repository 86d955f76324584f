import Glibc
import TestSupport
import Testing

/// The help of both programs, and their replies to unknown arguments.
@Suite(.onItsOwnThread) struct HelpTests {
  private func run(_ program: String, _ arguments: [String], input: ChildProcess.Input = .nothing) throws
    -> ChildProcess
  {
    let process = try ChildProcess(
      BuiltProduct.path(program), arguments, environment: ["SLUICE_SERVER": "127.0.0.1:1"], input: input)
    try process.waitForExit()
    return process
  }

  /// The commands of `sluice`, as its help lists them, each with its subcommands.
  private func commands() throws -> [[String]] {
    func words(_ help: String) -> [String] {
      let lines = help.split(separator: "\n", omittingEmptySubsequences: false)
      guard let start = lines.firstIndex(of: "Commands:") else { return [] }
      return lines[(start + 1)...].prefix { !$0.isEmpty }.filter {
        $0.hasPrefix("  ") && !$0.hasPrefix("   ")
      }
      .compactMap { $0.split(separator: " ").first.map(String.init) }
    }
    var all: [[String]] = []
    for word in words(try run("sluice", ["--help"]).standardOutput.text) {
      all.append([word])
      for member in words(try run("sluice", [word, "--help"]).standardOutput.text) {
        all.append([word, member])
      }
    }
    return all
  }

  @Test func everyCommandExplainsItselfWithExamples() throws {
    let commands = try commands()
    for command in ["pub", "sub", "topic", "top", "ping", "bench", "completions", "manual"] {
      #expect(commands.contains([command]))
    }
    for command in ["list", "show", "create", "complete", "fail", "delete"] {
      #expect(commands.contains(["topic", command]))
    }
    for arguments in commands.map({ $0 + ["--help"] })
      + commands.filter({ $0.count == 1 }).map({ ["help"] + $0 })
    {
      let process = try run("sluice", arguments)
      #expect(process.currentExit == .code(0), "\(arguments)")
      #expect(process.standardError.text == "", "\(arguments)")
      #expect(process.standardOutput.text.contains("\nUsage: sluice "), "\(arguments)")
      #expect(process.standardOutput.text.contains("\nExamples:\n"), "\(arguments)")
    }
  }

  @Test func bothProgramsSayWhichTheyAre() throws {
    for program in ["sluice", "sluiced"] {
      let version = try run(program, ["--version"])
      #expect(version.currentExit == .code(0))
      #expect(version.standardOutput.text.hasPrefix("\(program) "))
      #expect(version.standardOutput.lines.count == 1 && version.standardError.text == "")
      for option in ["--help", "-h"] {
        let help = try run(program, [option])
        #expect(help.currentExit == .code(0) && help.standardError.text == "")
        #expect(help.standardOutput.text.hasPrefix("\(program): "))
      }
    }
    let help = try run("sluiced", ["--help"]).standardOutput.text
    for option in [
      "config", "check-config", "listen", "admin", "data", "log-level", "log-format", "version", "help",
    ] {
      #expect(help.contains("\n  --\(option)"), "\(option)")
    }
  }

  @Test func namesThatAreNearlyRightGetASuggestion() throws {
    for (program, arguments, suggestion) in [
      ("sluice", ["pubb", "t"], "did you mean sluice pub?"),
      ("sluice", ["hlep"], "did you mean sluice help?"),
      ("sluice", ["topic", "lst"], "did you mean sluice topic list?"),
      ("sluice", ["--sever", "a:1", "ping"], "did you mean --server?"),
      ("sluice", ["sub", "t", "--cuont", "1"], "did you mean --count?"),
      ("sluice", ["sub", "t", "--from", "repaly"], "did you mean 'replay'?"),
      ("sluice", ["sub", "t", "--from", "lst:5"], "did you mean 'last:5'?"),
      ("sluice", ["pub", "t", "--ack", "recieved"], "did you mean 'received'?"),
      ("sluice", ["topic", "create", "t", "--flow", "losless"], "did you mean 'lossless'?"),
      ("sluice", ["completions", "bsh"], "did you mean 'bash'?"), ("sluice", ["manual", "topc"], "topic?"),
      ("sluiced", ["--lisen", "a:1"], "did you mean --listen?"),
      ("sluiced", ["--log-level", "wrning"], "did you mean 'warning'?"),
      ("sluiced", ["--manual=sluicd"], "did you mean 'sluiced'?"),
      ("sluiced", ["--completions", "zs"], "did you mean 'zsh'?"),
      ("sluiced", ["--topic-rule", "a flw=free"], "did you mean 'flow'?"),
    ] {
      let process = try run(program, arguments)
      #expect(process.currentExit == .code(2), "\(arguments)")
      #expect(process.standardOutput.text == "")
      #expect(process.standardError.lines.count == 1 && process.standardError.text.hasPrefix("\(program): "))
      #expect(process.standardError.text.contains(suggestion), "\(process.messages)")
    }
  }

  /// The options listed on a help page.
  private func options(_ help: String) -> [String] {
    help.split(separator: "\n").filter { $0.hasPrefix("  --") }
      .compactMap { $0.split(whereSeparator: { " =[".contains($0) }).first.map(String.init) }
  }

  @Test func everyOptionThatIsNearlyRightGetsOneToo() throws {
    for command in try commands() {
      let all = options(try run("sluice", command + ["--help"]).standardOutput.text)
      // Groups of commands have no options; their members do.
      guard let longest = all.max(by: { $0.count < $1.count }) else { continue }
      let process = try run("sluice", command + [longest.dropLast() + "q"])
      #expect(process.currentExit == .code(2), "\(command) \(longest)")
      #expect(
        process.standardError.text.contains("did you mean \(longest)?"), "\(command): \(process.messages)")
      #expect(
        process.standardError.text.contains("sluice \(command.joined(separator: " ")) --help"),
        "\(process.messages)")
    }
    for option in options(try run("sluiced", ["--help"]).standardOutput.text) {
      let process = try run("sluiced", [option.dropLast() + "x"])
      #expect(process.currentExit == .code(2), "\(option)")
      #expect(
        process.standardError.text.contains("did you mean \(option)?"), "\(option): \(process.messages)")
    }
  }

  @Test func wrongUsageIsALineAndTwo() throws {
    for (program, arguments) in [
      ("sluice", []), ("sluice", ["topic"]), ("sluice", ["nonsense"]), ("sluice", ["ping", "more"]),
      ("sluice", ["ping", "--count"]), ("sluice", ["ping", "--quiet=yes"]),
      ("sluice", ["--server", "nowhere:", "ping"]),
      ("sluice", ["pub", "t", "m", "--complete", "--fail", "x"]),
      ("sluice", ["sub", "t", "--json", "--raw"]),
      ("sluice", ["completions"]), ("sluice", ["completions", "tcsh"]),
      ("sluice", ["manual", "--server", "a:1"]), ("sluice", ["pub", "t", "--rate", "0"]),
      ("sluice", ["pub", "t", "--delimiter", "comma"]), ("sluice", ["pub", "t", "--header", "n"]),
      ("sluice", ["pub", "t", "--progress", "--quiet"]), ("sluice", ["sub", "t", "--count", "none"]),
      ("sluice", ["sub", "t", "--for", "long"]), ("sluice", ["sub", "t", "--lag", "wait"]),
      ("sluice", ["sub", "t", "--prefetch", "-1"]), ("sluice", ["sub", "t", "--format", "{what}"]),
      ("sluice", ["sub", "t", "--from", "time:yesterday"]), ("sluice", ["sub", "t", "--commit", "auto"]),
      ("sluice", ["sub", "t", "--ack", "explicit"]),
      ("sluice", ["sub", "t", "--reconnect", "--no-reconnect"]),
      ("sluice", ["topic", "create", "t", "--keep", "1h", "--replay-age", "1h"]),
      ("sluice", ["topic", "create", "t", "--connect", "auto:0"]), ("sluice", ["topic", "show", "a b"]),
      ("sluice", ["topic", "fail", "t"]), ("sluice", ["cursor", "move", "t", "c", "--to", "replay:1"]),
      ("sluice", ["request"]), ("sluice", ["request", "t", "x", "--timeout", "soon"]),
      ("sluice", ["reply", "t", "--exec", "cat", "--concurrent", "0"]),
      ("sluice", ["top", "--interval", "1ms"]),
      ("sluice", ["top", "--once", "--count", "2"]), ("sluice", ["ping", "--timeout", "1"]),
      ("sluice", ["bench", "--size", "7B"]), ("sluice", ["bench", "--subscribers", "0"]),
      ("sluice", ["user", "add", "alice"]), ("sluice", ["user", "remove", "--file", "f"]),
      ("sluice", ["user", "list"]), ("sluice", ["token", "show", "a", "--file", "f"]),
      ("sluice", ["store", "stat"]), ("sluice", ["store", "repair", "d", "--quiet"]),
      ("sluice", ["--user", "a", "ping"]), ("sluice", ["--tls-no-verify", "ping"]),
      ("sluiced", ["more"]), ("sluiced", ["--listen"]), ("sluiced", ["--loops", "0"]),
      ("sluiced", ["--completions", "tcsh"]),
    ] as [(String, [String])] {
      let process = try run(program, arguments)
      #expect(process.currentExit == .code(2), "\(program) \(arguments): \(process.messages)")
      #expect(process.standardOutput.text == "", "\(arguments)")
      #expect(process.standardError.lines.count == 1, "\(arguments): \(process.messages)")
    }
  }

  @Test func completionsArePrintedForBothPrograms() throws {
    for shell in ["bash", "zsh", "fish"] {
      for (program, arguments) in [
        ("sluice", ["completions", shell]), ("sluiced", ["--completions", shell]),
      ] {
        let process = try run(program, arguments)
        #expect(process.currentExit == .code(0) && process.standardError.text == "")
        #expect(process.standardOutput.text.contains("Completion of \(program) for \(shell)."))
      }
    }
    let closed = try ChildProcess(BuiltProduct.path("sluice"), ["completions", "bash"], output: .closedPipe)
    #expect(try closed.waitForExit() == .code(0))
    #expect(closed.standardError.text == "")
  }

  @Test func theManualIsPrintedAndWritten() throws {
    for (program, arguments, title) in [
      ("sluice", ["manual"], "SLUICE\" \"1"), ("sluice", ["manual", "pub"], "SLUICE\\-PUB\" \"1"),
      ("sluiced", ["--manual"], "SLUICED\" \"8"),
      ("sluiced", ["--manual=sluiced.toml"], "SLUICED.TOML\" \"5"),
    ] {
      let process = try run(program, arguments)
      #expect(process.currentExit == .code(0) && process.standardError.text == "", "\(arguments)")
      #expect(process.standardOutput.text.hasPrefix(".TH \"\(title)\""), "\(arguments)")
    }
    let directory = try TemporaryDirectory()
    let all = try run("sluice", ["manual", "--directory", directory.path])
    #expect(all.currentExit == .code(0) && all.standardOutput.text == "" && all.standardError.text == "")
    let pub = try run("sluice", ["manual", "pub"])
    #expect(try readFile(directory.file("sluice-pub.1")) == pub.standardOutput.bytes)
    for command in try commands().filter({ $0.count == 1 }) {
      #expect(access(directory.file("sluice-\(command[0]).1"), R_OK) == 0, "\(command)")
    }
    let made = try run("sluice", ["manual", "--directory", directory.file("made/here")])
    #expect(made.currentExit == .code(0), "\(made.messages)")
    #expect(try readFile(directory.file("made/here/sluice-pub.1")) == pub.standardOutput.bytes)
    let both = try run("sluice", ["manual", "pub", "--directory", directory.path])
    #expect(both.currentExit == .code(2))
  }
}
