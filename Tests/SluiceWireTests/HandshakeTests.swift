import SluiceWire
import TestSupport
import Testing

private func header(of frame: some Frame, stream: UInt32 = 0, flags: UInt8 = 0) -> FrameHeader {
  let bytes = frame.encoded(stream: stream)
  var header = bytes.withUnsafeBytes { FrameHeader(at: $0.baseAddress!) }
  header.flags = flags
  return header
}

private func body(of frame: some Frame) -> [UInt8] {
  Array(frame.encoded(stream: 0)[FrameHeader.size...])
}

@Suite("Broker's handshake")
struct ServerHandshakeTests {
  private let handshake = ServerHandshake(
    offer: Welcome(
      features: 0b0110, maximumFrame: 1 << 21, maximumRecord: 1 << 20, maximumStreams: 100, keepalive: 30_000,
      broker: 7,
      software: "test"))

  private func receive(
    _ frame: some Frame, stream: UInt32 = 0, flags: UInt8 = 0
  ) throws(WireError) -> ServerHandshake.Agreement {
    let body = body(of: frame)
    let result = body.withUnsafeBytes { bytes in
      Result<ServerHandshake.Agreement, WireError> { () throws(WireError) in
        try handshake.receive(header(of: frame, stream: stream, flags: flags), bytes)
      }
    }
    return try result.get()
  }

  @Test("settles version, features and keepalive, and offers the rest as it is")
  func agreement() throws {
    let agreement = try receive(
      Hello(versions: 1...9, features: 0b0011, maximumFrame: 1 << 17, keepalive: 5000, name: "c"))
    #expect(
      agreement.welcome
        == Welcome(
          version: 1, features: 0b0010, maximumFrame: 1 << 21, maximumRecord: 1 << 20, maximumStreams: 100,
          keepalive: 5000, broker: 7, software: "test"))
    #expect(agreement.clientMaximumFrame == 1 << 17)
    #expect(agreement.clientName == "c")
  }

  @Test(
    "the shorter keepalive counts, 0 leaves it to the other side, and none is below 100 ms",
    arguments: [
      (0, 0, 0), (0, 30_000, 30_000), (5000, 0, 5000), (5000, 30_000, 5000), (60_000, 30_000, 30_000),
      (1, 30_000, 100), (99, 0, 100), (100, 30_000, 100), (0, 50, 100), (.max, 30_000, 30_000),
    ])
  func keepalive(_ wanted: UInt32, _ offered: UInt32, _ settled: UInt32) throws {
    var offer = handshake.offer
    offer.keepalive = offered
    let hello = Hello(maximumFrame: 1 << 16, keepalive: wanted, name: "")
    let agreement = try body(of: hello).withUnsafeBytes {
      try ServerHandshake(offer: offer).receive(header(of: hello), $0)
    }
    #expect(agreement.welcome.keepalive == settled)
  }

  @Test("takes the client's frame limit, as far as an Int32 goes")
  func frameLimit() throws {
    for (limit, taken) in [(UInt32(65_536), 65_536), (.max, Int(Int32.max))] {
      let agreement = try receive(Hello(maximumFrame: limit, keepalive: 0, name: ""))
      #expect(agreement.clientMaximumFrame == taken)
    }
  }

  @Test("cuts a client's name that came longer than it may be")
  func longName() throws {
    let hello = Hello(maximumFrame: 1 << 16, keepalive: 0, name: "")
    var body = body(of: hello)
    // Before the credentials, which have five bytes.
    let length = body.count - 7
    body.replaceSubrange(length..<length + 2, with: [0x2C, 0x01] + [UInt8](repeating: 0x6E, count: 300))
    let agreement = try body.withUnsafeBytes {
      try handshake.receive(FrameHeader(length: UInt32(body.count), type: .hello, stream: 0), $0)
    }
    #expect(agreement.clientName == String(repeating: "n", count: 255))
  }

  @Test("refuses what it can't agree with")
  func refusals() {
    #expect(throws: WireError(.versionMismatch, "the client speaks versions 2 to 3, this broker 1 to 1")) {
      try receive(Hello(versions: 2...3, maximumFrame: 1 << 16, keepalive: 0, name: ""))
    }
    #expect(throws: WireError(.versionMismatch, "the client speaks versions 0 to 0, this broker 1 to 1")) {
      try receive(Hello(versions: 0...0, maximumFrame: 1 << 16, keepalive: 0, name: ""))
    }
    #expect(
      throws: WireError(.malformedFrame, "HELLO limits frames to 65535 bytes; at least 65536 must be taken")
    ) {
      try receive(Hello(maximumFrame: 65_535, keepalive: 0, name: ""))
    }
    #expect(
      throws: WireError(
        .notSluice, "the first frame must be HELLO: the peer doesn't speak the Sluice protocol")
    ) {
      try receive(Ping(token: 0))
    }
    #expect(throws: WireError(.invalidStream, "HELLO belongs on stream 0, not 1")) {
      try receive(Hello(maximumFrame: 1 << 16, keepalive: 0, name: ""), stream: 1)
    }
    #expect(
      throws: WireError(
        .unsupportedFrame, "HELLO has flags 0x1, of which the low four bits must be understood and aren't")
    ) {
      try receive(Hello(maximumFrame: 1 << 16, keepalive: 0, name: ""), flags: 1)
    }
    #expect(throws: WireError(.malformedFrame, "HELLO magic is cut short: it needs 4 bytes where 0 are left"))
    {
      try handshake.receive(
        FrameHeader(length: 0, type: .hello, stream: 0), UnsafeRawBufferPointer(start: nil, count: 0))
    }
  }
}

