import Glibc
import SluiceWire
import TestSupport
import Testing

/// `sluice sub` with a pattern.
@Suite(.onItsOwnThread) struct ToolPatternTests {
  @Test func topicsThatAreThereUntilTheyAreLive() throws {
    let broker = try BrokerProcess()
    try broker.client().publishAll(["1", "2"], to: "orders.eu")
    try broker.client().publishAll(["3"], to: "orders.us")
    try broker.client().publishAll(["4"], to: "prices.eu")
    let process = try broker.sluice(
      "sub", "orders.*", "--until-live", "--format", "{topic} {offset} {payload}")
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    let lines = process.standardOutput.text.split(separator: "\n").map(String.init)
    #expect(lines.sorted() == ["orders.eu 0 1", "orders.eu 1 2", "orders.us 0 3"])
    let json = try broker.sluice("sub", "*.us", "--count", "1", "--json")
    #expect(try json.waitForExit() == .code(0), "\(json.messages)")
    #expect(json.standardOutput.text.contains(#""topic":"orders.us""#))
  }

  @Test func topicsThatComeEndAndGoWhileItGoesOn() throws {
    let broker = try BrokerProcess()
    let process = try broker.sluice("sub", ">", "--format", "{topic} {payload}")
    var expected = ""
    for round in 0..<5 {
      let publisher = try broker.sluice("pub", "t.\(round)", "--complete", "m\(round)")
      #expect(try publisher.waitForExit() == .code(0), "\(publisher.messages)")
      expected += "t.\(round) m\(round)\n"
      try eventually("it is told; \(process.messages)") {
        process.standardError.text.contains("topic t.\(round) has completed")
      }
    }
    let delete = try broker.sluice("topic", "delete", "t.0", "--yes")
    #expect(try delete.waitForExit() == .code(0), "\(delete.messages)")
    try eventually("it is told; \(process.messages)") {
      process.standardError.text.contains("topic t.0 was deleted")
    }
    process.signal(SIGINT)
    _ = try process.waitForExit()
    #expect(process.standardOutput.text == expected)
  }

  /// The broker is killed, and another one replaces it; each has topics that the other lacks.
  @Test func itOutlivesItsBroker() throws {
    var broker = try BrokerProcess()
    let address = broker.address
    try broker.client().publishAll(["1"], to: "t.a")
    let process = try broker.sluice("sub", "t.*", "--count", "3", "--format", "{topic} {payload}")
    try process.standardOutput.wait(bytes: 6)
    broker.process.signal(SIGKILL)
    try broker.process.waitForExit()
    broker = try BrokerProcess("--listen", address)
    try broker.client().publishAll(["2"], to: "t.a")
    try broker.client().publishAll(["3"], to: "t.b")
    #expect(try process.waitForExit(within: 60) == .code(0), "\(process.messages)")
    let lines = process.standardOutput.text.split(separator: "\n").map(String.init)
    #expect(lines.first == "t.a 1")
    #expect(lines.sorted() == ["t.a 1", "t.a 2", "t.b 3"])
  }

  @Test func whatIsNotAPatternIsWrongUsage() throws {
    let broker = try BrokerProcess()
    let process = try broker.sluice("sub", "a.>.b")
    #expect(try process.waitForExit() == .code(2))
    #expect(process.standardError.text.contains("isn't a pattern"))
  }
}
