import SluiceIO
import TestSupport
import Testing

@testable import SluiceNATS

@Suite("The messages of a NATS client, as a value")
struct TrafficTests {
  private static let now = MonotonicTime(nanoseconds: 0)

  private static func traffic(backlog: Int = 1_000) -> NATSTraffic {
    NATSTraffic(inbox: "_INBOX.x", maximumBacklog: backlog)
  }

  private static func request(
    _ traffic: inout NATSTraffic, _ subject: String = "a", _ payload: String = "", isMany: Bool = false,
    timeout: Duration = .seconds(5)
  ) throws(NATSError) -> UInt64 {
    try Array(payload.utf8).withBytes { payload throws(NATSError) in
      try traffic.request(
        subject, headers: NATSHeaders(), payload: payload, maximumPayload: 100, isMany: isMany,
        timeout: timeout, at: now)
    }
  }

  private static func publish(_ traffic: inout NATSTraffic, _ payload: String) throws(NATSError) {
    try Array(payload.utf8).withBytes { payload throws(NATSError) in
      try traffic.publish("a", reply: "", headers: NATSHeaders(), payload: payload, maximumPayload: 100)
    }
  }

  /// The arrivals that result from a server's message on the wire.
  private static func arrival(_ traffic: inout NATSTraffic, _ text: String) throws -> [NATSTraffic.Arrival] {
    var parser = NATSParser()
    var result: [NATSTraffic.Arrival] = []
    _ = try Array(text.utf8).withBytes { bytes throws(NATSError) in
      try parser.parse(bytes) { operation in
        if case .message(let message) = operation { result.append(traffic.receive(message, at: now)) }
        return true
      }
    }
    return result
  }

  private static func text(_ traffic: NATSTraffic) -> String {
    String(decoding: traffic.output.waiting, as: UTF8.self)
  }

  @Test("answers belong to the requests whose subjects they go to, until these have ended")
  func answers() throws {
    var traffic = Self.traffic()
    let one = try Self.request(&traffic)
    let many = try Self.request(&traffic, isMany: true)
    #expect(Self.text(traffic) == "PUB a _INBOX.x.\(one) 0\r\n\r\nPUB a _INBOX.x.\(many) 0\r\n\r\n")
    let answer = "MSG _INBOX.x.\(one) 1 1\r\nx\r\n"
    #expect(try Self.arrival(&traffic, answer) == [.lastAnswer(one)])
    #expect(try Self.arrival(&traffic, answer) == [.unknown])
    #expect(try Self.arrival(&traffic, "MSG _INBOX.x.\(many) 1 1\r\nx\r\n") == [.answer(many)])
    #expect(try Self.arrival(&traffic, "MSG _INBOX.y.\(many) 1 1\r\nx\r\n") == [.unknown])
    #expect(traffic.requestCount == 1)
    traffic.endRequest(many)
    #expect(try Self.arrival(&traffic, "MSG _INBOX.x.\(many) 1 1\r\nx\r\n") == [.unknown])
  }

