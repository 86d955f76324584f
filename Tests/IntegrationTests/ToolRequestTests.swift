import Glibc
import SluiceWire
import TestSupport
import Testing

/// `sluice request` and `sluice reply` as processes.
@Suite(.onItsOwnThread) struct ToolRequestTests {
  @Test func aCommandRepliesToRequests() throws {
    let broker = try BrokerProcess()
    try broker.client().create("upper")
    let service = try broker.sluice("reply", "upper", "--exec", "tr a-z A-Z; test \"$SLUICE_KEY\" != bad")
    try broker.waitForSubscriptions(1, on: "upper")

    let one = try broker.sluice("request", "upper", "hello", "--timeout", "10m")
    #expect(try one.waitForExit(within: 600) == .code(0), "\(one.messages)")
    #expect(one.standardOutput.text == "HELLO")

    // More than a pipe's buffer, in both directions.
    let long = [UInt8](repeating: UInt8(ascii: "x"), count: 300_000)
    let two = try broker.sluice("request", "upper", "--timeout", "10m", input: .bytes(long))
    #expect(try two.waitForExit(within: 600) == .code(0), "\(two.messages)")
    #expect(two.standardOutput.bytes == [UInt8](repeating: UInt8(ascii: "X"), count: 300_000))

    let three = try broker.sluice("request", "upper", "x", "--key", "bad", "--timeout", "10m")
    #expect(try three.waitForExit(within: 600) == .code(1))
    #expect(three.standardOutput.text == "")
    #expect(
      three.standardError.text
        == "sluice: the request couldn't be answered: the command for offset 2 of upper ended with code 1\n")

    service.signal(SIGTERM)
    #expect(try service.waitForExit(within: 600) == .code(143), "\(service.messages)")
    #expect(service.standardError.text == "sluice: the command for offset 2 of upper ended with code 1\n")
    try broker.waitForSubscriptions(0, on: "upper")
  }

  @Test func withoutAReplyTheRequestFails() throws {
    let broker = try BrokerProcess()
    let silent = try broker.client()
    try silent.subscribe("silent", stream: 1, granted: 10)
    let request = try broker.sluice("request", "silent", "x", "--timeout", "200ms")
    #expect(try request.waitForExit(within: 600) == .code(1))
    #expect(
      request.standardError.text
        == "sluice: no reply came within 0.2 seconds; does a subscriber of topic silent reply to requests?\n"
    )
  }

  @Test func withoutASubscriberTheRequestFailsAtOnce() throws {
    let broker = try BrokerProcess()
    let request = try broker.sluice("request", "nothing.there", "x", "--timeout", "10m")
    #expect(try request.waitForExit(within: 600) == .code(1))
    #expect(
      request.standardError.text
        == "sluice: no subscriber is attached to topic nothing.there, so nothing can reply; start one that replies, then ask again\n"
    )
    #expect(!(try broker.client().list(limit: 10).topics.contains { $0.topic == "nothing.there" }))
  }
}
