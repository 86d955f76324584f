import Glibc
import SluiceWire
import TestSupport
import Testing

/// `sluice sub` and a topic that doesn't exist: it waits, or fails, and creates nothing.
@Suite(.onItsOwnThread) struct ToolMissingTopicTests {
  private func exists(_ topic: String, at broker: BrokerProcess) throws -> Bool {
    try broker.client().list(limit: 100).topics.contains { $0.topic == topic }
  }

  @Test(arguments: [[], ["--from", "new"], ["--from", "last:1"], ["--group", "g"], ["--cursor", "c"]])
  func itWaitsForTheTopicWithoutCreatingIt(options: [String]) throws {
    let broker = try BrokerProcess()
    let subscriber = try ChildProcess.sluice(["sub", "later"] + options, server: broker.address)
    try eventually("the wait is told; \(subscriber.messages)") {
      subscriber.standardError.text.contains("topic later doesn't exist yet; waiting for it")
    }
    #expect(try !exists("later", at: broker))
    let publisher = try broker.sluice("pub", "later", "one", "two", "--complete")
    #expect(try publisher.waitForExit(within: 600) == .code(0), "\(publisher.messages)")
    #expect(try subscriber.waitForExit(within: 600) == .code(0), "\(subscriber.messages)")
    #expect(subscriber.standardOutput.text == "one\ntwo\n")
  }

  @Test(arguments: ["--until-live", "--count"])
  func whatReadsToTheEndFailsWithTheNearestNames(option: String) throws {
    let broker = try BrokerProcess()
    let client = try broker.client()
    for topic in ["orders.eu", "orders.us", "prices"] { try client.create(topic) }
    let arguments = ["sub", "orders.ew", option] + (option == "--count" ? ["0"] : [])
    let subscriber = try ChildProcess.sluice(arguments, server: broker.address)
    #expect(try subscriber.waitForExit(within: 600) == .code(1))
    #expect(
      subscriber.standardError.text
        == "sluice: there is no topic orders.ew; did you mean 'orders.eu' or 'orders.us'?\n")
    #expect(subscriber.standardOutput.text == "")
    #expect(try !exists("orders.ew", at: broker))
    let show = try broker.sluice("topic", "show", "price")
    #expect(try show.waitForExit(within: 600) == .code(1))
    #expect(show.standardError.text == "sluice: there is no topic price; did you mean 'prices'?\n")
  }

  @Test func noRecordsOfATopicThatIsThere() throws {
    let broker = try BrokerProcess()
    try broker.client().create("t")
    let subscriber = try broker.sluice("sub", "t", "--count", "0")
    #expect(try subscriber.waitForExit(within: 600) == .code(0), "\(subscriber.messages)")
  }

  @Test(arguments: [("orders.#", "orders.>"), ("sensors/+", "sensors.*"), ("a.+.c", "a.*.c")])
  func otherSystemsWildcardsGetAHint(name: String, pattern: String) throws {
    let broker = try BrokerProcess()
    let subscriber = try broker.sluice("sub", name)
    try eventually("the hint is given; \(subscriber.messages)") {
      subscriber.standardError.text.contains(
        "topic \(name) doesn't exist yet; waiting for it; '+' and '#' aren't wildcards here: '*' matches one token, a last '>' the rest: did you mean '\(pattern)'?"
      )
    }
    subscriber.signal(SIGINT)
    #expect(try subscriber.waitForExit(within: 600) == .code(130), "\(subscriber.messages)")
  }

  @Test func whoWantsNoGapsIsToldThatTheTopicIsGone() throws {
    let first = try BrokerProcess()
    let address = first.address
    try first.client().create("t")
    let subscriber = try first.sluice("sub", "t", "--lag", "fail")
    try first.waitForSubscriptions(1, on: "t")
    let publisher = try first.sluice("pub", "t", "one")
    #expect(try publisher.waitForExit(within: 600) == .code(0))
    try subscriber.standardOutput.wait(bytes: 4)
    first.process.signal(SIGKILL)
    try first.process.waitForExit()
    let second = try BrokerProcess("--listen", address)
    #expect(try subscriber.waitForExit(within: 600) == .code(1), "\(subscriber.messages)")
    #expect(subscriber.standardError.text.contains("there is no topic t"))
    withExtendedLifetime(second) {}
  }

  @Test func reconnectCoversTheFirstConnection() throws {
    let first = try BrokerProcess()
    let address = first.address
    first.process.signal(SIGTERM)
    try first.process.waitForExit()
    let subscriber = try first.sluice("sub", "t", "--reconnect", "--count", "1")
    try eventually("the wait is told; \(subscriber.messages)") {
      subscriber.standardError.text.contains("no broker answers at \(address) yet; trying again")
    }
    let second = try BrokerProcess("--listen", address)
    let publisher = try second.sluice("pub", "t", "one")
    #expect(try publisher.waitForExit(within: 600) == .code(0))
    #expect(try subscriber.waitForExit(within: 600) == .code(0), "\(subscriber.messages)")
    #expect(subscriber.standardOutput.text == "one\n")
  }
}
