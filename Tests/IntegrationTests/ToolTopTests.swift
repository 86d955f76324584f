import Glibc
import TestSupport
import Testing

/// `sluice top` with a broker.
@Suite(.onItsOwnThread) struct ToolTopTests {
  @Test func oneLookTellsWhoIsThere() throws {
    let broker = try BrokerProcess("--flow", "lossless", "--buffer-records", "1")
    let client = try broker.client()
    try client.subscribe("jobs", stream: 1, granted: 3)
    try client.openPublication("jobs", stream: 1000)
    let top = try broker.sluice("top", "--once", "--json", "--interval", "50ms")
    #expect(try top.waitForExit() == .code(0))
    #expect(top.standardOutput.lines.count == 1)
    let line = top.standardOutput.text
    for part in [
      "\"topic\":\"jobs\"", "\"subscribers\":1", "\"producers\":1", "\"outstanding\":3",
      "\"in_per_second\":0.0",
    ] { #expect(line.contains(part), "\(line)") }
    try broker.requireRunning()
  }

  @Test func toAPipeItPrintsTableAfterTableUntilInterrupted() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    try client.publishAll(["a"], to: "words")
    let top = try broker.sluice("top", "--interval", "20ms")
    try eventually("three tables") { top.standardOutput.lines.count { $0.hasPrefix("words") } >= 3 }
    top.signal(SIGINT)
    #expect(try top.waitForExit() == .code(130))
    #expect(!top.standardOutput.text.contains("\u{1B}"))
    try broker.requireRunning()
  }

  @Test func itEndsWithTheBroker() throws {
    let broker = try BrokerProcess()
    let top = try broker.sluice("top", "--interval", "20ms")
    try eventually("a table") { !top.standardOutput.lines.isEmpty }
    broker.process.signal(SIGKILL)
    #expect(try top.waitForExit() == .code(1))
    #expect(top.standardError.lines.count == 1)
  }
}