  @Test("inserts stand in the payload where they belong, and count for its size")
  func inserts() throws {
    var traffic = Self.traffic()
    let (one, two) = (KeptBytes(Array("23".utf8)), KeptBytes(Array("56".utf8)))
    func send(_ payload: String, _ inserts: [NATSInsert], to traffic: inout NATSTraffic) throws {
      try Array(payload.utf8).withBytes { payload throws(NATSError) in
        try traffic.publish(
          "a", reply: "", headers: NATSHeaders(), payload: payload, inserts: inserts, maximumPayload: 8)
      }
    }
    func insert(_ kept: KeptBytes, at position: Int) -> NATSInsert {
      NATSInsert(at: position, kept.memory, of: kept)
    }
    try send("147", [insert(one, at: 1), insert(two, at: 2)], to: &traffic)
    try send("78", [insert(one, at: 0), insert(two, at: 0)], to: &traffic)
    try send("01", [insert(one, at: 2)], to: &traffic)
    let expected = "PUB a 7\r\n1234567\r\nPUB a 6\r\n235678\r\nPUB a 4\r\n0123\r\n"
    #expect(Self.text(traffic) == expected)
    let error = #expect(throws: NATSError.self) {
      try send("12345", [insert(one, at: 0), insert(two, at: 0)], to: &traffic)
    }
    #expect(error?.code == .payloadTooLarge)
    #expect(Self.text(traffic) == expected)
  }

  @Test("a request that nothing answers has ended")
  func noResponders() throws {
    var traffic = Self.traffic()
    let number = try Self.request(&traffic, "b")
    let text = "HMSG _INBOX.x.\(number) 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"
    #expect(try Self.arrival(&traffic, text) == [.noResponders(number, subject: "b")])
    #expect(traffic.requestCount == 0)
  }

  @Test("subscriptions end with as many messages as they ask for, and are made anew at the next server")
  func subscriptions() throws {
    var traffic = Self.traffic()
    let limited = traffic.subscribe("a", queue: nil, limit: 2, isConnected: false)
    let other = traffic.subscribe("b", queue: "q", limit: nil, isConnected: true)
    #expect(Self.text(traffic) == "SUB b q \(other)\r\n")
    traffic.begin()
    #expect(try Self.arrival(&traffic, "MSG a \(limited) 0\r\n\r\n") == [.message])
    traffic.resume()
    #expect(
      Self.text(traffic)
        == "SUB _INBOX.x.* 1\r\nSUB a \(limited)\r\nUNSUB \(limited) 1\r\nSUB b q \(other)\r\n")
    #expect(try Self.arrival(&traffic, "MSG a \(limited) 0\r\n\r\n") == [.lastMessage])
    #expect(try Self.arrival(&traffic, "MSG a \(limited) 0\r\n\r\n") == [.unknown])
    #expect(
      traffic.endSubscriptions(NATSError(.closed, "")).flatMap { notes($0) } == ["\(other) ends: closed"])
  }

  @Test(
    "at the end of a connection, requests that were written have an unknown outcome, and others weren't sent")
  func interrupted() throws {
    var traffic = Self.traffic()
    let written = try Self.request(&traffic)
    let size = traffic.output.count
    let partly = try Self.request(&traffic)
    traffic.output.took(size + 1)
    #expect(
      traffic.failRequests(NATSError(.cutOff, "gone")).flatMap { notes($0) }
        == ["request \(written): outcome-unknown", "request \(partly): not-sent"])
    #expect(traffic.requestCount == 0 && traffic.nextDeadline == nil)
  }

  @Test("what is too large, or more than may wait, isn't encoded")
  func limits() throws {
    var traffic = Self.traffic(backlog: 150)
    func code(_ payload: String) -> NATSError.Code? {
      do throws(NATSError) {
        try Self.publish(&traffic, payload)
        return nil
      } catch {
        return error.code
      }
    }
    #expect(code(String(repeating: "x", count: 101)) == .payloadTooLarge)
    #expect(traffic.output.count == 0)
    #expect(code(String(repeating: "x", count: 100)) == nil)
    let count = traffic.output.count
    #expect(code(String(repeating: "x", count: 100)) == .backlogFull)
    #expect(traffic.output.count == count)
  }

  @Test("requests fail when their time is over, and those that the server refuses at once")
  func failures() throws {
    var traffic = Self.traffic()
    let slow = try Self.request(&traffic, "a", timeout: .seconds(9))
    let quick = try Self.request(&traffic, "b", timeout: .seconds(1))
    let late = Self.now + .seconds(2)
    let overdue = traffic.popOverdue(at: late, server: "s")
    #expect(overdue?.0 == quick && overdue?.1.code == .timeout && overdue?.1.subject == "b")
    #expect(traffic.popOverdue(at: late, server: "s") == nil)
    #expect(traffic.refuseRequest(to: "b") == nil)
    #expect(traffic.refuseRequest(to: "a") == slow)
    #expect(traffic.requestCount == 0)
  }
}
