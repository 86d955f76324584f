import Glibc
import TestSupport
import Testing

/// Durable cursors and filters from the command line, with real processes.
@Suite(.onItsOwnThread) struct ToolCursorTests {
  private func run(
    _ broker: BrokerProcess, _ arguments: [String], code: Int32 = 0,
    at location: SourceLocation = #_sourceLocation
  ) throws -> String {
    let process = try ChildProcess.sluice(arguments, server: broker.address)
    let exit = try process.waitForExit()
    #expect(exit == .code(code), "\(arguments): \(process.standardError.text)", sourceLocation: location)
    return process.standardOutput.text
  }

  private func publish(_ messages: [String], _ broker: BrokerProcess, _ options: String...) throws {
    _ = try run(broker, ["pub", "t", "--quiet"] + options + messages)
  }

  @Test func whatWasPrintedIsNotPrintedAgain() throws {
    let broker = try BrokerProcess()
    try publish(["a", "b", "c"], broker)
    let command = ["sub", "t", "--cursor", "c", "--until-live"]
    #expect(try run(broker, command) == "a\nb\nc\n")
    #expect(try run(broker, command).isEmpty)
    try publish(["d", "e", "f"], broker)
    #expect(try run(broker, ["sub", "t", "--cursor", "c", "--count", "2"]) == "d\ne\n")
    #expect(try run(broker, ["sub", "t", "--cursor", "c", "--exec", "cat", "--until-live"]) == "f")
    _ = try run(broker, ["topic", "complete", "t"])
    _ = try run(broker, ["cursor", "move", "t", "c", "--to", "last:4"])
    // The last records of an ended topic count as well.
    #expect(try run(broker, ["sub", "t", "--cursor", "c", "--commit", "auto"]) == "c\nd\ne\nf\n")
    #expect(try run(broker, ["sub", "t", "--cursor", "c"]).isEmpty)
    try broker.requireRunning()
  }

  @Test func theyAreListedMovedAndDeleted() throws {
    let broker = try BrokerProcess()
    try publish((0..<10).map { "\($0)" }, broker)
    #expect(try run(broker, ["cursor", "list", "t"]).isEmpty)
    #expect(try run(broker, ["sub", "t", "--cursor", "billing", "--count", "4"]) == "0\n1\n2\n3\n")
    _ = try run(broker, ["cursor", "move", "t", "audit", "--to", "offset:7"])
    let list = try run(broker, ["cursor", "list", "t"]).split(separator: "\n").map {
      $0.split(separator: " ").map(String.init)
    }
    #expect(
      list.map { Array($0.prefix(5)) } == [
        ["CURSOR", "KIND", "NEXT", "BEHIND", "BYTES"], ["audit", "cursor", "7", "3", "15"],
        ["billing", "cursor", "4", "6", "30"],
      ])
    let lines = try run(broker, ["cursor", "list", "t", "--json"]).split(separator: "\n")
    #expect(
      lines.count == 2 && lines[1].contains("\"cursor\":\"billing\"")
        && lines[1].contains("\"next_offset\":4"))

    // The subscription that uses the cursor ends, and the next one starts at the cursor's new position.
    let worker = try broker.sluice("sub", "t", "--cursor", "billing")
    try worker.standardOutput.wait(bytes: 12)
    _ = try run(broker, ["cursor", "move", "t", "billing", "--to", "earliest"])
    #expect(try worker.waitForExit() == .code(1))
    #expect(worker.standardError.text.contains("was moved"))
    #expect(try run(broker, ["sub", "t", "--cursor", "billing", "--count", "1"]) == "0\n")
    _ = try run(broker, ["cursor", "delete", "t", "billing"])
    _ = try run(broker, ["cursor", "delete", "t", "billing"], code: 1)
    _ = try run(broker, ["cursor", "list", "unknown"], code: 1)
    _ = try run(broker, ["cursor", "move", "t", "billing"], code: 2)
    try broker.requireRunning()
  }

  @Test func aSubscriberThatIsKilledLosesNothing() throws {
    let broker = try BrokerProcess()
    var printed: [String] = []
    for round in 0..<4 {
      try publish((round * 500..<(round + 1) * 500).map { "\($0)" }, broker)
      let worker = try broker.sluice("sub", "t", "--cursor", "c", "--demand", "50")
      try worker.standardOutput.wait(bytes: 100)
      worker.signal(SIGKILL)
      _ = try worker.waitForExit()
      printed += worker.standardOutput.lines
    }
    printed += try run(broker, ["sub", "t", "--cursor", "c", "--until-live"]).split(separator: "\n").map(
      String.init)
    #expect(Set(printed.compactMap { Int($0) }).isSuperset(of: 0..<2_000))
    #expect(try run(broker, ["sub", "t", "--cursor", "c", "--until-live"]).isEmpty)
    try broker.requireRunning()
  }

  @Test func onlyWhatIsWantedIsPrinted() throws {
    let broker = try BrokerProcess()
    try publish(["a"], broker, "--key", "eu.1", "--header", "kind=new")
    try publish(["b"], broker, "--key", "us.1", "--header", "kind=old", "--header", "urgent=")
    try publish(["c"], broker)
    func sub(_ options: String...) throws -> String {
      try run(broker, ["sub", "t", "--until-live"] + options)
    }
    #expect(try sub() == "a\nb\nc\n")
    #expect(try sub("--key", "us.1") == "b\n")
    #expect(try sub("--key-prefix", "eu.") == "a\n")
    #expect(try sub("--has-key") == "a\nb\n")
    #expect(try sub("--header", "kind=old") == "b\n")
    #expect(try sub("--header", "kind=old", "--header", "kind=new").isEmpty)
    #expect(try sub("--header-prefix", "kind=n", "--has-key") == "a\n")
    #expect(try sub("--has-header", "urgent") == "b\n")
    #expect(try run(broker, ["sub", "t", "--has-key", "--count", "2", "--demand", "1"]) == "a\nb\n")
    #expect(try run(broker, ["sub", "t", "--group", "g", "--key-prefix", "us", "--count", "1"]) == "b\n")
    #expect(try run(broker, ["sub", "*", "--has-key", "--until-live"]) == "a\nb\n")
    try broker.requireRunning()
  }
}
