import Glibc
import SluiceWire
import TestSupport
import Testing

/// Options of `sluice` that no other test has in a process.
@Suite(.onItsOwnThread) struct ToolOptionTests {
  private func run(
    _ broker: BrokerProcess, _ arguments: String..., input: ChildProcess.Input = .nothing
  ) throws -> ChildProcess {
    let process = try ChildProcess.sluice(arguments, server: broker.address, input: input)
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    return process
  }

  @Test func publishingSaysHowFarItIsAndHowMuchItWas() throws {
    let broker = try BrokerProcess()
    // At one a second it can't be done before it says something.
    let slow = try run(broker, "pub", "t", "a", "b", "c", "--rate", "1", "--progress")
    let lines = slow.standardError.lines
    #expect(lines.count >= 2 && lines[0].contains("not acknowledged yet"), "\(lines)")
    #expect(lines.last?.hasPrefix("sluice: published 3 records, 3 B, in ") == true)
    #expect(try run(broker, "pub", "t", "d", "--quiet").standardError.text == "")
    #expect(try broker.show("t").summary.nextOffset == 4)
  }

  @Test func recordsAreDividedAsTheDelimiterSays() throws {
    let broker = try BrokerProcess()
    let input = ChildProcess.Input.bytes(Array("a\nb\0c\n".utf8))
    for (options, count) in [(["newline"], 2), (["nul"], 2), (["none"], 1)] as [([String], UInt64)] {
      let topic = "by.\(options[0])"
      _ = try run(broker, "pub", topic, "--delimiter", options[0], "--quiet", input: input)
      #expect(try broker.show(topic).summary.nextOffset == count, "\(options)")
    }
  }

  @Test func everyKindOfAcknowledgementIsWaitedFor() throws {
    let data = try TemporaryDirectory()
    let broker = try BrokerProcess("--data", data.path)
    for acknowledgement in ["none", "received"] {
      _ = try run(broker, "pub", "t", "a", "--ack", acknowledgement, "--quiet")
    }
    try eventually("both are there") { try broker.show("t").summary.nextOffset == 2 }
    _ = try run(broker, "topic", "create", "kept", "--storage", "durable", "--sync", "always")
    _ = try run(broker, "pub", "kept", "a", "--ack", "durable", "--quiet")
    #expect(try broker.show("kept").summary.nextOffset == 1)
  }

  @Test func everyStartBeginsWhereItSays() throws {
    let broker = try BrokerProcess()
    try broker.client().publishAll(["a", "b", "c"], to: "t")
    for (start, text) in [
      ("replay", "a\nb\nc\n"), ("earliest", "a\nb\nc\n"), ("new", ""), ("last:2", "b\nc\n"), ("last:0", ""),
      ("offset:2", "c\n"), ("time:2001-02-03T04:05:06Z", "a\nb\nc\n"), ("time:-1h", "a\nb\nc\n"),
      ("time:2200-01-01T00:00:00Z", ""),
    ] {
      let process = try run(broker, "sub", "t", "--from", start, "--until-live")
      #expect(process.standardOutput.text == text, "\(start)")
    }
  }

  @Test func aheadOfWhatIsRequestedComesNoMoreAndNoLess() throws {
    let broker = try BrokerProcess()
    try broker.client().publishAll((0..<20).map { "\($0)" }, to: "t")
    let all = (0..<20).map { "\($0)\n" }.joined()
    for options in [
      ["--prefetch", "7"], ["--prefetch", "7", "--demand", "1"], ["--demand", "3"],
      ["--demand", "unlimited"],
    ] {
      let process = try ChildProcess.sluice(["sub", "t", "--until-live"] + options, server: broker.address)
      #expect(try process.waitForExit() == .code(0))
      #expect(process.standardOutput.text == all, "\(options)")
    }
  }

  @Test func aGroupHasTheOrderAndTheDeadlineThatItsMembersSay() throws {
    let broker = try BrokerProcess()
    for (text, key) in [("a", "k"), ("b", "k"), ("c", "l")] {
      _ = try run(broker, "pub", "jobs", text, "--key", key, "--quiet")
    }
    let process = try run(
      broker, "sub", "jobs", "--group", "g", "--from", "earliest", "--ack", "explicit", "--order", "by-key",
      "--deadline", "1h",
      "--deliveries", "3", "--count", "3")
    #expect(process.standardOutput.lines.sorted() == ["a", "b", "c"])
  }

  @Test func aServiceAnswersSeveralAtATime() throws {
    let broker = try BrokerProcess()
    try broker.client().create("s")
    // Each waits for the other, and would for ever if it had to wait for its turn.
    let directory = try TemporaryDirectory()
    let command = """
      read name; cd '\(directory.path)'; touch $name
      while [ ! -e a ] || [ ! -e b ]; do sleep 0.05; done
      printf %s $name
      """
    let service = try broker.sluice("reply", "s", "--concurrent", "2", "--exec", command)
    try broker.waitForSubscriptions(1, on: "s")
    let first = try broker.sluice("request", "s", "a\n", "--timeout", "10m")
    let second = try broker.sluice("request", "s", "b\n", "--timeout", "10m")
    #expect(try first.waitForExit() == .code(0), "\(first.messages)")
    #expect(try second.waitForExit() == .code(0), "\(second.messages)")
    #expect(first.standardOutput.text == "a" && second.standardOutput.text == "b")
    service.signal(SIGINT)
    #expect(try service.waitForExit() == .code(130))
  }

