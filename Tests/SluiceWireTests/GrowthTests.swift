import SluiceWire
import TestSupport
import Testing

/// How structures grow: a reader skips fields that a later version has added to an element, and rejects an element that is too short.
@Suite("Growth of structures")
struct GrowthTests {
  private static let position = TopicPosition(topic: "t", epoch: 1, nextOffset: 2)
  private static let filter = RecordFilter([.init(.key, .equals([1, 2]))])
  private static let summary = TopicSummary(
    topic: "t", epoch: 1, firstOffset: 2, nextOffset: 3, bytes: 4, ending: .finished, subscriptions: 1,
    publications: 1)
  private static let cursor = CursorInfo(
    name: "c", kind: .group, epoch: 1, nextOffset: 2, end: 3, members: 4, outstanding: 5, idle: 6,
    bytes: 7, age: 8, redeliveries: 9, deadLetters: 10, abandoned: 11, missed: 12, delayed: 13,
    nextRetry: 14)
  private static let subscription = TopicInfo.Subscription(
    connection: 1, client: "c", stream: 2, state: .live, nextOffset: 3, granted: 4, sent: 5, limit: .buffer,
    lastMinute: 1, lastFiveMinutes: 2, consumer: "g", slowness: .client, slow: 6, age: 7)
  private static let hold = TopicInfo.Hold(
    reason: .memory, milliseconds: 3, lastMinute: 4, lastFiveMinutes: 5)
  private static let consumer = TopicInfo.Consumer(
    name: "c", kind: .group, nextOffset: 1, lag: 2, bytes: 3, age: 4, members: 5, unacknowledged: 6,
    redeliveries: 7, deadLetters: 8, abandoned: 9, missed: 10, idle: 11, delayed: 12, nextRetry: 13)
  private static let publication = TopicInfo.Publication(
    connection: 1, client: "c", stream: 2, granted: 3, received: 4)

  private static let connection = ConnectionInfo(
    connection: 1, client: "c", identity: "i", peer: "p", security: "s", age: 2, subscriptions: 3,
    publications: 4, buffered: 5, received: 6, sent: 7)

