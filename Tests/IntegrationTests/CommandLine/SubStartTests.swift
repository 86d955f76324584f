import Glibc
import TestSupport
import Testing

/// Start positions of `sluice sub`, and its messages about dropped records.
@Suite(.onItsOwnThread) struct SubStartTests {
  private let broker: BrokerProcess

  init() throws {
    broker = try BrokerProcess()
  }

  private func publish(_ messages: String..., to topic: String) throws {
    // Publish one by one, so that each has another timestamp.
    let client = try broker.client()
    try client.openPublication(topic, stream: 1)
    for message in messages {
      try client.publish([message], stream: 1)
      try client.receiveAcknowledgements(stream: 1)
      pause(0.005)
    }
  }

  private func sub(_ start: String, of topic: String = "t") throws -> String {
    try broker.run("sub", topic, "--from", start, "--until-live").standardOutput.text
  }

  @Test func aTimeIsThatOfTheFirstRecordThatIsPrinted() throws {
    try publish("a", "b", "c", to: "t")
    let times = try broker.run("sub", "t", "--until-live", "--format", "{time}").standardOutput.lines
    try #require(times.count == 3)
    #expect(try sub("time:\(times[1])") == "b\nc\n")
    #expect(try sub("time:\(times[2])") == "c\n")
    #expect(try sub("time:2199-01-01T05:30:00+05:30") == "")
    #expect(try sub("time:1999-01-01 05:30:00.5-01:00") == "a\nb\nc\n")
    #expect(try sub("time:-1h") == "a\nb\nc\n")
    // All records published before the program started are older.
    #expect(try sub("time:-1ms") == "")
  }

  @Test func aCountAndAnOffsetAreTakenAtTheirWord() throws {
    try publish("a", "b", "c", to: "t")
    #expect(try sub("last:1") == "c\n")
    #expect(try sub("last:0") == "")
    #expect(try sub("offset:1") == "b\nc\n")
    let process = try broker.sluice("sub", "t", "--from", "offset:4", "--count", "1")
    try broker.waitForSubscriptions(1, on: "t")
    try publish("d", "e", to: "t")
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    #expect(process.standardOutput.text == "e\n")
  }

  @Test func newIsWhatComesFromNowOn() throws {
    try publish("a", to: "t")
    let process = try broker.sluice("sub", "t", "--from", "new", "--count", "1")
    try broker.waitForSubscriptions(1, on: "t")
    try publish("b", to: "t")
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    #expect(process.standardOutput.text == "b\n")
  }

  @Test func whatIsKeptIsReplayedAndWhatThereIsIsEarliest() throws {
    try broker.run("topic", "create", "t", "--replay-records", "2")
    try publish("a", "b", "c", to: "t")
    #expect(try sub("replay") == "b\nc\n")
    #expect(try sub("earliest") == "b\nc\n")
  }

  @Test(arguments: ["skip", "fail"]) func recordsThatAreGoneAreSkippedOrAFailure(policy: String) throws {
    // The topic's setting is the opposite.
    try broker.run(
      "topic", "create", "t", "--replay-records", "2", "--lag", policy == "skip" ? "fail" : "skip")
    try publish("a", "b", "c", "d", "e", to: "t")
    let options = ["sub", "t", "--from", "offset:1", "--until-live"]
    for (arguments, skips) in [
      (options + ["--lag", policy], policy == "skip"), (options, policy != "skip"),
    ] {
      let process = try broker.run(arguments, code: skips ? 0 : 1)
      #expect(process.standardOutput.text == (skips ? "d\ne\n" : ""))
      #expect(process.standardError.lines.count == 1, "\(process.messages)")
      if skips {
        #expect(
          process.standardError.text
            == "sluice: 2 records were dropped before they were requested; continuing at offset 3\n")
      }
    }
  }
}
