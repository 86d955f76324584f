import Testing

@testable import SluiceNATS

@Suite("Encoding what a NATS client sends")
struct EncoderTests {
  private func encoded(_ body: (inout [UInt8]) -> Void) -> String {
    var bytes: [UInt8] = []
    body(&bytes)
    return String(decoding: bytes, as: UTF8.self)
  }

  @Test("each operation has the bytes that the protocol says")
  func table() throws {
    #expect(encoded { NATSEncoder.ping(into: &$0) } == "PING\r\n")
    #expect(encoded { NATSEncoder.pong(into: &$0) } == "PONG\r\n")
    #expect(encoded { NATSEncoder.connect(bytes("{}"), into: &$0) } == "CONNECT {}\r\n")
    #expect(
      encoded { NATSEncoder.subscribe("a.>", queue: nil, number: 10, into: &$0) } == "SUB a.> 10\r\n")
    #expect(encoded { NATSEncoder.subscribe("a", queue: "q", number: 0, into: &$0) } == "SUB a q 0\r\n")
    #expect(encoded { NATSEncoder.unsubscribe(7, after: nil, into: &$0) } == "UNSUB 7\r\n")
    #expect(
      encoded { NATSEncoder.unsubscribe(7, after: .max, into: &$0) } == "UNSUB 7 18446744073709551615\r\n")
    var headers = NATSHeaders()
    try headers.add("A", "b")
    try bytes("hello").withBytes { payload in
      #expect(
        encoded { NATSEncoder.publish("s", reply: [], headers: NATSHeaders(), payload: payload, into: &$0) }
          == "PUB s 5\r\nhello\r\n")
      #expect(
        encoded {
          NATSEncoder.publish("s", reply: "r".utf8, headers: NATSHeaders(), payload: payload, into: &$0)
        } == "PUB s r 5\r\nhello\r\n")
      #expect(
        encoded { NATSEncoder.publish("s", reply: "r".utf8, headers: headers, payload: payload, into: &$0) }
          == "HPUB s r 18 23\r\nNATS/1.0\r\nA: b\r\n\r\nhello\r\n")
    }
    try [UInt8]().withBytes { payload in
      #expect(
        encoded { NATSEncoder.publish("s", reply: [], headers: headers, payload: payload, into: &$0) }
          == "HPUB s 18 18\r\nNATS/1.0\r\nA: b\r\n\r\n\r\n")
    }
  }

  @Test("what is encoded is parsed as the same message")
  func roundTrip() throws {
    var headers = NATSHeaders()
    try headers.add("Nats-Batch-Id", "x")
    let payload = [UInt8](0...255)
    var sent: [UInt8] = []
    try payload.withBytes {
      NATSEncoder.publish("a.b", reply: "r".utf8, headers: headers, payload: $0, into: &sent)
    }
    // HPUB a.b r … becomes HMSG a.b 1 r …
    let arrived = bytes("HMSG a.b 1 ") + sent.dropFirst("HPUB a.b ".utf8.count)
    let parser = ParserUnderTest()
    let operations = try arrived.withUnsafeBytes { try parser.feed($0) }
    #expect(
      operations == [
        .message(
          NATSMessage(subject: "a.b", reply: "r", headers: headers, payload: payload), subscription: 1)
      ])
  }

  @Test(
    "what can't be a subject is refused",
    arguments: [
      "", ".", "a.", ".a", "a..b", "a b", "a\r\nPUB b", "a\t", "*", "a.*", ">", "a.>.b", "a.\u{7F}",
    ])
  func badSubjects(subject: String) {
    let error = #expect(throws: NATSError.self) { try NATSSubject.check(subject) }
    #expect(error?.code == .invalidSubject)
    #expect(error?.description.contains("\r") == false)
  }

  @Test("wildcards are whole tokens, and the last one only for the rest")
  func wildcards() throws {
    for subject in ["a", "a.b", "a*", "a.b>", "$JS.API.INFO", "ä.ö"] { try NATSSubject.check(subject) }
    for subject in ["*", "a.*.b", ">", "a.>"] { try NATSSubject.check(subject, wildcards: true) }
    for subject in [">.a", "a.>.b"] {
      #expect(throws: NATSError.self) { try NATSSubject.check(subject, wildcards: true) }
    }
    #expect(throws: NATSError.self) { try NATSSubject.check(String(repeating: "a", count: 4_000)) }
    #expect(NATSSubject.matches("a.b.c", "a.*.c"))
    #expect(NATSSubject.matches("a.b.c", "a.>"))
    #expect(!NATSSubject.matches("a", "a.>"))
    #expect(!NATSSubject.matches("a.b", "a"))
  }

  @Test("subjects match patterns as they do token by token")
  func matching() {
    func matchesByToken(_ subject: String, _ pattern: String) -> Bool {
      var left = subject.split(separator: ".", omittingEmptySubsequences: false)[...]
      for expected in pattern.split(separator: ".", omittingEmptySubsequences: false) {
        if expected == ">" { return !left.isEmpty }
        guard let token = left.popFirst(), expected == "*" || expected == token else { return false }
      }
      return left.isEmpty
    }
    let tokens = ["", "a", "b", "ab", "*", ">", "*a", ">a", "a*"]
    let subjects =
      tokens + tokens.flatMap { first in tokens.map { "\(first).\($0)" } } + ["a.b.c", "a.a.b.ab"]
    let patterns = subjects + tokens.flatMap { first in tokens.map { "a.\(first).\($0)" } }
    for subject in subjects {
      for pattern in patterns {
        #expect(
          NATSSubject.matches(subject, pattern) == matchesByToken(subject, pattern),
          "'\(subject)' and '\(pattern)'")
      }
    }
  }
}

extension NATSEncoder {
  /// A complete message, as assembled by ``NATSTraffic``.
  fileprivate static func publish(
    _ subject: String, reply: some Collection<UInt8>, headers: NATSHeaders, payload: NATSBytes,
    into bytes: inout [UInt8]
  ) {
    publish(
      subject, reply: reply, headers: headers, payload: payload.count, copied: payload.count, into: &bytes)
    bytes += payload.array
    end(&bytes)
  }
}
