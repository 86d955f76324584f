import SluiceWebSocket
import TestSupport
import Testing

@Suite("WebSocket decoder")
struct WebSocketDecoderTests {
  /// The examples of RFC 6455, section 5.7.
  @Test("reads and writes the frames of the standard's examples")
  func examples() throws {
    let masked = [UInt8](hex: "81 85 37fa213d 7f9f4d5158")
    #expect(try DecodedEvent.all(in: [masked], at: .server) == [.message(isText: true, Array("Hello".utf8))])
    let fragments = [UInt8](hex: "01 03 48656c 80 02 6c6f")
    #expect(
      try DecodedEvent.all(in: [fragments], at: .client) == [.message(isText: true, Array("Hello".utf8))])
    let pong = [UInt8](hex: "8a 85 37fa213d 7f9f4d5158")
    #expect(try DecodedEvent.all(in: [pong], at: .server) == [.pong(Array("Hello".utf8))])

    var written: [UInt8] = []
    Array("Hello".utf8).withUnsafeBytes { bytes in
      WebSocketEncoder.append(.text, bytes, mask: WebSocketMask((0x37, 0xFA, 0x21, 0x3D)), to: &written)
      WebSocketEncoder.append(.ping, bytes, to: &written)
    }
    #expect(written == masked + [UInt8](hex: "89 05 48656c6c6f"))
    written = []
    WebSocketEncoder.appendHead(.binary, length: 256, to: &written)
    WebSocketEncoder.appendHead(.binary, length: 65536, isFinal: false, to: &written)
    #expect(written == [UInt8](hex: "82 7e 0100 02 7f 0000000000010000"))
  }

  @Test("masks every length from every place in the key as the standard's formula")
  func masking() {
    var random = SeededRandom.printed()
    let key = random.bytes(4)
    for count in 0..<100 {
      let payload = random.bytes(count)
      let cut = Int.random(in: 0...count, using: &random)
      var mask = WebSocketMask((key[0], key[1], key[2], key[3]))
      var masked = payload
      masked.withUnsafeMutableBytes { bytes in
        mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: bytes[..<cut]))
        mask.apply(to: UnsafeMutableRawBufferPointer(rebasing: bytes[cut...]))
      }
      #expect(masked == payload.enumerated().map { $0.element ^ key[$0.offset % 4] })
    }
  }

  @Test(
    "refuses what RFC 6455 forbids, with the right code",
    arguments: [
      ("not masked", frame(2, [1], mask: nil), 1002),
      ("a length of 125 in 16 bits", [UInt8](hex: "82 fe 007d"), 1002),
      ("a length of 65535 in 64 bits", [UInt8](hex: "82 ff 000000000000ffff"), 1002),
      ("a length with the first bit set", [UInt8](hex: "82 ff 8000000000000000"), 1002),
      ("a frame beyond the limit", [UInt8](hex: "82 fe 03e9"), 1009),
      ("the largest frame", [UInt8](hex: "82 ff 7fffffffffffffff"), 1009),
      (
        "a message beyond the limit",
        frame(2, [UInt8](repeating: 0, count: 1000), fin: false)
          + frame(0, [UInt8](repeating: 0, count: 1000), fin: false) + frame(0, [1]), 1009
      ),
    ] as [(String, [UInt8], UInt16)])
  func refused(_ what: String, _ bytes: [UInt8], _ code: UInt16) {
    // The mask is part of the head, so an invalid length is detected after it.
    for chunks in [[bytes + [0, 0, 0, 0]], (bytes + [0, 0, 0, 0]).map { [$0] }] {
      #expect(throws: WebSocketError.self, "\(what)") {
        try DecodedEvent.all(in: chunks, at: .server, frame: 1000, message: 2000)
      }
      do {
        _ = try DecodedEvent.all(in: chunks, at: .server, frame: 1000, message: 2000)
      } catch { #expect((error as? WebSocketError)?.code.rawValue == code, "\(what)") }
    }
  }

  @Test("a client refuses a masked frame")
  func maskedByServer() {
    #expect(throws: WebSocketError.self) { try DecodedEvent.all(in: [frame(2, [1])], at: .client) }
  }

  @Test("finds the same events however the stream is cut, and holds no part of a message")
  func cuts() throws {
    var random = SeededRandom.printed()
    for _ in 0..<300 {
      let (stream, expected) = Self.stream(&random)
      #expect(try DecodedEvent.all(in: [stream], at: .server) == expected)
      #expect(try DecodedEvent.all(in: stream.map { [$0] }, at: .server) == expected)
      var chunks: [[UInt8]] = []
      var rest = stream[...]
      while !rest.isEmpty {
        let chunk = rest.prefix(.random(in: 0...60, using: &random))
        chunks.append(Array(chunk))
        rest = rest.dropFirst(chunk.count)
      }
      #expect(try DecodedEvent.all(in: chunks, at: .server) == expected)
    }
  }

  /// Random messages in random fragments, with control frames between.
  private static func stream(_ random: inout SeededRandom) -> ([UInt8], [DecodedEvent]) {
    var (bytes, events): ([UInt8], [DecodedEvent]) = ([], [])
    for _ in 0..<5 {
      let isText = Bool.random(using: &random)
      let length = [0, 1, 20, 125, 126, 300].randomElement(using: &random)!
      let scalars = (0..<length).map { _ in ["a", "µ", "€", "😀"].randomElement(using: &random)! }
      let payload = isText ? Array(scalars.joined().utf8) : random.bytes(length)
      var rest = payload[...]
      var isFirst = true
      repeat {
        let part = rest.prefix(.random(in: 0...200, using: &random))
        rest = rest.dropFirst(part.count)
        bytes += frame(
          isFirst ? (isText ? 1 : 2) : 0, Array(part), fin: rest.isEmpty, mask: random.bytes(4))
        isFirst = false
        if !rest.isEmpty, Bool.random(using: &random) {
          let ping = random.bytes(.random(in: 0...125, using: &random))
          bytes += frame(9, ping)
          events.append(.ping(ping))
        }
      } while !rest.isEmpty
      events.append(.message(isText: isText, payload))
    }
    return (bytes, events)
  }
}
