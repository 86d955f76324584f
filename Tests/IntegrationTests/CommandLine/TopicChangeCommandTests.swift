import TestSupport
import Testing

/// `sluice topic set`, `trim`, `purge` and `delete`, with real processes.
@Suite(.onItsOwnThread) struct TopicChangeCommandTests {
  @Test func settingsAreChangedWhileTheTopicIsInUse() throws {
    let broker = try BrokerProcess()
    try broker.run("pub", "t", "--quiet", "a", "b", "c")
    let subscriber = try broker.sluice("sub", "t")
    try subscriber.standardOutput.wait(bytes: 6)
    let set = try broker.run("topic", "set", "t", "--keep", "48h", "--lag", "fail").standardOutput.text
    #expect(set == "Changed topic t (replay-age 2d, lag fail)\n")
    #expect(try broker.shown("t")["replay_age_ms"] as? Int == 172_800_000)
    #expect(
      try broker.run("topic", "set", "t", "--replay-records", "1", "--json").standardOutput.lines.count == 1)
    #expect(
      try broker.run("topic", "set", "t", "--replay-records", "1", "--verbose").standardOutput.lines.count
        > 10)
    #expect(try broker.run("sub", "t", "--until-live").standardOutput.text == "c\n")
    try broker.run("pub", "t", "--quiet", "d")
    try subscriber.standardOutput.wait(bytes: 8)
    #expect(subscriber.standardOutput.text == "a\nb\nc\nd\n")
  }

  @Test func whatCantBeChangedIsSaid() throws {
    let broker = try BrokerProcess()
    try broker.run("topic", "create", "t")
    for (option, value) in [
      ("scope", "while-connected"), ("compact", "on"), ("storage", "durable"), ("sync", "os"),
    ] {
      let run = try broker.run("topic", "set", "t", "--\(option)=\(value)", code: 1)
      #expect(run.standardError.text.contains("can't be given another \(option)"), "\(run.messages)")
      #expect(run.standardError.lines.count == 1)
    }
    _ = try broker.run("topic", "set", "t", code: 2)
    _ = try broker.run("topic", "set", "t", "--keep", "1h", "--replay-age", "1h", code: 2)
    #expect(
      try broker.run("topic", "set", "tt", "--keep", "1h", code: 1).standardError.text.contains(
        "did you mean 't'?"))
  }

  @Test func recordsAreTrimmedAndPurged() throws {
    let broker = try BrokerProcess()
    try broker.run(["pub", "t", "--quiet"] + (0..<20).map { "\($0)" })
    #expect(
      try broker.run("topic", "trim", "t", "--before", "5").standardOutput.text
        == "Trimmed topic t: 15 records left, from offset 5\n")
    #expect(
      try broker.run("topic", "trim", "t", "--keep-last", "2").standardOutput.text
        == "Trimmed topic t: 2 records left, from offset 18\n")
    #expect(try broker.run("sub", "t", "--until-live").standardOutput.text == "18\n19\n")
    #expect(try broker.run("topic", "trim", "t", "--before", "21", code: 1).standardError.lines.count == 1)
    #expect(
      try broker.run("topic", "purge", "t", "--yes").standardOutput.text
        == "Purged topic t: no records left, the next gets offset 20\n")
    #expect(try broker.run("sub", "t", "--until-live").standardOutput.text == "")
    let quiet = [
      ["create", "u"], ["set", "t", "--keep", "1h"], ["trim", "t", "--keep-last", "1"],
      ["purge", "t", "--yes"],
    ]
    for arguments in quiet {
      let run = try broker.run(["topic"] + arguments + ["-q"])
      #expect(run.standardOutput.text == "" && run.standardError.text == "", "\(arguments)")
    }
    _ = try broker.run("topic", "purge", "t", "-q", "--json", code: 2)
    _ = try broker.run("topic", "trim", "t", code: 2)
    _ = try broker.run("topic", "trim", "t", "--before", "1", "--keep-last", "1", code: 2)
    _ = try broker.run("topic", "purge", "none", "--yes", code: 1)
  }

  @Test func aPatternIsDeletedOnlyWhenThatIsConfirmed() throws {
    let broker = try BrokerProcess()
    for topic in ["a.1", "a.2", "a.b.3", "b.1"] { try broker.run("topic", "create", topic) }
    let refused = try broker.run("topic", "delete", "a.>", code: 2)
    #expect(refused.standardError.text.contains("--yes"))
    #expect(try broker.run("topic", "list", "--names").standardOutput.lines.count == 4)
    #expect(
      try broker.run("topic", "delete", "a.*", "--yes").standardError.text == "sluice: deleted 2 topics\n")
    #expect(try broker.run("topic", "list", "--names").standardOutput.lines == ["a.b.3", "b.1"])
    #expect(
      try broker.run("topic", "delete", "c.*", "--yes", code: 1).standardError.text.contains(
        "no topic matches"))
    #expect(try broker.run("topic", "delete", "b.1", "--quiet", "--yes").messages.isEmpty == false)
    #expect(try broker.run("topic", "delete", ">", "--yes", "--quiet").standardError.text == "")
    #expect(try broker.run("topic", "list", "--names").standardOutput.text == "")
  }

  @Test func aTerminalIsAsked() throws {
    let broker = try BrokerProcess()
    for topic in ["t", "u"] { try broker.run("pub", topic, "--quiet", "x") }
    for (answer, code, left) in [("n\n", 1, 2), ("\n", 1, 2), ("yes\n", 0, 1)] as [(String, Int32, Int)] {
      let (output, exit) = try TerminalSession.run(
        [BuiltProduct.path("sluice"), "topic", "delete", "t"], typing: answer, server: broker.address)
      #expect(output.contains("Delete t and its records? [y/N]"), "\(output)")
      #expect(exit == code, "\(output)")
      #expect(try broker.run("topic", "list", "--names").standardOutput.lines.count == left)
    }
  }
}
