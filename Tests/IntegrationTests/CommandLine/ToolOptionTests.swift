import Glibc
import SluiceWire
import TestSupport
import Testing

/// Options of `sluice` that no other test uses in a process.
@Suite(.onItsOwnThread) struct ToolOptionTests {
  @Test func publishingSaysHowFarItIsAndHowMuchItWas() throws {
    let broker = try BrokerProcess()
    // At one record a second, it prints progress before it is done.
    let slow = try broker.run("pub", "t", "a", "b", "c", "--rate", "1", "--progress")
    let lines = slow.standardError.lines
    #expect(lines.count >= 2 && lines[0].contains("not acknowledged yet"), "\(lines)")
    #expect(lines.last?.hasPrefix("sluice: published 3 records, 3 B, in ") == true)
    #expect(try broker.run("pub", "t", "d", "--quiet").standardError.text == "")
    #expect(try broker.show("t").summary.nextOffset == 4)
  }

  @Test func everyKindOfAcknowledgementIsWaitedFor() throws {
    let data = try TemporaryDirectory()
    let broker = try BrokerProcess("--data", data.path)
    for acknowledgement in ["none", "received"] {
      try broker.run("pub", "t", "a", "--ack", acknowledgement, "--quiet")
    }
    try eventually("both are there") { try broker.show("t").summary.nextOffset == 2 }
    try broker.run("topic", "create", "kept", "--storage", "durable", "--sync", "always")
    try broker.run("pub", "kept", "a", "--ack", "durable", "--quiet")
    #expect(try broker.show("kept").summary.nextOffset == 1)
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
      try broker.run("pub", "jobs", text, "--key", key, "--quiet")
    }
    let process = try broker.run(
      "sub", "jobs", "--group", "g", "--from", "earliest", "--ack", "explicit", "--order", "by-key",
      "--deadline", "1h",
      "--deliveries", "3", "--count", "3")
    #expect(process.standardOutput.lines.sorted() == ["a", "b", "c"])
  }

  @Test func aServiceAnswersSeveralAtATime() throws {
    let broker = try BrokerProcess()
    try broker.client().create("s")
    // Each command waits for the other one, so both must run at once.
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

  @Test func aPingHasAnAnswerOrFails() throws {
    let broker = try BrokerProcess()
    let three = try broker.run("ping", "--count", "3", "--interval", "1ms", "--timeout", "2m")
    #expect(three.standardOutput.lines.count >= 3)
    let quiet = try broker.run("ping", "--quiet", "--timeout", "2m")
    #expect(quiet.standardOutput.text == "" && quiet.standardError.text == "")
    let silent = try FakeServer { _ in .send([]) }
    // The helper `sluice(_:)` isn't used here, because it sets a long keepalive.
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

  @Test func workOnAStoreTellsHowFarItIsWhenAsked() throws {
    let data = try TemporaryDirectory()
    let broker = try BrokerProcess("--data", data.path)
    try broker.run("topic", "create", "t", "--storage", "durable")
    try broker.run("pub", "t", "a", "b", "--ack", "durable", "--quiet")
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