  @Test func aTopicIsMadeWithEverySetting() throws {
    let broker = try BrokerProcess()
    let process = try run(
      broker, "topic", "create", "t", "--replay-records", "10", "--replay-bytes", "1MiB", "--replay-age",
      "1h", "--scope",
      "while-connected", "--flow", "lossless", "--buffer-records", "7", "--buffer-bytes", "2MiB",
      "--when-alone", "hold", "--connect",
      "auto:2", "--lag", "fail", "--auto-delete", "on", "--compact", "--storage", "memory", "--sync", "os",
      "--json")
    for part in ["\"buffer_records\":7", "\"flow\":\"lossless\""] {
      #expect(process.standardOutput.text.contains(part), "\(process.standardOutput.text)")
    }
    let settings = try broker.show("t").settings
    #expect(
      settings.replayRecords == 10 && settings.replayBytes == 1 << 20 && settings.replayAge == 3_600_000)
    #expect(settings.scope == .whileConnected && settings.flow == .lossless && settings.lag == .fail)
    #expect(settings.bufferRecords == 7 && settings.bufferBytes == 2 << 20 && settings.whenAlone == .hold)
    #expect(settings.connect == .auto(2) && settings.autoDelete == true && settings.compact == true)
    #expect(settings.storage == .memory && settings.sync == .os)
  }

  @Test func aTokenSaysWhatMayBeDone() throws {
    let directory = try TemporaryDirectory()
    let tool = try BuiltProduct.path("sluice")
    let key = try ChildProcess(
      tool, ["token", "key", "--algorithm", "hs256", "--output", directory.file("k.secret")])
    #expect(try key.waitForExit() == .code(0), "\(key.messages)")
    let token = try ChildProcess(
      tool,
      [
        "token", "make", "--key", directory.file("k.secret"), "--key-id", "k", "--subject", "s", "--for",
        "1h", "--subscribe",
        "orders.>", "--admin", "orders.eu", "--output", directory.file("token"),
      ])
    #expect(try token.waitForExit() == .code(0), "\(token.messages)")
    let shown = try ChildProcess(
      tool,
      ["token", "show", "--file", directory.file("token"), "--key", directory.file("k.secret"), "--json"])
    #expect(try shown.waitForExit() == .code(0), "\(shown.messages)")
    #expect(shown.standardOutput.text.contains("orders.>") && shown.standardOutput.text.contains("orders.eu"))
  }

  @Test func aMeasurementIsOfTheSizeThatWasAskedFor() throws {
    let broker = try BrokerProcess()
    let process = try run(
      broker, "bench", "--size", "16B", "--records", "1000", "--publishers", "2", "--subscribers", "2",
      "--demand", "10", "--rate",
      "1k", "--for", "50ms", "--json")
    #expect(process.standardOutput.lines.count == 1 && process.standardOutput.text.hasPrefix("{"))
    let table = try run(broker, "bench", "--records", "1000", "--for", "0")
    #expect(table.standardOutput.text.contains("records"))
    // It leaves nothing behind.
    #expect(try run(broker, "topic", "list", "--json").standardOutput.text == "")
  }

  @Test func aPingHasAnAnswerOrFails() throws {
    let broker = try BrokerProcess()
    let three = try run(broker, "ping", "--count", "3", "--interval", "1ms", "--timeout", "2m")
    #expect(three.standardOutput.lines.count >= 3)
    let quiet = try run(broker, "ping", "--quiet", "--timeout", "2m")
    #expect(quiet.standardOutput.text == "" && quiet.standardError.text == "")
    let silent = try FakeServer { _ in .send([]) }
    // The patience of other tests would be this one's.
    let process = try ChildProcess(
      BuiltProduct.path("sluice"), ["--server", silent.address, "ping", "--timeout", "100ms"])
    #expect(try process.waitForExit() == .code(1))
    #expect(process.standardError.lines.count == 1)
  }

  @Test func theServerOfAnOptionStandsBeforeThatOfTheEnvironment() throws {
    let broker = try BrokerProcess()
    for arguments in [["--server", broker.address, "ping"], ["ping", "--server", broker.address]] {
      let process = try ChildProcess.sluice(arguments + ["--timeout", "2m"], server: FakeServer.nobody())
      #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    }
    let several = try ChildProcess.sluice(
      ["ping", "--timeout", "2m"], server: "\(FakeServer.nobody()),\(broker.address)")
    #expect(try several.waitForExit() == .code(0), "\(several.messages)")
  }

  @Test func credentialsInTheClearAreAllowedByName() throws {
    let directory = try TemporaryDirectory()
    try writeFile(directory.file("password"), Array("x\n".utf8))
    let broker = try BrokerProcess()
    // To this machine they may go anyway; the option does no harm.
    let process = try run(
      broker, "topic", "list", "--user", "a", "--password-file", directory.file("password"),
      "--allow-plaintext-credentials")
    #expect(process.standardError.text == "")
  }

  @Test func workOnAStoreTellsHowFarItIsWhenAsked() throws {
    let data = try TemporaryDirectory()
    let broker = try BrokerProcess("--data", data.path)
    _ = try run(broker, "topic", "create", "t", "--storage", "durable")
    _ = try run(broker, "pub", "t", "a", "b", "--ack", "durable", "--quiet")
    #expect(try broker.terminate() == .code(0))
    let tool = try BuiltProduct.path("sluice")
    let export = data.file("export")
    for arguments in [
      ["store", "verify", data.path, "--progress"], ["store", "stat", data.path, "--json"],
      ["store", "export", data.path, export, "--progress"],
    ] {
      let process = try ChildProcess(tool, arguments)
      #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    }
  }
}
