import SluiceIO
import TestSupport
import Testing

@testable import SluiceNATS

@Suite("Messages, requests and losses of a NATS session")
struct SessionTests {
  private func inbox(in text: String) throws -> String {
    // PUB subject inbox.number size
    let words = try #require(text.split(separator: "\r\n").first).split(separator: " ")
    return String(words[2])
  }

  @Test("an answer goes to its request, once")
  func answers() throws {
    var test = try SessionUnderTest()
    try test.open()
    let first = try test.request("a", "x")
    let firstInbox = try inbox(in: test.sent())
    let second = try test.request("b", "y")
    let secondInbox = try inbox(in: test.sent())
    #expect(firstInbox != secondInbox)
    #expect(
      try test.receive("MSG \(secondInbox) 1 3\r\ntwo\r\nMSG \(firstInbox) 1 3\r\none\r\n")
        == ["request \(second): two", "request \(first): one"])
    #expect(try test.receive("MSG \(firstInbox) 1 4\r\nlate\r\n") == [])
    #expect(test.session.requestCount == 0)
    #expect(try test.receive("MSG _INBOX.other.1 1 4\r\nlate\r\n") == [])
  }

  @Test("a request that nothing answers is told so by the server")
  func noResponders() throws {
    var test = try SessionUnderTest()
    try test.open()
    let number = try test.request("a")
    let inbox = try inbox(in: test.sent())
    #expect(
      try test.receive("HMSG \(inbox) 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n") == [
        "request \(number): no-responders"
      ])
  }

  @Test("a request of several answers goes on until it is ended, each answer within the time")
  func manyAnswers() throws {
    var test = try SessionUnderTest()
    try test.open()
    let number = try test.request("a", isMany: true, timeout: .seconds(2))
    let inbox = try inbox(in: test.sent())
    for _ in 0..<3 {
      #expect(try test.receive("MSG \(inbox) 1 1\r\nx\r\n") == ["request \(number): x"])
      #expect(test.pass(.milliseconds(1_500)) == [])
    }
    #expect(test.pass(.milliseconds(600)) == ["request \(number): timeout"])
    let other = try test.request("a", isMany: true)
    test.session.endRequest(other)
    #expect(test.session.requestCount == 0)
  }

  @Test("requests time out in the order of their deadlines")
  func timeouts() throws {
    var test = try SessionUnderTest { $0.pingInterval = .seconds(1_000) }
    try test.open()
    let slow = try test.request("a", timeout: .seconds(20))
    let quick = try test.request("b", timeout: .seconds(10))
    #expect(test.pass(.seconds(15)) == ["request \(quick): timeout"])
    #expect(test.pass(.seconds(5)) == ["request \(slow): timeout"])
    #expect(test.session.requestCount == 0)
    for _ in 0..<1_000 { test.session.endRequest(try test.request("c")) }
    #expect(test.session.requestCount == 0)
  }

  @Test("at a loss, what was written may have been carried out, and what wasn't can't")
  func outcomes() throws {
    var test = try SessionUnderTest()
    try test.open()
    let answered = try test.request("a", "1")
    let inbox = try inbox(in: test.sent())
    let written = try test.request("b", "2")
    _ = test.sent()
    let part = try test.request("c", "3")
    // All bytes except the last one: the server can't have executed it.
    _ = test.sent(taking: test.session.output.count - 1)
    let unwritten = try test.request("d", "4")
    #expect(try test.receive("MSG \(inbox) 1 0\r\n\r\n") == ["request \(answered): "])
    #expect(
      test.lost() == [
        "request \(written): outcome-unknown", "request \(part): not-sent", "request \(unwritten): not-sent",
        "interrupted: cut-off",
      ])
    let error = #expect(throws: NATSError.self) { try test.request("e") }
    #expect(error?.code == .notSent)
    #expect(test.pass(.seconds(1)) == ["connect 127.0.0.1:1 as 127.0.0.1"])
    try test.shakeHands()
    #expect(test.session.output.count == 0)
    #expect(throws: Never.self) { try test.request("e") }
  }

  @Test(
    "subscriptions get their messages, and are made again on the next connection with what is left of their limit"
  )
  func subscriptions() throws {
    var test = try SessionUnderTest()
    try test.open()
    let all = try test.session.subscribe("a")
    let three = try test.session.subscribe("a", limit: 3)
    #expect(test.sent() == "SUB a \(all)\r\nSUB a \(three)\r\nUNSUB \(three) 3\r\n")
    #expect(
      try test.receive("MSG a \(all) 1\r\nx\r\nMSG a \(three) 1\r\nx\r\nMSG a 99 1\r\nx\r\n")
        == ["\(all) gets x", "\(three) gets x"])
    _ = test.lost()
    _ = test.pass(.seconds(1))
    test.session.opened(isSecure: false, credentials: .none, at: test.now)
    _ = try test.receive(SessionUnderTest.info + "}\r\n")
    _ = test.sent()
    _ = try test.receive("PONG\r\n")
    #expect(test.sent().hasSuffix("SUB a \(all)\r\nSUB a \(three)\r\nUNSUB \(three) 2\r\n"))
    #expect(
      try test.receive("MSG a \(three) 1\r\ny\r\nMSG a \(three) 1\r\nz\r\nMSG a \(three) 1\r\n!\r\n")
        == ["\(three) gets y", "\(three) gets z", "\(three) ends: done"])
    test.session.unsubscribe(all)
    #expect(test.sent() == "UNSUB \(all)\r\n")
    #expect(try test.receive("MSG a \(all) 1\r\nx\r\n") == [])
  }

  @Test("a subject that the server forbids fails the request or the subscription, not the connection")
  func permissions() throws {
    var test = try SessionUnderTest()
    try test.open()
    let request = try test.request("forbidden.a")
    let other = try test.request("allowed")
    let subscription = try test.session.subscribe("forbidden.b")
    #expect(
      try test.receive("-ERR 'Permissions Violation for Publish to \"forbidden.a\"'\r\n")
        == ["request \(request): permission-denied"])
    #expect(
      try test.receive("-ERR 'Permissions Violation for Subscription to \"forbidden.b\"'\r\n")
        == ["\(subscription) ends: permission-denied"])
    #expect(test.session.isOpen)
    #expect(test.session.requestCount == 1)
    _ = other
  }

  @Test("what the server wouldn't take isn't sent")
  func limits() throws {
    var test = try SessionUnderTest { $0.maximumBacklog = 2_000 }
    try test.open()
    #expect(throws: Never.self) { try test.publish("a", String(repeating: "x", count: 1_000)) }
    #expect(
      #expect(throws: NATSError.self) { try test.publish("a", String(repeating: "x", count: 1_001)) }?.code
        == .payloadTooLarge)
    #expect(#expect(throws: NATSError.self) { try test.publish("a b", "") }?.code == .invalidSubject)
    #expect(throws: NATSError.self) { try test.session.subscribe("a b") }
    #expect(throws: NATSError.self) { try test.session.subscribe("a", queue: "q\r\n") }
    #expect(
      #expect(throws: NATSError.self) { try test.publish("a", String(repeating: "x", count: 1_000)) }?.code
        == .backlogFull)
    #expect(test.sent() == "PUB a 1000\r\n\(String(repeating: "x", count: 1_000))\r\n")
    // The server sets the limit, and may change it.
    _ = try test.receive(SessionUnderTest.info.replacing("1000", with: "10") + "}\r\n")
    #expect(throws: NATSError.self) { try test.publish("a", "12345678901") }
  }

  @Test("a silent server is asked for a sign of life, and given up on without one")
  func keepalive() throws {
    var test = try SessionUnderTest()
    try test.open()
    #expect(test.pass(.seconds(5)) == [])
    #expect(test.sent() == "PING\r\n")
    #expect(try test.receive("PONG\r\n") == [])
    #expect(test.pass(.seconds(5)) == [])
    #expect(test.sent() == "PING\r\n")
    #expect(test.pass(.seconds(4)) == [])
    test.session.madeProgress(at: test.now)
    #expect(test.pass(.seconds(4)) == [])
    #expect(test.pass(.seconds(1)) == ["disconnect", "interrupted: keepalive-timeout"])
  }

  @Test("the server's PING is answered")
  func ping() throws {
    var test = try SessionUnderTest()
    try test.open()
    _ = try test.receive("PING\r\n")
    #expect(test.sent() == "PONG\r\n")
  }

  @Test("a server that is about to stop is left when its requests are answered")
  func lameDuck() throws {
    var test = try SessionUnderTest(["127.0.0.1:1", "127.0.0.1:2"])
    try test.open()
    let here = test.session.server
    let number = try test.request("a")
    let inbox = try inbox(in: test.sent())
    #expect(try test.receive(SessionUnderTest.info + #","ldm":true}"# + "\r\n") == ["lame duck: \(here)"])
    #expect(#expect(throws: NATSError.self) { try test.request("b") }?.code == .notSent)
    let after = try test.receive("MSG \(inbox) 1 0\r\n\r\n")
    #expect(after.prefix(3) == ["request \(number): ", "disconnect", "interrupted: not-sent"])
    #expect(after.last?.hasPrefix("connect") == true)
    #expect(!here.contains(try #require(after.last).split(separator: " ")[1]))
  }

  @Test("a server that is about to stop isn't waited for longer than the patience lasts")
  func lameDuckPatience() throws {
    var test = try SessionUnderTest(["127.0.0.1:1", "127.0.0.1:2"])
    try test.open()
    let number = try test.request("a")
    _ = test.sent()
    _ = try test.receive(SessionUnderTest.info + #","ldm":true}"# + "\r\n")
    #expect(test.pass(.seconds(1)) == [])
    #expect(test.pass(.seconds(1)).prefix(2) == ["request \(number): outcome-unknown", "disconnect"])
  }

  @Test("closing fails requests and ends subscriptions, once")
  func close() throws {
    var test = try SessionUnderTest()
    try test.open()
    let number = try test.request("a")
    let subscription = try test.session.subscribe("b")
    #expect(
      notes(test.session.close()) == [
        "request \(number): not-sent", "\(subscription) ends: closed", "disconnect", "closed: closed",
      ])
    #expect(notes(test.session.close()) == [])
    #expect(test.session.nextDeadline == nil)
    #expect(#expect(throws: NATSError.self) { try test.request("a") }?.code == .closed)
  }

  @Test("a message before the handshake is done breaks the protocol")
  func early() throws {
    var test = try SessionUnderTest()
    _ = test.start()
    test.session.opened(isSecure: false, credentials: .none, at: test.now)
    #expect(try test.receive("MSG a 1 0\r\n\r\n") == ["disconnect", "interrupted: protocol-violation"])
  }

  private func messages(_ payloads: String...) -> [NATSMessage] {
    payloads.enumerated().map { NATSMessage(subject: "s\($0.offset)", payload: bytes($0.element)) }
  }

  @Test("messages behind one another end with a request, and the answer is the last one's")
  func requestBehind() throws {
    var test = try SessionUnderTest()
    try test.open()
    let number = try test.session.requestBehind(
      messages("one", "two", "three")[...], timeout: .seconds(5), at: test.now)
    let sent = test.sent()
    #expect(sent.hasPrefix("PUB s0 3\r\none\r\nPUB s1 3\r\ntwo\r\nPUB s2 "))
    let inbox = String(try #require(sent.split(separator: "\r\n").dropLast().last?.split(separator: " ")[2]))
    #expect(try test.receive("MSG \(inbox) 1 2\r\nok\r\n") == ["request \(number): ok"])
  }

  @Test(
    "of messages behind one another none is sent where one of them can't be",
    arguments: [0, 1, 2])
  func requestBehindRefused(bad: Int) throws {
    var test = try SessionUnderTest()
    try test.open()
    try test.publish("before", "x")
    var batch = messages("one", "two", "three")
    batch[bad].payload = [UInt8](repeating: 0x61, count: 1_001)
    #expect(throws: NATSError.self) {
      try test.session.requestBehind(batch[...], timeout: .seconds(5), at: test.now)
    }
    #expect(test.session.requestCount == 0)
    try test.publish("behind", "y")
    #expect(test.sent() == "PUB before 1\r\nx\r\nPUB behind 1\r\ny\r\n")
  }

  @Test("without a connection, messages behind one another aren't sent")
  func requestBehindWithoutConnection() throws {
    var test = try SessionUnderTest()
    try test.open()
    _ = try test.request("a")
    _ = test.lost()
    let waiting = test.sent()
    #expect(throws: NATSError.self) {
      try test.session.requestBehind(messages("one", "two")[...], timeout: .seconds(5), at: test.now)
    }
    #expect(test.sent() == "" && test.session.requestCount == 0, "\(waiting)")
  }
}
