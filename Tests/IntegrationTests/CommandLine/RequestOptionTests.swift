import Glibc
import TestSupport
import Testing

/// Options of `sluice request` and `sluice reply`, and the output that `--quiet` omits.
@Suite(.onItsOwnThread) struct RequestOptionTests {
  private let broker: BrokerProcess

  init() throws {
    broker = try BrokerProcess()
  }

  /// The request's record, formatted by a template; no replier answers it.
  private func record(
    _ template: String, of options: [String], input: ChildProcess.Input = .nothing
  ) throws -> String {
    let silent = try broker.client()
    try silent.subscribe("s", stream: 1, granted: 0)
    let request = try ChildProcess.sluice(
      ["request", "s", "--timeout", "15m"] + options, server: broker.address, input: input)
    let record = try broker.run("sub", "s", "--count", "1", "--format", template)
    request.signal(SIGINT)
    #expect(try request.waitForExit() == .code(130))
    return record.standardOutput.text
  }

  @Test func aRequestHasTheKeyAndTheHeaders() throws {
    let text = try record(
      "{key} {header:n} {header:m} {header:correlation-id} {payload}",
      of: ["x", "--key", "k", "--header", "n=v", "--header", "m=w"])
    let words = text.split(separator: " ")
    #expect(words.count == 5 && words[..<3] == ["k", "v", "w"] && words.last == "x\n", "\(words)")
  }

  @Test func aRequestMayBeAllOfStandardInput() throws {
    #expect(try record("{size}:{payload}", of: [], input: .bytes(Array("a\nb\n".utf8))) == "4:a\nb\n\n")
  }

  @Test(arguments: [true, false]) func aServiceTellsOfItsFailuresUnlessItIsQuiet(isQuiet: Bool) throws {
    try broker.client().create("s")
    let service = try ChildProcess.sluice(
      ["reply", "s", "--exec", "cat; exit 3"] + (isQuiet ? ["--quiet"] : []), server: broker.address)
    try broker.waitForSubscriptions(1, on: "s")
    let request = try broker.run("request", "s", "x", "--timeout", "15m", code: 1)
    #expect(request.standardError.text.contains("the command for offset 0 of s ended with code 3"))
    service.signal(SIGINT)
    #expect(try service.waitForExit() == .code(130))
    let said = "sluice: the command for offset 0 of s ended with code 3\n"
    #expect(service.standardError.text == (isQuiet ? "" : said))
  }

  @Test func withoutReconnectingAServiceEndsWithItsBroker() throws {
    try broker.client().create("s")
    let service = try broker.sluice("reply", "s", "--exec", "cat", "--no-reconnect")
    try broker.waitForSubscriptions(1, on: "s")
    broker.process.stop()
    #expect(try service.waitForExit() == .code(1))
    #expect(service.standardError.lines.count == 1, "\(service.messages)")
  }

  @Test func aReplyNeedsACommand() throws {
    let process = try broker.run("reply", "s", code: 2)
    #expect(
      process.standardError.text.hasPrefix(
        "sluice: --exec is missing; name the command that writes the replies"))
  }

  /// Two brokers with the same topic; the first one is killed.
  @Test(arguments: [true, false]) func aLostConnectionIsToldUnlessQuiet(isQuiet: Bool) throws {
    let second = try BrokerProcess()
    for broker in [broker, second] { try broker.client().create("t") }
    let process = try ChildProcess.sluice(
      ["sub", "t"] + (isQuiet ? ["--quiet"] : []), server: "\(broker.address),\(second.address)")
    try broker.waitForSubscriptions(1, on: "t")
    broker.process.stop()
    try second.waitForSubscriptions(1, on: "t")
    try second.client().end("t")
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    let lines = process.standardError.lines
    // The program warns in any case that records may be missing.
    #expect(lines.count { $0.contains("was recreated") } == 1, "\(lines)")
    #expect(lines.contains { $0.contains("; trying again") } == !isQuiet, "\(lines)")
    #expect(lines.contains { $0.hasSuffix("connected to \(second.address)") } == !isQuiet, "\(lines)")
    #expect(lines.count == (isQuiet ? 1 : 3), "\(lines)")
  }
}
