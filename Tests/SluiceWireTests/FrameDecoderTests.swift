import SluiceWire
import TestSupport
import Testing

/// A frame that a decoder returned.
struct DecodedFrame: Equatable {
  var header: FrameHeader
  var body: [UInt8]
}

/// A ``FrameDecoder`` that returns copies.
final class FrameCollector: IncrementalDecoder {
  private var decoder: FrameDecoder

  init(maximumFrame: Int = 4096, openingAt side: Side? = nil) {
    decoder = FrameDecoder(maximumFrame: maximumFrame, openingAt: side)
  }

  var isBetweenOutputs: Bool { decoder.pendingBytes == 0 }

  func feed(_ chunk: UnsafeRawBufferPointer) throws -> [DecodedFrame] {
    var frames: [DecodedFrame] = []
    try decoder.decode(chunk) { header, body in
      frames.append(DecodedFrame(header: header, body: Array(body)))
      return true
    }
    return frames
  }
}

private func frame(_ type: UInt8, flags: UInt8 = 0, stream: UInt8 = 1, _ body: [UInt8]) -> [UInt8] {
  [UInt8(body.count & 0xFF), UInt8(body.count >> 8), 0, 0, type, flags, 0, 0, stream, 0, 0, 0] + body
}

@Suite("Frame decoder")
struct FrameDecoderTests {
  @Test("gives the same frames however the stream is cut")
  func cuts() throws {
    var random = SeededRandom.printed(for: "frame decoder")
    var examples = goldenFrames.map { golden in
      (
        bytes: golden.bytes(stream: 3),
        output: DecodedFrame(
          header: FrameHeader(
            length: UInt32(golden.body.count), type: FrameType(rawValue: golden.type), stream: 3),
          body: golden.body)
      )
    }
    // The decoder passes unknown frames on, and accepts a body as long as the limit.
    for (type, length) in [(0x13, 300), (0xFE, 0), (0x00, 1), (0x22, 1000)] {
      let body = random.bytes(length)
      let header = FrameHeader(
        length: UInt32(length), type: FrameType(rawValue: UInt8(type)), flags: 0xFF, stream: 9)
      examples.append(
        (frame(UInt8(type), flags: 0xFF, stream: 9, body), DecodedFrame(header: header, body: body)))
    }
    var verifier = DecoderVerifier(random: random) { FrameCollector(maximumFrame: 1000) }
    try verifier.verify(examples)
  }

  @Test("refuses a frame beyond the limit as soon as its header is there")
  func tooLarge() throws {
    let good = frame(0x16, [])
    var verifier = DecoderVerifier(random: SeededRandom(seed: 1)) { FrameCollector(maximumFrame: 4096) }
    let bad: [UInt8] = [0x01, 0x10, 0, 0, 0x22, 0, 0, 0, 1, 0, 0, 0]
    try verifier.verifyFailure(
      good + bad, after: [DecodedFrame(header: FrameHeader(length: 0, type: .cancel, stream: 1), body: [])]
    ) {
      $0 as? WireError
        == WireError(.frameTooLarge, "a PUBLISH frame of 4097 bytes is longer than the limit of 4096")
    }
    let worst: [UInt8] = [0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0, 0, 0, 1, 0, 0, 0]
    try verifier.verifyFailure(worst, after: []) {
      $0 as? WireError
        == WireError(
          .frameTooLarge, "a frame type 0xff frame of 4294967295 bytes is longer than the limit of 4096")
    }
  }

