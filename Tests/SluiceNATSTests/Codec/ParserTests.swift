import TestSupport
import Testing

@testable import SluiceNATS

@Suite("Parsing what a NATS server sends")
struct ParserTests {
  private static func headers(_ pairs: (String, String)...) -> NATSHeaders {
    var headers = NATSHeaders()
    for (name, value) in pairs { try! headers.add(name, value) }
    return headers
  }

  private static let firstLineOnly = bytes("NATS/1.0\r\n\r\n").withUnsafeBytes {
    NATSHeaders(NATSHeadersView(NATSBytes($0)))
  }

  /// Bytes on the wire, and the parsed operation.
  static let table: [(bytes: [UInt8], output: ParsedOperation)] = [
    (bytes("PING\r\n"), .ping),
    (bytes("PONG\r\n"), .pong),
    (bytes("pong\r\n"), .pong),
    (bytes("+OK\r\n"), .ok),
    (bytes("INFO {\"server_name\":\"n1\"} \r\n"), .info("{\"server_name\":\"n1\"}")),
    (bytes("-ERR 'Authorization Violation'\r\n"), .error("Authorization Violation")),
    (bytes("-ERR \t Stale Connection\r\n"), .error("Stale Connection")),
    (bytes("-ERR\r\n"), .error("")),
    (
      bytes("MSG a.b 7 5\r\nhello\r\n"),
      .message(NATSMessage(subject: "a.b", payload: bytes("hello")), subscription: 7)
    ),
    (
      bytes("MSG a.b 7 _INBOX.x 0\r\n\r\n"),
      .message(NATSMessage(subject: "a.b", reply: "_INBOX.x"), subscription: 7)
    ),
    (
      bytes("msg\ta.b  7\t2 \r\n\r\n\r\n"),
      .message(NATSMessage(subject: "a.b", payload: bytes("\r\n")), subscription: 7)
    ),
    (
      bytes("HMSG a 1 r 20 24\r\nNATS/1.0\r\nA: b c\r\n\r\nbody\r\n"),
      .message(
        NATSMessage(subject: "a", reply: "r", headers: headers(("A", "b c")), payload: bytes("body")),
        subscription: 1)
    ),
    (
      bytes("HMSG a 18446744 12 12\r\nNATS/1.0\r\n\r\n\r\n"),
      .message(NATSMessage(subject: "a", headers: firstLineOnly), subscription: 18_446_744)
    ),
  ]

  @Test("each operation is the same however its bytes are cut")
  func cuts() throws {
    var verifier = DecoderVerifier(random: SeededRandom(seed: 18)) { ParserUnderTest() }
    try verifier.verify(Self.table)
  }

  @Test(
    "what isn't the protocol is refused, with what came before handed out",
    arguments: [
      "HELLO\r\n", "\r\n", "PING\n", "MSG a 1\r\n", "MSG a 1 r 5 5\r\n", "MSG a x 5\r\n", "MSG a 1 -1\r\n",
      "MSG a 1 1001\r\n", "MSG a 1 99999999999999999999\r\n", "MSG a 1 2\r\nabc\r\n", "MSG a 1 2\r\nab\n\n",
      "HMSG a 1 5\r\n", "HMSG a 1 0 5\r\n", "HMSG a 1 6 5\r\n", "HMSG a 1 12 12\r\nNATS/1.1\r\n\r\n\r\n",
      "HMSG a 1 12 12\r\nNATS/1.0\r\nab\r\n", "HMSG a 1 3 3\r\nabc\r\n", "PINGS\r\n", "MSGS a 1 0\r\n\r\n",
    ])
  func violations(text: String) throws {
    var verifier = DecoderVerifier(random: SeededRandom(seed: 1)) { ParserUnderTest() }
    try verifier.verifyFailure(bytes("PING\r\n" + text), after: [.ping]) {
      ($0 as? NATSError)?.code == .protocolViolation
    }
  }

  @Test("a line without an end is refused before it takes much memory")
  func endlessLine() throws {
    let parser = ParserUnderTest()
    let chunk = [UInt8](repeating: 0x41, count: 1_000)
    var fed = 0
    #expect(throws: NATSError.self) {
      while fed < 1 << 20 {
        _ = try chunk.withUnsafeBytes { try parser.feed($0) }
        fed += chunk.count
      }
    }
    #expect(fed <= NATSParser.maximumLine)
  }

  @Test("a message larger than the limit is refused at its line, before its payload comes")
  func limit() throws {
    let parser = ParserUnderTest(maximumPayload: 10)
    #expect(try bytes("MSG a 1 10\r\n").withUnsafeBytes { try parser.feed($0) } == [])
    let other = ParserUnderTest(maximumPayload: 10)
    #expect(throws: NATSError.self) { try bytes("MSG a 1 11\r\n").withUnsafeBytes { try other.feed($0) } }
  }

  @Test("a handler that stops leaves the rest to its caller")
  func stop() throws {
    var parser = NATSParser()
    var count = 0
    let taken = try bytes("PING\r\nINFO {}\r\nPONG\r\n").withUnsafeBytes { chunk in
      try parser.parse(NATSBytes(chunk)) { _ in
        count += 1
        return count < 2
      }
    }
    #expect(count == 2)
    #expect(taken == 15)
    #expect(parser.pendingCount == 0)
  }
}
