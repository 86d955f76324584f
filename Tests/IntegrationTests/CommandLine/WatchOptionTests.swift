import Glibc
import SluiceWire
import TestSupport
import Testing

/// `sluice ping` and `sluice top`: repetitions, intervals and output formats.
@Suite(.onItsOwnThread) struct WatchOptionTests {
  private let broker: BrokerProcess

  init() throws {
    broker = try BrokerProcess()
  }

  @Test func asManyRoundTripsAsWereAskedFor() throws {
    func lines(_ options: String...) throws -> [String] {
      try broker.run(["ping", "--timeout", "15m"] + options).standardOutput.lines
    }
    #expect(try lines().count == 1)
    #expect(try lines("--count", "1").count == 1)
    // A line for each reply, and a summary.
    let three = try lines("--count", "3", "--interval", "0")
    #expect(three.count == 4 && three[3].hasPrefix("3 round trips: min "), "\(three)")
    #expect(three.prefix(3).allSatisfy { $0.hasPrefix("\(broker.address) (sluiced") })
    #expect(try lines("--count", "3", "--interval", "0", "--quiet").isEmpty)
  }

  /// The test checks the minimum time, but not the maximum.
  @Test func theIntervalIsBetweenThem() throws {
    let start = Deadline.now
    try broker.run("ping", "--count", "3", "--interval", "100ms", "--timeout", "15m", "--quiet")
    #expect(Deadline.now - start >= 200_000_000)
    let middle = Deadline.now
    try broker.run("top", "--count", "2", "--interval", "100ms")
    #expect(Deadline.now - middle >= 200_000_000)
  }

  @Test func asManyTablesAsWereAskedFor() throws {
    try broker.client().publishAll(["a"], to: "t")
    func lines(_ options: String...) throws -> [String] {
      try broker.run(["top", "--interval", "10ms"] + options).standardOutput.lines
    }
    #expect(try lines("--once").count == 3)
    // A title, a header and a line each, with an empty line between two.
    let three = try lines("--count", "3")
    #expect(three.count == 11 && three.count { $0.hasPrefix("t  ") } == 3, "\(three)")
    let objects = try lines("--count", "2", "--json").map(object)
    #expect(objects.count == 2)
    #expect(
      Set(objects[0].keys) == [
        "topic", "state", "in_per_second", "out_per_second", "subscribers", "producers", "outstanding",
        "holder", "holding_ms", "holding_limit", "held_last_minute", "held_last_five_minutes",
        "waiting_producers", "wait_reason", "lag", "lag_ms",
      ])
  }

  @Test func whoHoldsUpWhomIsTold() throws {
    try broker.run("topic", "create", "jobs", "--flow", "lossless", "--buffer-records", "0")
    let slow = try broker.client("slow")
    try slow.subscribe("jobs", stream: 1, granted: 1)
    let publisher = try broker.sluice("pub", "jobs", "a", "b", "c")
    var line: [String: Any] = [:]
    try eventually("a producer waits; \(line)") {
      line = try object(try broker.run("top", "--once", "--json", "--interval", "10ms").standardOutput.text)
      return line["waiting_producers"] as? Int == 1
    }
    #expect(line["holder"] as? String == "slow" && line["holding_ms"] as? Int ?? 0 > 0, "\(line)")
    #expect(line["holding_limit"] as? String == "demand", "\(line)")
    #expect(line["held_last_minute"] is Double && line["held_last_five_minutes"] is Double, "\(line)")
    #expect(line["outstanding"] as? Int == 0)
    let table = try broker.run("top", "--once", "--interval", "10ms").standardOutput.lines
    #expect(
      table.last?.hasSuffix(" (1 blocked)") == true && table.last?.contains(" slow for ") == true, "\(table)")
    publisher.stop()
  }

  @Test func aTerminalIsFilledAndGivenBack() throws {
    let sluice = try BuiltProduct.path("sluice")
    let terminal = try ChildProcess(
      "/usr/bin/script", ["-qec", "\(sluice) top --interval 10ms --count 2", "/dev/null"],
      environment: ChildProcess.environment(server: broker.address), input: .open)
    #expect(try terminal.waitForExit() == .code(0), "\(terminal.messages)")
    let text = terminal.standardOutput.text
    #expect(text.hasPrefix("\u{1B}[?1049h\u{1B}[?25l\u{1B}[H"))
    #expect(text.hasSuffix("\u{1B}[?25h\u{1B}[?1049l"))
    #expect(text.contains("\(broker.address): 0 topics, in 0/s, out 0/s"))
  }
}
