import SluiceWebSocket
import TestSupport
import Testing

@Suite("Compressed messages")
struct CompressedMessageTests {
  private static let hello = DecodedEvent.message(isText: true, Array("Hello".utf8))

  /// A message of text in one frame, marked as compressed.
  private static func compressed(_ payload: String, fin: Bool = true) -> [UInt8] {
    frame(1, [UInt8](hex: payload), fin: fin, rsv: 4)
  }

  /// The examples of RFC 7692, section 7.2.3, except that with a kept window, and their events.
  private static let examples: [(String, [UInt8], [DecodedEvent])] = [
    ("one block", compressed("f248cdc9c90700"), [hello]),
    (
      "two fragments", compressed("f248cd", fin: false) + frame(0, [UInt8](hex: "c9c90700")), [hello]
    ),
    ("a block without compression", compressed("000500faff48656c6c6f00"), [hello]),
    ("a last block", compressed("f348cdc9c9070000"), [hello]),
    ("two blocks", compressed("f248050000 00ffffcac9c90700"), [hello]),
    ("no bytes", compressed("00"), [.message(isText: true, [])]),
    (
      "an empty fragment at the end", compressed("f248cdc9c90700", fin: false) + frame(0), [hello]
    ),
    (
      "a reference to what is in front of a last block", compressed("f348cdc9c90700 f200110000"),
      [.message(isText: true, Array("HelloHello".utf8))]
    ),
    (
      "a ping between fragments",
      compressed("f2", fin: false) + frame(9, "x") + frame(0, [UInt8](hex: "48cdc9c90700")),
      [.ping(Array("x".utf8)), hello]
    ),
    ("a message that isn't compressed", frame(1, "Hello"), [hello]),
  ]

  @Test("are read as in the standard's examples", arguments: examples)
  func example(_ name: String, _ bytes: [UInt8], _ events: [DecodedEvent]) throws {
    for room in [1, 2, 3, 5, 100] {
      #expect(try CompressedStream.all(in: [bytes], room: room) == events)
      for cut in 1..<bytes.count {
        let chunks = [Array(bytes[..<cut]), Array(bytes[cut...])]
        #expect(try CompressedStream.all(in: chunks, room: room) == events)
      }
    }
  }