  /// Every structure of the protocol, with `extra` bytes after its last field.
  private static func bodies(extra: Int) -> [(name: String, frame: any Frame, body: [UInt8])] {
    let more = [UInt8](repeating: 0xEE, count: max(extra, 0))
    func structure(_ fields: [UInt8]) -> [UInt8] {
      let fields = extra < 0 ? Array(fields.dropLast(-extra)) : fields + more
      return withUnsafeBytes(of: UInt32(fields.count).littleEndian) { Array($0) } + fields
    }
    func one(_ element: [UInt8]) -> [UInt8] { [1, 0, 0, 0] + structure(element) }
    func string(_ text: String) -> [UInt8] { [UInt8(text.utf8.count), 0] + Array(text.utf8) }
    func number(_ value: UInt64) -> [UInt8] { withUnsafeBytes(of: value.littleEndian) { Array($0) } }
    func word(_ value: UInt32) -> [UInt8] { withUnsafeBytes(of: value.littleEndian) { Array($0) } }

    let position = string("t") + number(1) + number(2)
    let filter = structure(one([0, 1] + string("") + [2, 0, 1, 2]))
    let none = structure(word(0))
    let setting = [UInt8](hex: "0500") + number(1)
    let summary =
      string("t") + number(1) + number(2) + number(3) + number(4) + [1] + word(0) + string("") + word(1)
      + word(1)
      + number(1) + [0]
    let cursor =
      string("c") + [1] + number(1) + number(2) + number(3) + word(4)
      + (5...14).flatMap { number($0) }
    let subscription =
      number(1) + string("c") + word(2) + [1] + number(3) + number(4) + number(5) + number(0)
      + [2, 1, 0, 2, 0] + string("g") + [2] + number(6) + number(7) + string("")
    let publication =
      number(1) + string("c") + word(2) + number(3) + number(4) + number(0) + [0]
      + string("")
    let dropped = (0..<8).flatMap { _ in number(0) }
    let storage = [0] + number(0) + number(0) + number(.max)
    let rest = [UInt8](repeating: 0, count: 9)
    let hold = [5] + number(3) + [4, 0, 5, 0]
    let consumer =
      string("c") + [1] + (1...4).flatMap { number($0) } + word(5) + (6...13).flatMap { number($0) }
    let connection =
      number(1) + ["c", "i", "p", "s"].flatMap { string($0) } + number(2) + word(3) + word(4)
      + (5...7).flatMap { number($0) }
    let ending =
      structure(dropped) + structure(storage) + rest + one(hold) + word(12) + one(consumer)
    var settings = TopicSettings()
    settings.flow = .lossless
    let empty = word(0)
    return [
      (
        "SUBSCRIBE filter", Subscribe(topic: "t", grantedThrough: 1, filter: Self.filter),
        string("t") + [0, 0, 0, 0] + number(0) + number(0) + number(1) + string("") + filter
          + empty
      ),
      (
        "SUBSCRIBE_PATTERN positions",
        SubscribePattern(pattern: "*", grantedThrough: 1, positions: [Self.position]),
        string("*") + [0, 0, 0, 0] + number(0) + number(1) + none + one(position)
      ),
      ("POSITIONS", Positions([Self.position], more: false), [0] + one(position)),
      ("TOPIC_CREATE settings", TopicCreate(topic: "t", settings: settings), string("t") + one(setting)),
      ("TOPICS", Topics(topics: [Self.summary], more: false), [0] + one(summary)),
      ("CURSORS", Cursors(cursors: [Self.cursor], more: false), [0] + one(cursor)),
      ("CONNECTIONS", Connections(connections: [Self.connection], more: false), [0] + one(connection)),
      (
        "TOPIC_INFO",
        TopicInfo(
          summary: Self.summary, settings: settings, subscriptions: [Self.subscription],
          publications: [Self.publication], holds: [Self.hold], consumerCount: 12,
          consumers: [Self.consumer]),
        structure(summary) + one(setting) + one(subscription) + one(publication) + ending
      ),
      (
        "TOPIC_INFO without lists",
        TopicInfo(
          summary: Self.summary, settings: TopicSettings(), subscriptions: [], publications: [],
          holds: [Self.hold], consumerCount: 12, consumers: [Self.consumer]),
        structure(summary) + empty + empty + empty + ending
      ),
    ]
  }

  private func check<F: Frame>(_ frame: F, _ body: [UInt8], _ name: String) throws {
    #expect(try decode(body, like: frame) == frame, "\(name)")
  }

  @Test("elements of the lengths that this page has are what the encoder makes")
  func encoding() throws {
    for (name, frame, body) in Self.bodies(extra: 0) {
      #expect(Array(frame.encoded(stream: 1)[FrameHeader.size...]).hex == body.hex, "\(name)")
    }
  }

  @Test("a reader skips what a later version has added at the end of an element", arguments: [1, 8, 1000])
  func longer(_ extra: Int) throws {
    for (name, frame, body) in Self.bodies(extra: extra) { try check(frame, body, name) }
  }

  @Test("an element that is shorter than its fields is malformed")
  func shorter() {
    for (name, frame, body) in Self.bodies(extra: -1) {
      #expect(decodingError(body, like: frame)?.code == .malformedFrame, "\(name)")
    }
  }

  @Test("fields that earlier versions don't have at the end of an element have their values for absence")
  func absent() throws {
    let body = Array(
      Connections(connections: [Self.connection], more: false).encoded(stream: 1)[FrameHeader.size...])
    // The part of the element that is present, after the flag, the count and the size.
    func cut(to size: Int) -> [UInt8] {
      Array(body[..<5]) + withUnsafeBytes(of: UInt32(size).littleEndian) { Array($0) }
        + body[9..<(9 + size)]
    }
    let whole = body.count - 9
    let like = Connections(connections: [], more: false)
    for (missing, received) in [(16, UInt64(0)), (8, 6)] {
      let found = try #require(try decode(cut(to: whole - missing), like: like).connections.first)
      #expect(found.buffered == 5 && found.received == received && found.sent == 0)
    }
    for missing in [1, 7, 9, 15, 17] {
      #expect(decodingError(cut(to: whole - missing), like: like)?.code == .malformedFrame, "\(missing)")
    }
  }
}
