import Glibc
import SluiceWire
import TestSupport
import Testing

/// How the options of `sluice pub` interpret its input.
@Suite(.onItsOwnThread) struct PubOptionTests {
  private let broker: BrokerProcess

  init() throws {
    broker = try BrokerProcess()
  }

  /// The payloads of a topic.
  private func records(of topic: String) throws -> [String] {
    try broker.run("sub", topic, "--until-live", "--json").standardOutput.lines.map {
      try #require(try object($0)["payload"] as? String)
    }
  }

  private func bytes(_ text: String) -> ChildProcess.Input { .bytes(Array(text.utf8)) }

  @Test func aFileIsReadInsteadOfStandardInput() throws {
    let directory = try TemporaryDirectory()
    try writeFile(directory.file("words"), Array("a\n\nb".utf8))
    let process = try broker.run(
      "pub", "t", "--file", directory.file("words"), input: bytes("from standard input\n"))
    #expect(process.standardError.text.hasPrefix("sluice: published 3 records, 2 B, in "))
    #expect(try records(of: "t") == ["a", "", "b"])
    // A missing file creates no topic.
    let missing = try broker.run("pub", "u", "--file", directory.file("none"), "--complete", code: 1)
    #expect(
      missing.standardError.text
        == "sluice: cannot open \(directory.file("none")): No such file or directory\n")
    try broker.run("topic", "show", "u", code: 1)
    try broker.run("pub", "t", "message", "--file", directory.file("words"), code: 2)
  }

  @Test func aRecordEndsWhereTheDelimiterIs() throws {
    let input = "a\nb\0c\n"
    for (delimiter, expected) in [
      (nil, ["a", "b\0c"]), ("newline", ["a", "b\0c"]), ("nul", ["a\nb", "c\n"]), ("none", [input]),
    ] as [(String?, [String])] {
      let topic = "by.\(delimiter ?? "itself")"
      let options = delimiter.map { ["--delimiter", $0] } ?? []
      try broker.run(["pub", topic, "--quiet"] + options, input: bytes(input))
      #expect(try records(of: topic) == expected)
    }
  }

  @Test func framesThatAreCutOffEndNothing() throws {
    let input: [UInt8] = [1, 0, 0, 0, 0x61, 0, 0, 0, 0, 9, 0, 0, 0, 0x62]
    let process = try broker.run("pub", "t", "--frames", "--complete", input: .bytes(input), code: 1)
    #expect(process.standardError.lines.count == 1)
    #expect(process.standardError.text.contains("the input ends within record 3, which has 1 of 9 bytes"))
    #expect(process.standardError.text.contains("2 records before it are published"))
    #expect(try records(of: "t") == ["a", ""])
    #expect(try broker.shown("t")["state"] as? String == "open")
  }

  @Test func recordsCarryTheTraceOfTheEnvironmentOrANewOne() throws {
    let broker = try BrokerProcess()
    let parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    _ = try broker.run(
      "pub", "t", "--trace", "--quiet", "a", environment: ["TRACEPARENT": parent, "TRACESTATE": "vendor=1"])
    #expect(
      try broker.run("sub", "t", "--until-live", "--headers").standardOutput.text
        == "traceparent=\(parent) tracestate=vendor=1\ta\n")
    let json = try broker.run("sub", "t", "--until-live", "--json").standardOutput.text
    #expect(json.contains(#"{"name":"traceparent","value":"\#(parent)"}"#))
    let run = try broker.run("pub", "u", "--trace", "--quiet", "b")
    let trace = try #require(run.standardError.lines.first?.split(separator: " ").last)
    #expect(
      try broker.run("sub", "u", "--until-live", "--headers").standardOutput.text.hasPrefix(
        "traceparent=00-\(trace)-"))
    _ = try broker.run("pub", "t", "--trace", "c", code: 2, environment: ["TRACEPARENT": "nonsense"])
    _ = try broker.run("pub", "t", "--quiet", "d", environment: ["TRACEPARENT": parent])
    #expect(
      try broker.run("sub", "t", "--from", "last:1", "--until-live", "--headers").standardOutput.text
        == "\td\n")
  }

  @Test func everyRecordHasTheKeyAndTheHeaders() throws {
    let fields = ["--format", "{key}|{headers}|{payload}"]
    try broker.run("pub", "t", "a", "b", "--key", "k", "--header", "n=v=w", "--header", "empty=")
    try broker.run("pub", "t", "--key", "l", input: bytes("c\n"))
    try broker.run("pub", "t", "d")
    let process = try broker.run(["sub", "t", "--until-live"] + fields)
    #expect(process.standardOutput.lines == ["k|n=v=w empty=|a", "k|n=v=w empty=|b", "l||c", "||d"])
  }

  @Test func behindTwoDashesEverythingIsAMessage() throws {
    try broker.run("pub", "t", "--quiet", "--", "--complete", "-x", "--", "-")
    #expect(try records(of: "t") == ["--complete", "-x", "--", "-"])
    #expect(try broker.shown("t")["state"] as? String == "open")
  }

  @Test func theSummaryIsOfRecordsBytesAndTime() throws {
    let process = try broker.run("pub", "t", input: bytes("one\ntwo\nthree\n"))
    let said = process.standardError.text
    #expect(said.hasPrefix("sluice: published 3 records, 11 B, in ") && said.hasSuffix("/s)\n"), "\(said)")
    #expect(process.standardOutput.text == "")
  }

  @Test(
    arguments: [("none", .none), ("received", .received), ("durable", .durable)]
      as [(String, PublishOpen.Acknowledgement)])
  func theBrokerIsAskedForTheAcknowledgement(
    word: String, acknowledgement: PublishOpen.Acknowledgement
  ) throws {
    // Only a publisher that requests no acknowledgements can end without any.
    let broker = try PretendedBroker(acknowledges: acknowledgement != .none)
    let process = try ChildProcess.sluice(["pub", "t", "a", "b", "--ack", word], server: broker.address)
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    #expect(process.standardError.text.hasPrefix("sluice: published 2 records, "))
    #expect(try broker.received(PublishOpen.self).map(\.acknowledgement) == [acknowledgement])
  }

  @Test func withoutAnOptionRecordsAreToBeReceived() throws {
    let broker = try PretendedBroker(acknowledges: false)
    let process = try ChildProcess.sluice(["pub", "t", "a"], server: broker.address)
    try eventually("a publication; \(process.messages)") {
      try broker.received(PublishOpen.self).map(\.acknowledgement) == [.received]
    }
    // Unacknowledged records don't count as published.
    pause(0.2)
    #expect(process.currentExit == nil)
    process.signal(SIGINT)
    let said = try process.standardError.line(startingWith: "sluice: stopped before all records were acknowl")
    #expect(said.contains("published 0 records"))
    #expect(try process.waitForExit() == .code(130))
  }
}
