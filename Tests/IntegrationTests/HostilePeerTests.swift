import Glibc
import SluiceWire
import TestSupport
import Testing

/// Peers that violate the protocol, by mistake or on purpose: each gets the reason once, and other clients are unaffected.
@Suite(.onItsOwnThread) struct HostilePeerTests {
  // MARK: The first bytes

  @Test func anHTTPRequestIsToldWhatThisIs() throws {
    let client = try BrokerProcess().connect()
    try client.send(raw: Array("GET / HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
    try client.expectFault(.notSluice, stream: 0)
    try client.expectClosed()
  }

  @Test func aHelloOfAnotherVersionIsTurnedAway() throws {
    let client = try BrokerProcess().connect()
    try client.send(Hello(versions: 2...5, maximumFrame: 1 << 20, keepalive: 0, name: "new"), stream: 0)
    let fault = try client.expectFault(.versionMismatch, stream: 0)
    #expect(fault.message.contains("2") && fault.message.contains("5"))
    try client.expectClosed()
  }

  @Test func aHelloThatSpansOurVersionIsTaken() throws {
    let client = try BrokerProcess().connect()
    #expect(try client.shakeHands(versions: 1...7).version == 1)
    try client.roundTrip()
  }

  @Test func anotherProtocolsFirstFrameIsTurnedAway() throws {
    let broker = try BrokerProcess()
    var hello = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "x").encoded(stream: 0)
    hello[FrameHeader.size] ^= 1
    let first: [[UInt8]] = [
      hello, Ping(token: 1).encoded(stream: 0), Subscribe(topic: "t", grantedThrough: 1).encoded(stream: 1),
    ]
    for bytes in first {
      let client = try broker.connect()
      try client.send(raw: bytes)
      try client.expectFault(.notSluice, stream: 0)
      try client.expectClosed()
    }
  }

  @Test func aLongFirstFrameIsRefusedByItsHeader() throws {
    let client = try BrokerProcess().connect()
    var hello = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "x").encoded(stream: 0)
    hello.withUnsafeMutableBytes {
      FrameHeader(length: UInt32(Limits.handshakeFrame + 1), type: .hello, stream: 0)
        .write(at: $0.baseAddress!)
    }
    try client.send(raw: hello)
    try client.expectFault(.frameTooLarge, stream: 0)
    try client.expectClosed()
  }

  @Test func aHandshakeMayComeByteByByteButNotForEver() throws {
    let hello = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "slow").encoded(stream: 0)
    let slow = try BrokerProcess().connect()
    for byte in hello { try slow.send(raw: [byte]) }
    _ = try slow.expect(Welcome.self, stream: 0)