  @Test("follow each other, each with a window of its own")
  func sequence() throws {
    let bytes = Self.examples.flatMap { $0.1 }
    let events = Self.examples.flatMap { $0.2 }
    #expect(try CompressedStream.all(in: [bytes], room: 1) == events)
    #expect(try CompressedStream.all(in: bytes.map { [$0] }) == events)
    // A reference to the message before.
    #expect(throws: WebSocketError.self) {
      try CompressedStream.all(in: [Self.compressed("f248cdc9c90700") + Self.compressed("f200110000")])
    }
  }

  @Test(
    "that can't be inflated are refused with code 1007",
    arguments: [
      ("a block of a kind that isn't defined", "07"),
      ("lengths of a block that don't agree", "000500fbff48656c6c6f00"),
      ("a reference to nothing", "f200110000"),
      ("nothing at all", ""),
      ("an end within a block", "f248cd"),
      ("an end within a block without compression", "000500faff4865"),
      ("an end behind a last block", "f348cdc9c90700"),
      ("the end of an empty block twice", "f248cdc9c907000000ffff"),
    ])
  func corrupt(_ name: String, _ payload: String) {
    let bytes = Self.compressed(payload)
    for chunks in [[bytes], bytes.map { [$0] }] {
      for room in [1, 100] {
        #expect(throws: WebSocketError.self, "\(name)") { try CompressedStream.all(in: chunks, room: room) }
        do {
          _ = try CompressedStream.all(in: chunks, room: room)
        } catch { #expect(error.code == .invalidPayload, "\(name)") }
      }
    }
  }

  @Test(
    "are marked by their first frame alone",
    arguments: [
      frame(9, "x", rsv: 4), frame(8, [3, 232], rsv: 4), frame(10, [], rsv: 4), frame(0, [0], rsv: 4),
      compressed("f248cd", fin: false) + frame(0, [UInt8](hex: "c9c90700"), rsv: 4),
      frame(1, [0], rsv: 2), frame(2, [0], rsv: 1), frame(2, [0], rsv: 6),
    ])
  func marks(_ bytes: [UInt8]) {
    for chunks in [[bytes], bytes.map { [$0] }] {
      #expect(throws: WebSocketError.self) { try CompressedStream.all(in: chunks) }
      do { _ = try CompressedStream.all(in: chunks) } catch { #expect(error.code == .protocolError) }
    }
  }

  @Test("are refused where compression wasn't agreed on")
  func off() {
    #expect(throws: WebSocketError.self) {
      try DecodedEvent.all(in: [Self.compressed("f248cdc9c90700")], at: .server)
    }
  }

  @Test("come back as they were, in whatever fragments, chunks and room")
  func roundTrip() throws {
    var random = SeededRandom.printed()
    for _ in 0..<200 {
      var (bytes, events): ([UInt8], [DecodedEvent]) = ([], [])
      for _ in 0..<4 {
        let message = Self.message(&random)
        let payload = deflated(message, windowBits: .random(in: 9...15, using: &random))
        Self.append(payload ?? message, isCompressed: payload != nil, &bytes, &events, &random)
        events.append(.message(isText: false, message))
      }
      var (chunks, rest): ([[UInt8]], ArraySlice<UInt8>) = ([], bytes[...])
      while !rest.isEmpty {
        chunks.append(Array(rest.prefix(.random(in: 1...3000, using: &random))))
        rest = rest.dropFirst(chunks.last?.count ?? 0)
      }
      let room = [1, 7, 100, 5000, 100_000].randomElement(using: &random)!
      #expect(try CompressedStream.all(in: chunks, room: room) == events)
    }
  }

  /// Some messages repeat themselves, others don't.
  private static func message(_ random: inout SeededRandom) -> [UInt8] {
    let words = (0..<20).map { _ in random.bytes(.random(in: 1...30, using: &random)) }
    let isRandom = Int.random(in: 0..<4, using: &random) == 0
    var message: [UInt8] = []
    let length = [0, 1, 100, 3000, 30_000].randomElement(using: &random)!
    while message.count < length {
      message += isRandom ? random.bytes(10) : words.randomElement(using: &random)!
    }
    return message
  }

  /// Appends a message in fragments with pings between.
  private static func append(
    _ payload: [UInt8], isCompressed: Bool, _ bytes: inout [UInt8], _ events: inout [DecodedEvent],
    _ random: inout SeededRandom
  ) {
    var rest = payload[...]
    var isFirst = true
    repeat {
      let part = rest.prefix(.random(in: 0...payload.count, using: &random))
      rest = rest.dropFirst(part.count)
      let rsv: UInt8 = isFirst && isCompressed ? 4 : 0
      bytes += frame(isFirst ? 2 : 0, Array(part), fin: rest.isEmpty, rsv: rsv, mask: random.bytes(4))
      isFirst = false
      if !rest.isEmpty {
        bytes += frame(9, [1])
        events.append(.ping([1]))
      }
    } while !rest.isEmpty
  }

  @Test("are made only where that makes them shorter")
  func shorter() throws {
    var random = SeededRandom.printed()
    for bits in 9...15 {
      #expect(deflated([], windowBits: bits) == nil)
      #expect(deflated(Array("Hello".utf8), windowBits: bits) == nil)
      #expect(deflated(random.bytes(10_000), windowBits: bits) == nil)
      let text = [UInt8](repeating: 7, count: 10_000)
      let payload = try #require(deflated(text, windowBits: bits))
      #expect(payload.count < 200)
      #expect(
        try CompressedStream.all(in: [frame(2, payload, rsv: 4)]) == [.message(isText: false, text)])
    }
  }
}
