import Glibc
import TestSupport
import Testing

/// The options of `sluiced`, each in a process.
@Suite(.onItsOwnThread) struct DaemonOptionTests {
  private func sluiced(_ arguments: [String], environment: [String: String] = [:]) throws -> ChildProcess {
    try ChildProcess(BuiltProduct.path("sluiced"), arguments, environment: environment)
  }

  /// The options with a default, and that default, as printed by the help.
  private func defaults() throws -> [(option: String, value: String)] {
    let process = try sluiced(["--help"])
    try process.waitForExit()
    // One line for each option.
    var entries: [String] = []
    for line in process.standardOutput.lines.drop(while: { $0 != "Options:" }).dropFirst().prefix(while: {
      !$0.isEmpty
    }) {
      let words = line.split(separator: " ").joined(separator: " ")
      if line.hasPrefix("  --") { entries.append(words) } else { entries[entries.count - 1] += " " + words }
    }
    return entries.compactMap { entry in
      // Behind the text, in parentheses.
      guard let mark = entry.firstRange(of: "(default ") ?? entry.firstRange(of: "; default ") else {
        return nil
      }
      let option = entry.dropFirst(2).prefix { $0 != " " && $0 != "[" }
      return (String(option), String(entry[mark.upperBound...].prefix { $0 != ";" && $0 != ")" }))
    }
  }

  @Test func everyDefaultCanBeSaidAsAnOptionAndByTheEnvironment() throws {
    // Only one broker at a time can use these addresses.
    let excluded = ["listen", "admin", "storage-limit"]
    let defaults = try defaults().filter { !excluded.contains($0.option) }
    #expect(defaults.count > 40)
    func variable(_ option: String) -> String {
      "SLUICED_" + option.uppercased().split(separator: "-").joined(separator: "_")
    }
    let directory = try TemporaryDirectory()
    let local = ["--listen", "127.0.0.1:0", "--admin", "off"]
    let started = [
      try sluiced(local + defaults.map { "--\($0.option)=\($0.value)" }),
      try sluiced(
        local,
        environment: Dictionary(uniqueKeysWithValues: defaults.map { (variable($0.option), $0.value) })),
      try sluiced(local + ["--data", directory.file("data"), "--storage-limit", "1TiB"]),
    ]
    for process in started {
      _ = try process.standardOutput.line(startingWith: "sluiced ready")
      // A variable that no setting reads would be reported here.
      #expect(!process.standardError.text.contains("isn't known, and was ignored"), "\(process.messages)")
      process.signal(SIGTERM)
      #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    }
    for file in ["data.mdb", "lock.mdb"] { unlink("\(directory.file("data"))/\(file)") }
    rmdir(directory.file("data"))
  }

  @Test func everyOptionIsRefusedWithAValueThatItCantHave() throws {
    // These need no value.
    let flags = ["allow-unauthenticated", "compact", "engine-unsafe"]
    for (option, value) in try defaults() where !flags.contains(option) {
      // A value that is no name, number, amount or address.
      let process = try sluiced(["--\(option)", "§"])
      #expect(try process.waitForExit() == .code(2), "\(option)")
      #expect(process.standardOutput.text == "")
      #expect(
        process.standardError.lines.count == 1
          && process.standardError.text.hasPrefix("sluiced: --\(option): "), "\(value) \(process.messages)")
    }
  }

  @Test func itsLogIsAsLongAndOfTheFormThatWasAskedFor() throws {
    func log(_ options: String...) throws -> [String] {
      let process = try sluiced(["--listen", "127.0.0.1:0", "--admin", "off"] + options)
      _ = try process.standardOutput.line(startingWith: "sluiced ready")
      process.signal(SIGTERM)
      #expect(try process.waitForExit() == .code(0))
      // Standard output contains the promised lines, and nothing else.
      let lines = process.standardOutput.lines
      #expect(
        lines.count == 2 && lines[0].hasPrefix("sluiced listening on 127.0.0.1:")
          && lines[1] == "sluiced ready")
      return process.standardError.lines
    }
    #expect(try log("--log-level", "error").isEmpty)
    #expect(try log("--log-level", "info").contains { $0.contains(" info    ready ") })
    #expect(try log("--log-format", "json").allSatisfy { $0.hasPrefix("{\"time\":") && $0.hasSuffix("}") })
    #expect(try log("--log-format", "text").allSatisfy { $0.hasPrefix("2") })
    #expect(try log("--log-level", "warning").isEmpty)
  }

  @Test(arguments: [("debug", 2), ("info", 1), ("warning", 0), ("error", 0)])
  func aLevelLeavesOutWhatIsBelowIt(level: String, count: Int) throws {
    let broker = try BrokerProcess("--log-level", level)
    try broker.run("ping", "--timeout", "15m")
    #expect(try broker.terminate() == .code(0))
    let lines = broker.process.standardError.lines
    let told = ["a client has connected", "a connection was closed"].filter { text in
      lines.contains { $0.contains(text) }
    }
    #expect(told.count == count, "\(lines)")
    #expect(lines.contains { $0.contains(" debug ") } == (level == "debug"))
    #expect(lines.contains { $0.contains(" info ") } == (count > 0))
  }

  @Test func aVariableThatIsNearlyOneOfOursIsNoted() throws {
    let process = try sluiced(
      ["--listen", "127.0.0.1:0", "--admin", "off"], environment: ["SLUICED_LISEN": "x"])
    _ = try process.standardOutput.line(startingWith: "sluiced ready")
    process.signal(SIGTERM)
    #expect(try process.waitForExit() == .code(0))
    #expect(process.standardError.text.contains("name=SLUICED_LISEN nearest=SLUICED_LISTEN"))
  }
}