    // A second connection has its own deadline.
    let broker = try BrokerProcess("--handshake", "300ms")
    let silent = try broker.connect()
    let dripping = try broker.connect()
    for byte in hello.dropLast() {
      if try dripping.receiveIfAny(within: 0.05) != nil { break }
      // The broker may have closed the connection by now.
      try? dripping.send(raw: [byte])
    }
    try silent.expectFault(.handshakeTimeout, stream: 0)
    try silent.expectClosed()
    #expect(throws: RawSocket.Closed.self) {
      while true {
        let frame = try dripping.receive()
        #expect(frame.type == .error)
      }
    }
    try slow.roundTrip()
  }

  // MARK: Later bytes

  @Test func eachBrokenRuleHasItsError() throws {
    let broker = try BrokerProcess()
    func frame(_ type: UInt8, stream: UInt32, flags: UInt8 = 0, _ body: [UInt8] = []) -> [UInt8] {
      var bytes = [UInt8](repeating: 0, count: FrameHeader.size) + body
      bytes.withUnsafeMutableBytes {
        FrameHeader(
          length: UInt32(body.count), type: FrameType(rawValue: type), flags: flags, stream: stream
        ).write(at: $0.baseAddress!)
      }
      return bytes
    }
    let cases: [(String, [UInt8], ErrorCode)] = [
      ("an unknown type", frame(0x7F, stream: 0), .unsupportedFrame),
      (
        "a flag that must be understood", frame(0x03, stream: 0, flags: 1, [UInt8](repeating: 0, count: 8)),
        .unsupportedFrame
      ),
      ("a frame for clients", Live(nextOffset: 0).encoded(stream: 1), .unexpectedFrame),
      (
        "a second HELLO", Hello(maximumFrame: 1 << 20, keepalive: 0, name: "").encoded(stream: 0),
        .unexpectedFrame
      ),
      ("DEMAND on stream 0", Demand(grantedThrough: 1).encoded(stream: 0), .invalidStream),
      ("PING on a stream", Ping(token: 1).encoded(stream: 1), .invalidStream),
      ("DEMAND on a stream that isn't open", Demand(grantedThrough: 1).encoded(stream: 5), .invalidStream),
      ("CANCEL on a stream that isn't open", Cancel().encoded(stream: 5), .invalidStream),
      (
        "a stream beyond the limit", Subscribe(topic: "t", grantedThrough: 1).encoded(stream: .max),
        .invalidStream
      ),
      ("an empty SUBSCRIBE", frame(0x10, stream: 1), .malformedFrame),
      ("a topic that isn't UTF-8", frame(0x31, stream: 1, [1, 0, 0xFF]), .malformedFrame),
    ]
    for (what, bytes, code) in cases {
      let client = try broker.client()
      try client.send(raw: bytes)
      do {
        try client.expectFault(code, stream: 0)
        try client.expectClosed()
      } catch {
        Issue.record("\(what): \(error)")
      }
    }
    // Ignorable frames and flags are ignored.
    let client = try broker.client()
    try client.send(raw: frame(0x80, stream: 77, flags: 0xFF, [1, 2, 3]) + frame(0xFF, stream: 0))
    try client.send(raw: frame(0x03, stream: 0, flags: 0xF0, [UInt8](repeating: 0, count: 8)))
    _ = try client.expect(Pong.self, stream: 0)
  }

  @Test func aStreamThatIsCutOffAnywhereLeavesNothingBehind() throws {
    let broker = try BrokerProcess()
    var batch = BatchBuilder()
    for _ in 0..<3 { [UInt8](repeating: 1, count: 10).withUnsafeBytes { batch.append($0) } }
    let hello = Hello(maximumFrame: 1 << 20, keepalive: 0, name: "cut").encoded(stream: 0)
    let open = PublishOpen(topic: "t", acknowledgement: .received).encoded(stream: 1)
    let publish = RawClient.publishFrame(batch, from: 0, stream: 1)
    try broker.client().create("t")
    for length in 0..<(hello.count + open.count + publish.count) {
      let client = try broker.connect()
      let first = min(length, hello.count)
      try client.send(raw: Array(hello[..<first]))
      if first == hello.count {
        _ = try client.expect(Welcome.self, stream: 0)
        try client.send(raw: Array((open + publish)[..<(length - first)]))
      }
      client.close()
    }
    try eventually("all are gone") { try broker.show("t").summary.publications == 0 }
    #expect(try broker.show("t").summary.nextOffset == 0)
  }

  @Test func garbageEndsNothingButItsConnection() throws {
    var random = SeededRandom.printed()
    let broker = try BrokerProcess()
    let witness = try broker.client("witness")
    try witness.subscribe("t", stream: 1)
    try witness.openPublication("t", stream: 2)
    for round in UInt64(0)..<150 {
      let bytes = (0..<Int.random(in: 1...4000, using: &random)).map { _ in
        UInt8.random(in: 0...255, using: &random)
      }
      let client = round % 2 == 0 ? try broker.connect() : try broker.client("garbage")
      try? client.send(raw: bytes)
      client.socket.endOutput()
      try requireOneErrorAtMost(client)
      try witness.publish(["\(round)"], stream: 2)
      try witness.receiveRecords(round + 1, stream: 1)
    }
    try broker.requireRunning()
  }

  @Test func aSessionWithAnyByteWrongEndsNothingButItself() throws {
    var random = SeededRandom.printed()
    let broker = try BrokerProcess()
    let witness = try broker.client("witness")
    try witness.subscribe("witness", stream: 1)
    try witness.openPublication("witness", stream: 2)
    let session = Self.session()
    for round in UInt64(0)..<400 {
      var bytes = session
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let position = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes[position] ^= 1 << UInt8.random(in: 0..<8, using: &random)
        case 1: bytes[position] = .random(in: 0...255, using: &random)
        case 2: bytes.remove(at: position)
        default: bytes.insert(.random(in: 0...255, using: &random), at: position)
        }
      }
      let client = try broker.client("broken")
      try? client.send(raw: bytes)
      client.socket.endOutput()
      try requireOneErrorAtMost(client)
      if round % 20 == 0 {
        try witness.publish(["\(round)"], stream: 2)
        try witness.receiveRecords(round / 20 + 1, stream: 1)
      }
    }
    try broker.requireRunning()
    try witness.roundTrip()
  }

  /// All types of frames that a client sends, as one sequence of bytes after the handshake.
  private static func session() -> [UInt8] {
    var batch = BatchBuilder()
    for size in [0, 5, 60] { [UInt8](repeating: 9, count: size).withUnsafeBytes { batch.append($0) } }
    var bytes = TopicCreate(topic: "made", settings: TopicSettings(replayRecords: 10)).encoded(stream: 9)
    Subscribe(topic: "t", start: .last(3), grantedThrough: 5).encode(stream: 1, into: &bytes)
    PublishOpen(topic: "t", acknowledgement: .received).encode(stream: 2, into: &bytes)
    bytes += RawClient.publishFrame(batch, from: 0, stream: 2)
    Demand(grantedThrough: 50).encode(stream: 1, into: &bytes)
    bytes += RawClient.publishFrame(batch, from: 3, stream: 2)
    Ping(token: 4).encode(stream: 0, into: &bytes)
    TopicList(after: "", limit: 10).encode(stream: 3, into: &bytes)
    Complete(.failure(code: .producerFailure, message: "why")).encode(stream: 2, into: &bytes)
    Cancel().encode(stream: 1, into: &bytes)
    TopicDelete(topic: "t").encode(stream: 4, into: &bytes)
    return bytes
  }

  private func requireOneErrorAtMost(_ client: RawClient) throws {
    var errors = 0
    do {
      while true {
        let frame = try client.receive()
        try require(errors == 0, "\(frame) behind an error of the connection")
        if frame.type == .error, frame.stream == 0 { errors += 1 }
      }
    } catch is RawSocket.Closed {}
  }

  // MARK: Too much

  @Test func thereAreAsManyConnectionsAsMayBe() throws {
    let broker = try BrokerProcess("--max-connections", "3")
    let clients = try (0..<3).map { try broker.client("\($0)") }
    for _ in 0..<5 {
      let refused = try broker.connect()
      try? refused.send(
        Hello(maximumFrame: 1 << 20, keepalive: 0, name: "one too many"), stream: 0)
      try refused.expectFault(.tooManyConnections, stream: 0)
      try refused.expectEnd()
    }
    for client in clients { try client.roundTrip() }
    clients[1].close()
    try eventually("there is room again") { (try? broker.client("next")) != nil }
  }

  @Test func whoAsksWithoutReadingIsHeldUpAlone() throws {
    let broker = try BrokerProcess("--answers", "64KiB")
    let greedy = try broker.client("greedy", receiveBuffer: 8192)
    let other = try broker.client("other")
    let before = try broker.memory.resident
    // 40 MiB of requests: they stay with the client while it doesn't read the replies.
    var questions: [UInt8] = []
    for token in UInt64(0)..<1000 { Ping(token: token).encode(stream: 0, into: &questions) }
    for _ in 0..<2000 { try greedy.enqueue(raw: questions) }
    for _ in 0..<20 {
      pause(0.02)
      try other.roundTrip()
    }
    #expect(greedy.unsentBytes > 0)
    #expect(try broker.memory.resident - before < 24 << 20)

    // All are answered, in order, once it reads.
    for index in UInt64(0)..<100_000 {
      let pong = try greedy.receive().decode(Pong.self)
      try require(pong.token == index % 1000, "PONG \(pong.token) instead of \(index % 1000)")
    }
  }

  @Test func aLongReplayDoesntKeepCancelFromBeingRead() throws {
    let broker = try BrokerProcess("--answers", "4KiB", "--replay-bytes", "64MiB")
    let client = try broker.client()
    try client.openPublication("t", stream: 2)
    let payloads = [[UInt8]](repeating: [UInt8](repeating: 1, count: 32_000), count: 16)
    for _ in 0..<100 { try client.publish(payloads, stream: 2) }
    try client.receiveAcknowledgements(stream: 2)

    try client.sendSubscribe("t", stream: 1)
    client.subscriptions[1]!.keepsPayloads = false
    try client.receiveRecords(1, stream: 1)
    // So many replies wait that reading stops until they are written; then it must resume, whatever is still to be delivered.
    var questions: [UInt8] = []
    for token in UInt64(0)..<2000 { Ping(token: token).encode(stream: 0, into: &questions) }
    try client.send(raw: questions)
    try client.cancel(stream: 1)
    #expect(client.subscriptions[1]!.delivered < 1600)
  }
}
