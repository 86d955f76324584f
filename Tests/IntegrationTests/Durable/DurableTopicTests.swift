import Glibc
import SluiceWire
import TestSupport
import Testing

/// Topics that outlive their broker, from the command line, with real processes.
@Suite(.onItsOwnThread) struct DurableTopicTests {
  @Test func aDurableTopicIsMadeByOptions() throws {
    let stage = try DurableStage()
    let shown = try stage.sluice(
      "topic", "create", "orders", "--storage", "durable", "--sync", "always", "--keep", "24h", "--verbose")
    for (name, value) in [
      ("storage", "durable"), ("sync", "always"), ("replay-age", "1d"), ("replay-bytes", "everything"),
      ("replay-records", "everything"),
    ] {
      #expect(
        shown.split(separator: "\n").contains { $0.split(separator: " ").map(String.init) == [name, value] },
        "\(name) in \(shown)")
    }
    let json = try stage.sluice("topic", "show", "orders", "--json")
    for part in [
      "\"storage\":\"durable\"", "\"sync\":\"always\"", "\"replay_age_ms\":86400000", "\"replay_bytes\":null",
    ] {
      #expect(json.contains(part), "\(part) in \(json)")
    }
    try stage.sluice("topic", "create", "later", "--storage", "durable", "--sync", "50ms")
    #expect(try stage.sluice("topic", "show", "later", "--json").contains("\"sync\":\"50ms\""))
    try stage.sluice("topic", "create", "fleeting")
    let list = try stage.sluice("topic", "list").split(separator: "\n").dropFirst().map {
      $0.split(separator: " ").prefix(3).map(String.init)
    }
    #expect(
      list == [
        ["fleeting", "open", "memory"], ["later", "open", "durable"], ["orders", "open", "durable"],
      ])
  }

  @Test func whatWaitsForTheDiskIsWhatWasSaid() throws {
    func granted(_ options: String...) throws -> UInt64 {
      let stage = try DurableStage(options: options)
      try stage.sluice("topic", "create", "t", "--storage", "durable")
      let client = try stage.broker.client()
      try client.openPublication("t", stream: 1)
      try client.roundTrip()
      return try #require(client.publications[1]).bytesGranted
    }
    #expect(try granted() > 64 << 10)
    #expect(try granted("--storage-backlog-per-topic", "64KiB") <= 64 << 10)
    #expect(try granted("--storage-backlog", "32KiB") <= 32 << 10)
    #expect(try granted("--storage-limit", "1MiB") <= 128 << 10)
  }

  @Test func withoutADirectoryItIsRefused() throws {
    let broker = try BrokerProcess()
    let process = try broker.sluice("topic", "create", "t", "--storage", "durable")
    #expect(try process.waitForExit() == .code(1))
    #expect(process.standardError.text.contains("--data DIR"), "\(process.messages)")
    // A topic in memory can't acknowledge as durable, and the error says so.
    let publisher = try broker.sluice("pub", "m", "a", "--ack", "durable")
    #expect(try publisher.waitForExit() == .code(1))
    #expect(publisher.standardError.lines.count == 1 && publisher.standardError.text.contains("memory"))
  }

  @Test(arguments: [SIGTERM, SIGKILL])
  func everythingIsThereAgain(signal: Int32) throws {
    let stage = try DurableStage()
    for name in ["open", "finished", "failed", "deleted"] {
      try stage.sluice(
        "topic", "create", name, "--storage", "durable", "--sync", "always", "--replay-records", "100",
        "--lag", "fail")
      try stage.sluice("pub", name, "--ack", "durable", "--key", "k", "--header", "h=v", "a", "b", "c")
    }
    try stage.sluice("topic", "complete", "finished")
    try stage.sluice("topic", "fail", "failed", "no more")
    try stage.sluice("topic", "delete", "deleted", "--yes")
    try stage.sluice("pub", "fleeting", "x")
    let before = try ["open", "finished", "failed"].map { try stage.broker.show($0) }
    try stage.restart(signal)
    let after = try ["open", "finished", "failed"].map { try stage.broker.show($0) }
    #expect(after.map(\.settings) == before.map(\.settings))
    #expect(after.map(\.summary.epoch) == before.map(\.summary.epoch))
    #expect(after.map(\.summary.ending) == before.map(\.summary.ending))
    #expect(after.allSatisfy { $0.summary.firstOffset == 0 && $0.summary.nextOffset == 3 })
    #expect(try stage.broker.client().list(limit: 10).topics.map(\.topic) == ["failed", "finished", "open"])

    let format = ["{offset} {key} {header:h} {payload}"]
    #expect(
      try stage.sluice("sub", "finished", "--format", format[0]) == "0 k v a\n1 k v b\n2 k v c\n")
    let failed = try stage.broker.sluice("sub", "failed")
    #expect(try failed.waitForExit() == .code(3), "\(failed.messages)")
    #expect(failed.standardOutput.text == "a\nb\nc\n" && failed.standardError.text.contains("no more"))
    let refused = try stage.broker.sluice("pub", "finished", "d")
    #expect(try refused.waitForExit() == .code(1))
    // The topic continues after its last record.
    try stage.sluice("pub", "open", "--ack", "durable", "d")
    #expect(try stage.sluice("sub", "open", "--until-live") == "a\nb\nc\nd\n")
  }

  @Test(arguments: [SIGTERM, SIGKILL])
  func theNewestRecordOfEachKeyIsThereAgain(signal: Int32) throws {
    let stage = try DurableStage()
    try stage.sluice("topic", "create", "devices", "--compact", "--storage", "durable", "--sync", "always")
    for (key, value) in [("a", "1"), ("b", "2"), ("a", "3"), ("c", "4"), ("b", "")] {
      try stage.sluice("pub", "devices", "--ack", "durable", "--key", key, value)
    }
    try stage.sluice("sub", "devices", "--cursor", "p", "--count", "1")
    try stage.broker.waitForSubscriptions(0, on: "devices")
    // The cursor's position is on disk with it.
    try stage.sluice("pub", "devices", "--ack", "durable", "--key", "c", "5")
    let read = ["sub", "devices", "--until-live", "--format", "{offset} {key} {payload}"]
    for _ in 0..<2 {
      let epoch = try stage.broker.show("devices").summary.epoch
      try stage.restart(signal)
      #expect(try stage.broker.show("devices").summary.epoch == epoch)
      #expect(try stage.sluice(read[0], read[1], read[2], read[3], read[4]) == "2 a 3\n5 c 5\n")
    }
    #expect(try stage.broker.show("devices").summary.records == 2)
    #expect(try stage.sluice("sub", "devices", "--cursor", "p", "--until-live", "--format", "{key}") == "c\n")
    try stage.sluice("topic", "trim", "devices", "--keep-last", "1")
    try stage.restart(signal)
    #expect(try stage.sluice(read[0], read[1], read[2], read[3], read[4]) == "5 c 5\n")
  }

  @Test(arguments: [SIGTERM, SIGKILL])
  func cursorsAndGroupsGoOnWhereTheyWere(signal: Int32) throws {
    let stage = try DurableStage()
    try stage.sluice("topic", "create", "t", "--storage", "durable", "--sync", "always")
    try stage.sluice("pub", "t", "--ack", "durable", "a", "b", "c", "d", "e")
    #expect(try stage.sluice("sub", "t", "--cursor", "c", "--count", "2") == "a\nb\n")
    let group = ["sub", "t", "--group", "g", "--ack", "explicit", "--from", "earliest", "--count"]
    let worker = try ChildProcess.sluice(group + ["3"], server: stage.broker.address)
    #expect(try worker.waitForExit() == .code(0), "\(worker.messages)")
    #expect(worker.standardOutput.text == "a\nb\nc\n")
    try stage.broker.waitForSubscriptions(0, on: "t")
    // A group's position is stored at most every 200 ms, and always when the broker stops.
    if signal == SIGKILL { pause(0.3) }
    // Earlier commits are on disk with it.
    try stage.sluice("pub", "t", "--ack", "durable", "f")
    try stage.restart(signal)
    let cursors = try stage.broker.client().listCursors(of: "t").cursors
    #expect(cursors.map(\.name) == ["c", "g"] && cursors.first?.nextOffset == 2)
    #expect(try stage.sluice("sub", "t", "--cursor", "c", "--until-live") == "c\nd\ne\nf\n")
    let next = try ChildProcess.sluice(group + ["3"], server: stage.broker.address)
    #expect(try next.waitForExit() == .code(0), "\(next.messages)")
    #expect(next.standardOutput.text == "d\ne\nf\n")
  }

  @Test func aPipelineOutlivesACrashAndLosesNothing() throws {
    let stage = try DurableStage()
    try stage.sluice("topic", "create", "t", "--storage", "durable", "--sync", "always")
    let subscriber = try stage.broker.sluice("sub", "t", "--lag", "fail")
    let publisher = try stage.broker.sluice("pub", "t", "--ack", "durable", "--complete", input: .open)
    var expected = ""
    for round in 0..<3 {
      let lines = (0..<50).map { "\(round) \($0)\n" }.joined()
      expected += lines
      try publisher.write(Array(lines.utf8))
      try subscriber.standardOutput.wait(bytes: expected.utf8.count - 5)
      try stage.restart(SIGKILL)
    }
    publisher.closeInput()
    #expect(try publisher.waitForExit() == .code(0), "\(publisher.messages)")
    #expect(try subscriber.waitForExit() == .code(0), "\(subscriber.messages)")
    #expect(subscriber.standardOutput.text == expected)
    #expect(!subscriber.standardError.text.contains("recreated"))
  }

  // MARK: The directory

  @Test func theDirectoryIsForThisBrokerAlone() throws {
    let stage = try DurableStage()
    var status = stat()
    #expect(stat(stage.data, &status) == 0 && status.st_mode & 0o777 == 0o700)
    let second = try ChildProcess(
      BuiltProduct.path("sluiced"),
      ["--listen", "\(Loopback.freshHost()):0", "--data", stage.data, "--admin", "off"])
    #expect(try second.waitForExit() == .code(2))
    #expect(second.standardOutput.text.isEmpty)
    let lines = second.standardError.lines
    #expect(lines.count == 1 && lines[0].contains("\(stage.broker.process.pid)"), "\(second.messages)")
    #expect(lines[0].contains(stage.data))
    try stage.broker.requireRunning()
    // Once the first broker has ended in any way, the next one may use the directory.
    try stage.restart(SIGKILL)
  }

  @Test func aDirectoryThatCanNotBeIsRefused() throws {
    let directory = try TemporaryDirectory()
    let file = directory.file("file")
    close(creat(file, 0o600))
    for path in [file, directory.file("not/there"), directory.path] {
      let process = try ChildProcess(
        BuiltProduct.path("sluiced"), ["--listen", "127.0.0.1:0", "--data", path, "--admin", "off"])
      #expect(try process.waitForExit() == .code(2), "\(path)")
      #expect(process.standardError.lines.count == 1, "\(process.messages)")
      #expect(process.standardError.text.contains(path), "\(process.messages)")
    }
  }

  @Test func theLogTellsOfTheStorage() throws {
    let stage = try DurableStage("--log-format", "json")
    try stage.sluice("topic", "create", "t", "--storage", "durable", "--sync", "always")
    try stage.sluice("pub", "t", "--ack", "durable", "abc")
    func line(_ beginning: String) throws -> String {
      var line: String?
      try eventually("\(beginning); \(stage.broker.process.messages)", within: 10) {
        line = stage.broker.process.standardError.lines.first { $0.contains("\"message\":\"\(beginning)") }
        return line != nil
      }
      return line!
    }
    #expect(try line("storage opened").contains("\"topics\":0"))
    stage.broker.process.signal(SIGTERM)
    try stage.broker.process.waitForExit()
    #expect(try line("storage closed").contains(stage.data))
    try stage.restart()
    #expect(try line("storage opened\"").contains("\"topics\":1"))
    try stage.sluice("pub", "t", "--ack", "durable", "def")
    try stage.restart(SIGKILL)
    let opened = try line("storage opened; the last broker didn't close it")
    #expect(opened.contains("\"level\":\"warning\"") && opened.contains("\"topics\":1"))
  }
}
