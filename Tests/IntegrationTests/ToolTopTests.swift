import Glibc
import SluiceWire
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

  /// No client is attached, and the records are in memory only.
  @Test func cursorsAndGroupsWithoutClientsLag() throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    try client.publishAll((0..<30).map { "\($0)" }, to: "orders")
    try client.publishAll(["x"], to: "words")
    try client.moveCursor("billing", of: "orders", to: .earliest)
    let top = try broker.sluice("top", "--once", "--json", "--interval", "50ms")
    #expect(try top.waitForExit() == .code(0))
    let lines = top.standardOutput.lines
    #expect(lines.count == 2)
    #expect(lines.contains { $0.contains("\"topic\":\"orders\"") && $0.contains("\"lag\":30,") }, "\(lines)")
    #expect(lines.contains { $0.contains("\"topic\":\"words\"") && $0.contains("\"lag\":0,") }, "\(lines)")
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