  @Test(
    "at the start of a connection, tells a peer that speaks something else",
    arguments: [
      (Side.broker, Array("GET / HTTP/1.1\r\nHost: broker\r\n\r\n".utf8), "GET / HTTP/1"),
      (.broker, Array("*1\r\n$4\r\nPING\r\n".utf8), #"*1\x0d\x0a$4\x0d\x0aPING"#),
      (
        .broker, [0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xFC, 0x03, 0x03, 0x41],
        #"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03A"#
      ),
      (.client, Array("HTTP/1.1 400 Bad Request\r\n".utf8), "HTTP/1.1 400"),
      (.client, Array("-ERR unknown command\r\n".utf8), "-ERR unknown"),
      // A frame, but not one to begin with.
      (
        .broker, frame(0x03, stream: 0, [1, 2, 3, 4, 5, 6, 7, 8]),
        #"\x08\x00\x00\x00\x03\x00\x00\x00\x00\x00\x00\x00"#
      ),
      (.client, frame(0x01, stream: 0, []), #"\x00\x00\x00\x00\x01\x00\x00\x00\x00\x00\x00\x00"#),
    ])
  func otherProtocols(_ side: Side, _ bytes: [UInt8], _ shown: String) throws {
    var verifier = DecoderVerifier(random: SeededRandom(seed: 2)) {
      FrameCollector(maximumFrame: Limits.handshakeFrame, openingAt: side)
    }
    try verifier.verifyFailure(bytes, after: []) {
      $0 as? WireError
        == WireError(
          .notSluice, "the peer doesn't speak the Sluice protocol: it began with \"\(shown)\"")
    }
  }

  @Test("only the first frame of a connection has to be one to begin with")
  func opening() throws {
    for (side, first) in [(Side.broker, UInt8(0x01)), (.client, 0x02), (.client, 0x06)] {
      let types = [first, 0x03, 0x22, 0xFF]
      let stream = types.flatMap { frame($0, [7]) }
      for chunks in [[stream], stream.map { [$0] }] {
        let collector = FrameCollector(openingAt: side)
        let frames = try chunks.flatMap { try $0.withUnsafeBytes { try collector.feed($0) } }
        #expect(frames.map(\.header.type.rawValue) == types)
      }
    }
  }

  @Test("hands out frames that lie whole in a chunk in place")
  func inPlace() throws {
    let chunk = frame(0x13, [1, 2, 3]) + frame(0x13, [4])
    try chunk.withUnsafeBytes { chunk in
      var decoder = FrameDecoder(maximumFrame: 100)
      var addresses: [UnsafeRawPointer] = []
      try decoder.decode(chunk) { _, body in
        addresses.append(body.baseAddress!)
        return true
      }
      #expect(addresses == [chunk.baseAddress! + 12, chunk.baseAddress! + 27])
      #expect(decoder.pendingBytes == 0)
    }
  }

  @Test("stops when it is told to, and says where", arguments: [0, 1, 12, 13])
  func stoppingPlace(_ firstChunk: Int) throws {
    let stream = frame(0x13, [1]) + frame(0x14, [2]) + [5, 5]
    var decoder = FrameDecoder(maximumFrame: 100)
    var rest = stream[...]
    var seen: [UInt8] = []
    var taken: [Int] = []
    while !rest.isEmpty {
      let chunk =
        seen.isEmpty && taken.isEmpty && firstChunk > 0 ? Array(rest.prefix(firstChunk)) : Array(rest)
      try chunk.withUnsafeBytes {
        try decoder.decode($0) { header, _ in
          seen.append(header.type.rawValue)
          return false
        }
      }
      taken.append(decoder.takenBytes)
      rest = rest.dropFirst(decoder.takenBytes)
    }
    #expect(seen == [0x13, 0x14])
    #expect(
      taken
        == (firstChunk == 0
          ? [13, 13, 2] : firstChunk == 13 ? [13, 13, 2] : [firstChunk, 13 - firstChunk, 13, 2]))
    #expect(decoder.pendingBytes == 2)
  }

  @Test("stops when it is told to, and drops the rest of the chunk", arguments: [0, 1, 12, 13])
  func stopping(_ firstChunk: Int) throws {
    let stream = frame(0x13, [1]) + frame(0x14, [2]) + [5, 5]
    var decoder = FrameDecoder(maximumFrame: 100)
    var seen: [UInt8] = []
    for chunk in [stream[..<firstChunk], stream[firstChunk...]] {
      try Array(chunk).withUnsafeBytes {
        try decoder.decode($0) { header, _ in
          seen.append(header.type.rawValue)
          return false
        }
      }
    }
    // With 13 bytes the first frame is a chunk of its own, and the second is the first of the other.
    #expect(seen == (firstChunk == 13 ? [0x13, 0x14] : [0x13]))
    #expect(decoder.pendingBytes == 0)
  }

  @Test("passes on what the caller throws, from either place", arguments: [0, 5])
  func throwing(_ firstChunk: Int) {
    let stream = frame(0x13, [1])
    var decoder = FrameDecoder(maximumFrame: 100)
    #expect(throws: WireError(.lagged, "enough")) {
      for chunk in [stream[..<firstChunk], stream[firstChunk...]] {
        try Array(chunk).withUnsafeBytes {
          try decoder.decode($0) { _, _ throws(WireError) in throw WireError(.lagged, "enough") }
        }
      }
    }
  }

  @Test("counts the bytes of a frame that isn't complete")
  func pending() throws {
    var decoder = FrameDecoder(maximumFrame: 100)
    for (index, byte) in frame(0x13, [1, 2]).enumerated() {
      #expect(decoder.pendingBytes == index)
      try [byte].withUnsafeBytes { try decoder.decode($0) { _, _ in true } }
    }
    #expect(decoder.pendingBytes == 0)
  }

  @Test("a raised limit counts from the next chunk on")
  func raisedLimit() throws {
    var decoder = FrameDecoder(maximumFrame: 1)
    let stream = frame(0x13, [1, 2])
    decoder.maximumFrame = 2
    var bodies: [[UInt8]] = []
    try stream.withUnsafeBytes {
      try decoder.decode($0) { _, body in
        bodies.append(Array(body))
        return true
      }
    }
    #expect(bodies == [[1, 2]])
  }
}
