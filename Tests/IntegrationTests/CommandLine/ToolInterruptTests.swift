import Glibc
import SluiceWire
import TestSupport
import Testing

/// Ctrl-C, and failures of other processes, during long-running commands.
@Suite(.onItsOwnThread) struct ToolInterruptTests {
  private let broker: BrokerProcess

  init() throws {
    broker = try BrokerProcess()
  }

  private func expectInterrupted(
    _ process: ChildProcess, silently: Bool = true, at location: SourceLocation = #_sourceLocation
  ) throws {
    process.signal(SIGINT)
    let exit = try process.waitForExit()
    #expect(exit == .code(130), "\(process.messages)", sourceLocation: location)
    if silently { #expect(process.standardError.text == "", sourceLocation: location) }
  }

  @Test func roundTripsAreSummarised() throws {
    let ping = try broker.sluice("ping", "--count", "1000000", "--interval", "5ms", "--timeout", "15m")
    try eventually("two answers") { ping.standardOutput.lines.count >= 2 }
    try expectInterrupted(ping)
    let lines = ping.standardOutput.lines
    #expect(lines.first?.hasPrefix("\(broker.address) (sluiced") == true)
    #expect(lines.last?.hasPrefix("\(lines.count - 1) round trips: min ") == true, "\(lines.last ?? "")")
  }

  @Test func aRequestIsGivenUp() throws {
    let silent = try broker.client()
    try silent.subscribe("s", stream: 1, granted: 1)
    let request = try broker.sluice("request", "s", "x", "--timeout", "15m")
    try eventually("the request") { (try? broker.show("s").summary.nextOffset) == 1 }
    try expectInterrupted(request)
    #expect(request.standardOutput.text == "")
  }

  @Test func tablesEnd() throws {
    let top = try broker.sluice("top", "--interval", "10ms", "--json")
    try broker.client().create("t")
    try eventually("a line") { !top.standardOutput.lines.isEmpty }
    try expectInterrupted(top)
    #expect(top.standardOutput.text.hasSuffix("\n"))
  }

  @Test func aMeasurementIsBrokenOffAndLeavesNothing() throws {
    let bench = try broker.sluice("bench", "--records", "10", "--rate", "1", "--for", "1h")
    try eventually("it has begun", every: 0.05) {
      try broker.client().list(limit: 10).topics.first?.nextOffset ?? 0 > 10
    }
    try expectInterrupted(bench)
    #expect(bench.standardOutput.text == "")
    try eventually("nothing is left") { try broker.client().list(limit: 10).topics.isEmpty }
  }

  /// A subscriber that was interrupted after its command had started.
  private func interruptedWorker(_ command: HeldCommand) throws -> ChildProcess {
    try broker.client().publishAll(["a", "b"], to: "t")
    let process = try broker.sluice("sub", "t", "--exec", "echo begun; \(command.text); echo done")
    _ = try process.standardOutput.line(startingWith: "begun")
    process.signal(SIGINT)
    // It accepts no more records, and waits for the started command.
    try broker.waitForSubscriptions(0, on: "t")
    #expect(process.currentExit == nil)
    return process
  }

  @Test func aCommandThatHasBegunIsWaitedFor() throws {
    let command = try HeldCommand()
    let process = try interruptedWorker(command)
    try eventually("it says what it waits for") {
      process.standardError.lines == [
        "sluice: waiting for the command of a record to end; to end at once, send another signal"
      ]
    }
    command.letGo()
    #expect(try process.waitForExit() == .code(130))
    #expect(process.standardOutput.text == "begun\ndone\n")
  }

  @Test func theSecondTimeItIsnt() throws {
    let command = try HeldCommand()
    let process = try interruptedWorker(command)
    process.signal(SIGINT)
    try eventually("its end") { process.currentExit == .code(130) }
    #expect(process.standardOutput.text == "begun\n")
    command.letGo()
  }

  @Test func aBrokerThatStopsAnsweringFailsThePing() throws {
    let ping = try broker.sluice("ping", "--count", "1000000", "--interval", "5ms", "--timeout", "1s")
    try eventually("an answer") { !ping.standardOutput.lines.isEmpty }
    broker.process.signal(SIGSTOP)
    defer { broker.process.signal(SIGCONT) }
    #expect(try ping.waitForExit() == .code(1))
    #expect(ping.standardError.text == "sluice: \(broker.address) didn't answer within 1s\n")
  }

  @Test func whoeverReadsInWhateverWayIsToldOfTheFailure() throws {
    let client = try broker.client()
    try client.publishAll(["a"], to: "t")
    try client.end("t", .failure(code: .producerFailure, message: "the source is gone"))
    for options in [
      [], ["--exec", "cat"], ["--cursor", "c"], ["--group", "g", "--from", "earliest"], ["--json"],
      ["--demand", "unlimited"], ["--from", "new"], ["--reconnect"],
    ] {
      let process = try broker.run(["sub", "t"] + options, code: 3)
      #expect(process.standardError.text == "sluice: the topic failed: the source is gone\n", "\(options)")
    }
    // A subscriber that has received all requested records doesn't wait for the end.
    #expect(try broker.run("sub", "t", "--count", "1").standardOutput.text == "a\n")
  }
}