@Suite("Client's handshake")
struct ClientHandshakeTests {
  private let handshake = ClientHandshake(
    hello: Hello(versions: 1...2, features: 0b0011, maximumFrame: 1 << 20, keepalive: 0, name: ""))

  private func welcome(
    version: UInt16 = 1, features: UInt64 = 0, maximumFrame: UInt32 = 1 << 20, maximumStreams: UInt32 = 10
  ) -> Welcome {
    Welcome(
      version: version, features: features, maximumFrame: maximumFrame, maximumRecord: 1,
      maximumStreams: maximumStreams,
      keepalive: 0, broker: 1, software: "")
  }

  private func receive(_ frame: some Frame, stream: UInt32 = 0) throws -> Welcome {
    try body(of: frame).withUnsafeBytes { try handshake.receive(header(of: frame, stream: stream), $0) }
  }

  @Test("takes a WELCOME that answers its HELLO")
  func agreement() throws {
    for welcome in [
      welcome(), welcome(version: 2, features: 0b0010), welcome(maximumFrame: 65_536, maximumStreams: 1),
    ] {
      #expect(try receive(welcome) == welcome)
    }
  }

  @Test("passes on the broker's refusal")
  func refusal() {
    #expect(throws: WireError(.tooManyConnections, "full")) {
      try receive(Fault(code: .tooManyConnections, message: "full"))
    }
  }

  @Test("refuses an answer that isn't one to its HELLO")
  func contradictions() {
    #expect(throws: WireError(.versionMismatch, "the broker chose version 3, this client speaks 1 to 2")) {
      try receive(welcome(version: 3))
    }
    #expect(throws: WireError(.malformedFrame, "WELCOME grants features that HELLO didn't name")) {
      try receive(welcome(features: 0b0100))
    }
    let limits = "at least 65536 and 1 must be taken"
    #expect(
      throws: WireError(.malformedFrame, "WELCOME limits frames to 65535 bytes and streams to 10; \(limits)")
    ) {
      try receive(welcome(maximumFrame: 65_535))
    }
    #expect(
      throws: WireError(.malformedFrame, "WELCOME limits frames to 1048576 bytes and streams to 0; \(limits)")
    ) {
      try receive(welcome(maximumStreams: 0))
    }
    #expect(throws: WireError(.invalidStream, "WELCOME belongs on stream 0, not 1")) {
      try receive(welcome(), stream: 1)
    }
    for frame in [Ping(token: 0) as any Frame, Hello(maximumFrame: 0, keepalive: 0, name: "")] {
      #expect(
        throws: WireError(
          .notSluice, "the broker must answer with WELCOME: the peer doesn't speak the Sluice protocol")
      ) {
        try receive(frame)
      }
    }
  }

  @Test("an ERROR on a stream is no answer to HELLO")
  func errorOnStream() {
    let error = #expect(throws: WireError.self) { try receive(Fault(code: .lagged, message: ""), stream: 3) }
    #expect(error?.code == .notSluice)
  }
}
