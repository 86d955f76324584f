import SluiceWire
import TestSupport
import Testing

@Suite("Frames in error")
struct FrameErrorTests {
  private struct Case: Sendable {
    let example: any Frame
    let body: [UInt8]
    let error: WireError

    init(_ example: any Frame, _ body: String, _ code: ErrorCode, _ message: String) {
      self.example = example
      self.body = [UInt8](hex: body)
      error = WireError(code, message)
    }
  }

  private static let hello = Hello(maximumFrame: 0, keepalive: 0, name: "")
  private static let welcome = Welcome(
    maximumFrame: 0, maximumRecord: 0, maximumStreams: 0, keepalive: 0, broker: 0, software: "")
  private static let subscribe = Subscribe(topic: "", grantedThrough: 0)
  private static let topics = Topics(topics: [], more: false)

  private static let cases: [Case] = [
    // Cut short: the error names the field, its size, and the available bytes.
    Case(
      Ping(token: 0), "01020304", .malformedFrame,
      "PING token is cut short: it needs 8 bytes where 4 are left"),
    Case(Ping(token: 0), "", .malformedFrame, "PING token is cut short: it needs 8 bytes where 0 are left"),
    Case(
      TopicShow(topic: ""), "0500 616263", .malformedFrame,
      "TOPIC_SHOW topic is cut short: it needs 5 bytes where 3 are left"),
    Case(
      TopicShow(topic: ""), "ffff", .malformedFrame,
      "TOPIC_SHOW topic is cut short: it needs 65535 bytes where 0 are left"),
    // Strings
    Case(TopicShow(topic: ""), "0200 c328", .malformedFrame, "TOPIC_SHOW topic isn't valid UTF-8"),
    Case(TopicDelete(topic: ""), "0300 eda080", .malformedFrame, "TOPIC_DELETE topic isn't valid UTF-8"),
    Case(
      Fault(code: .lagged, message: ""), "01000000 0100 ff", .malformedFrame,
      "ERROR message isn't valid UTF-8"),
    // The handshake
    Case(
      hello, "47455420 2f204854 54502f31 2e310d0a 486f7374 3a20", .notSluice,
      "the peer doesn't speak the Sluice protocol"),
    Case(
      welcome, "48545450 2f312e31 20343030 20426164 20526571 75657374", .notSluice,
      "the peer doesn't speak the Sluice protocol"),
    Case(
      hello, "534c4345 0300 0200", .malformedFrame, "HELLO names version 3 as lowest and 2 as highest"),
    // Values that aren't defined
    Case(
      Authenticate(.none), "04 0000 0000", .unsupported,
      "credentials are of method 4; 0 to 3 are defined"),
    Case(
      subscribe,
      "0100 61 06 00 0000 0000000000000000 0000000000000000 0000000000000000 0000 04000000 00000000 00000000",
      .unsupported,
      "SUBSCRIBE names start position 6; 0 to 5 are defined"),
    Case(
      subscribe,
      "0100 61 00 03 0000 0000000000000000 0000000000000000 0000000000000000 0000 04000000 00000000 00000000",
      .unsupported,
      "SUBSCRIBE names lag policy 3; 0 to 2 are defined"),
    Case(
      subscribe,
      "0100 61 00 00 0200 0000000000000000 0000000000000000 0000000000000000 0000 04000000 00000000 00000000",
      .unsupported, "SUBSCRIBE says 2 for a topic that is missing; 0 and 1 are defined"),
    // Filters: the error names the undefined value, and the rest of the frame is read first.
    Case(
      subscribe,
      "0100 61 00 00 0000 0000000000000000 0000000000000000 0000000000000000 0000 0e000000 01000000 06000000 02 00 0000 0000",
      .unsupported, "condition 1 of the filter is about 2; 0, the key, and 1, a header, are defined"),
    Case(
      subscribe,
      """
      0100 61 00 00 0000 0000000000000000 0000000000000000 0000000000000000 0000
      19000000 02000000 06000000 00 00 0000 0000 07000000 01 03 0100 68 0000
      """, .unsupported,
      "condition 2 of the filter is test 3; 0, existence, 1, equality, and 2, prefix, are defined"),
    Case(
      subscribe,
      "0100 61 00 00 0000 0000000000000000 0000000000000000 0000000000000000 0000 0f040000 01000000 07040000 00 01 0000 0104"
        + String(repeating: "00", count: 1025), .limitReached,
      "condition 1 of the filter has a text of 1025 bytes; the limit is 1024"),
    Case(
      subscribe,
      "0100 61 00 00 0000 0000000000000000 0000000000000000 0000000000000000 0000 ae000000 11000000"
        + String(repeating: "06000000 00 00 0000 0000", count: 17), .limitReached,
      "the filter has 17 conditions; the limit is 16"),
    // Groups
    Case(
      JoinGroup(topic: "", group: "", grantedThrough: 0),
      "0100 74 0100 67 00 02 00 00 0000000000000000 00000000 00000000 0000 0900000000000000 04000000 00000000",
      .unsupported,
      "JOIN names acknowledgement 2; 0 and 1 are defined"),
    Case(
      JoinGroup(topic: "", group: "", grantedThrough: 0),
      "0100 74 0100 67 00 00 02 00 0000000000000000 00000000 00000000 0000 0900000000000000 04000000 00000000",
      .unsupported,
      "JOIN names order 2; 0 and 1 are defined"),
    Case(
      JoinGroup(topic: "", group: "", grantedThrough: 0),
      "0100 74 0100 67 00 00 00 02 0000000000000000 00000000 00000000 0000 0900000000000000 04000000 00000000",
      .unsupported,
      "JOIN says 2 for a topic that is missing; 0 and 1 are defined"),
    Case(
      Settle(.acknowledge, delivery: 0, firstOffset: 0, count: 0),
      "04 000000 01000000 0000000000000000 00000000",
      .unsupported, "SETTLE names verdict 4; 0 to 3 are defined"),
    Case(
      Settle(.acknowledge, delivery: 0, firstOffset: 0, count: 0),
      "00 000000 01000000 ffffffffffffffff 01000000",
      .malformedFrame, "SETTLE is about 1 records from offset 18446744073709551615"),
    Case(
      Cursors(cursors: [], more: false),
      """
      00 01000000 30000000 0100 63 02 0000000000000000 0000000000000000 0000000000000000 00000000 0000000000000000
      0000000000000000
      """, .malformedFrame, "a cursor has kind 2; 0 and 1 are defined"),
    Case(
      PublishOpen(topic: "", acknowledgement: .none),
      "0100 61 03 000000 0000000000000000 0000000000000000 00000000",
      .unsupported, "PUBLISH_OPEN names acknowledgement 3; 0 to 2 are defined"),
    Case(
      PublishOpen(topic: "", acknowledgement: .none),
      "0100 61 01 000000 0000000000000000 0100000000000040 00000000",
      .unsupported, "PUBLISH_OPEN begins with sequence 4611686018427387905; 2^62 is the largest"),
    Case(
      PublishOpen(topic: "", acknowledgement: .none),
      "0100 61 00 03 0000 0000000000000000 0000000000000000 00000000",
      .unsupported,
      "PUBLISH_OPEN names role 3; 0 to 2 are defined"),
    Case(
      Complete(.finished), "02 000000 00000000 0000", .malformedFrame,
      "COMPLETE names kind 2; 0 and 1 are defined"),
    Case(
      TopicCreate(topic: "", settings: TopicSettings()), "0100 61 01000000 02000000 fa00", .invalidSetting,
      "topic setting 250 isn't known to this version of the broker"),
    Case(
      TopicCreate(topic: "", settings: TopicSettings()), "0100 61 01000000 0a000000 0500 0300000000000000",
      .invalidSetting,
      "topic setting 5, flow, can't be 3"),
    Case(
      TopicCreate(topic: "", settings: TopicSettings()), "0100 61 01000000 0a000000 0600 0000000001000000",
      .invalidSetting,
      "topic setting 6, connect, can't be 4294967296"),
    Case(
      TopicCreate(topic: "", settings: TopicSettings()), "0100 61 01000000 0a000000 0a00 0001000000000000",
      .invalidSetting,
      "topic setting 10, lag, can't be 256"),
    Case(
      TopicCreate(topic: "", settings: TopicSettings()), "0100 61 01000000 0a000000 0b00 0200000000000000",
      .invalidSetting,
      "topic setting 11, compact, can't be 2"),
    Case(
      topics,
      """
      00 01000000 32000000 0100 78 0000000000000000 0000000000000000 0000000000000000 0000000000000000
      03 00000000 0000 00000000 00000000
      """, .malformedFrame, "topic state is 3; 0 to 2 are defined"),
    // Lists whose count is much too large: no memory is reserved for them.
    Case(
      topics, "00 ffffffff", .malformedFrame, "topic summary is cut short: it needs 4 bytes where 0 are left"),
  ]

  @Test("each has its code and its message", arguments: cases.indices)
  func errors(_ index: Int) {
    let expected = Self.cases[index]
    #expect(decodingError(expected.body, like: expected.example) == expected.error)
  }

  @Test("reserved bytes are ignored")
  func reservedBytes() throws {
    #expect(
      try decode(
        [UInt8](
          hex:
            "0100 61 00 00 00fe 0000000000000000 0000000000000000 0000000000000000 0000 04000000 00000000 00000000"
        ),
        like: Self.subscribe)
        == Subscribe(topic: "a", grantedThrough: 0))
    #expect(
      try decode(
        [UInt8](hex: "0100 61 01 00 ffff 0000000000000000 0000000000000000 00000000"),
        like: PublishOpen(topic: "", acknowledgement: .none))
        == PublishOpen(topic: "a", acknowledgement: .received))
    #expect(
      try decode([UInt8](hex: "00 ffffff 00000000 0000"), like: Complete(.finished)).ending == .finished)
    var welcome = Self.welcome.encoded(stream: 0)
    welcome[FrameHeader.size + 6] = 0xFF
    #expect(try decode(Array(welcome[FrameHeader.size...]), like: Self.welcome) == Self.welcome)
  }

  @Test("a finished topic's code and message mean nothing")
  func finishedWithMessage() throws {
    #expect(
      try decode([UInt8](hex: "00 000000 05000000 0100 78"), like: Complete(.finished)).ending == .finished)
  }

  @Test("a setting that is named twice counts with its last value")
  func repeatedSetting() throws {
    let body = [UInt8](hex: "0100 61 02000000 0a000000 0100 0500000000000000 0a000000 0100 0600000000000000")
    #expect(
      try decode(body, like: TopicCreate(topic: "", settings: TopicSettings())).settings
        == TopicSettings(replayRecords: 6))
  }

  @Test("a client passes over settings and states that a newer broker tells of")
  func newerTopicInfo() throws {
    let summary = TopicSummary(
      topic: "t", epoch: 1, firstOffset: 0, nextOffset: 0, bytes: 0, ending: nil, subscriptions: 0,
      publications: 0)
    let info = TopicInfo(
      summary: summary, settings: TopicSettings(replayRecords: 7), subscriptions: [], publications: [])
    var body = Array(info.encoded(stream: 1)[FrameHeader.size...])
    // After the settings: two counts, the dropped records, the store's status, flags, the time without producers, a count, the number of consumers,
    // and another count.
    let settings = body.count - 8 - 68 - 29 - 9 - 4 - 4 - 4 - 18
    #expect(body[settings] == 1)
    body[settings] = 2
    body.insert(contentsOf: [UInt8](hex: "03000000 2a00 09"), at: settings + 4)
    #expect(try decode(body, like: info) == info)

    let state = TopicInfo.Subscription.State(rawValue: 9)
    let shown = TopicInfo(
      summary: summary, settings: TopicSettings(),
      subscriptions: [
        .init(connection: 1, client: "", stream: 1, state: state, nextOffset: 0, granted: 0, sent: 0)
      ], publications: [])
    #expect(try decode(Array(shown.encoded(stream: 1)[FrameHeader.size...]), like: shown) == shown)
  }

  @Test("texts are cut to their limits, between two scalars")
  func longTexts() throws {
    func message(_ message: String) throws -> String {
      let bytes = Fault(code: .lagged, message: message).encoded(stream: 1)
      return try decode(Array(bytes[FrameHeader.size...]), like: Fault(code: .lagged, message: "")).message
    }
    #expect(try message(String(repeating: "x", count: 1024)) == String(repeating: "x", count: 1024))
    #expect(try message(String(repeating: "x", count: 1025)) == String(repeating: "x", count: 1024))
    #expect(try message("x" + String(repeating: "é", count: 600)) == "x" + String(repeating: "é", count: 511))
    #expect(
      try message("xy" + String(repeating: "🙂", count: 300)) == "xy" + String(repeating: "🙂", count: 255))
    // One character of many scalars, cut in its middle.
    let zalgo = "a" + String(repeating: "\u{301}", count: 1000)
    #expect(try message(zalgo) == "a" + String(repeating: "\u{301}", count: 511))

    let hello = Hello(maximumFrame: 1, keepalive: 1, name: String(repeating: "n", count: 70_000))
    let name = try decode(Array(hello.encoded(stream: 0)[FrameHeader.size...]), like: hello).name
    #expect(name == String(repeating: "n", count: 255))
    let topic = TopicShow(topic: String(repeating: "t", count: 65_536))
    #expect(
      try decode(Array(topic.encoded(stream: 1)[FrameHeader.size...]), like: topic).topic
        == String(repeating: "t", count: 65_535))
  }

  @Test("the largest answers fit the smallest frame limit")
  func largestAnswers() {
    let name = String(repeating: "n", count: 2000)
    let summary = TopicSummary(
      topic: String(repeating: "t", count: TopicName.maximumLength), epoch: 0, firstOffset: 0, nextOffset: 0,
      bytes: 0,
      ending: .failure(code: .producerFailure, message: name), subscriptions: 0, publications: 0)
    let page = Topics(topics: Array(repeating: summary, count: 40), more: true)
    #expect(page.encoded(stream: 1).count - FrameHeader.size <= Limits.smallestFrame)
    let subscription = TopicInfo.Subscription(
      connection: 0, client: name, stream: 0, state: .live, nextOffset: 0, granted: 0, sent: 0)
    let publication = TopicInfo.Publication(connection: 0, client: name, stream: 0, granted: 0, received: 0)
    let info = TopicInfo(
      summary: summary, settings: TopicSettings(replayRecords: 0, replayBytes: 0, replayAge: 0),
      subscriptions: Array(repeating: subscription, count: 100),
      publications: Array(repeating: publication, count: 100))
    #expect(info.encoded(stream: 1).count - FrameHeader.size <= Limits.smallestFrame)
  }
}

@Suite("Error codes")
struct ErrorCodeTests {
  private static let codes: [(code: ErrorCode, number: UInt32, name: String)] = [
    (.notSluice, 1, "not-sluice"), (.versionMismatch, 2, "version-mismatch"),
    (.malformedFrame, 3, "malformed-frame"), (.frameTooLarge, 4, "frame-too-large"),
    (.unsupportedFrame, 5, "unsupported-frame"), (.unexpectedFrame, 6, "unexpected-frame"),
    (.keepaliveTimeout, 7, "keepalive-timeout"), (.shuttingDown, 8, "shutting-down"),
    (.tooManyConnections, 9, "too-many-connections"), (.handshakeTimeout, 10, "handshake-timeout"),
    (.invalidStream, 11, "invalid-stream"),
    (.invalidTopic, 101, "invalid-topic"), (.unknownTopic, 102, "unknown-topic"),
    (.topicEnded, 103, "topic-ended"), (.topicDeleted, 104, "topic-deleted"),
    (.topicExists, 105, "topic-exists"), (.recordTooLarge, 106, "record-too-large"),
    (.malformedBatch, 107, "malformed-batch"), (.demandExceeded, 108, "demand-exceeded"),
    (.invalidDemand, 109, "invalid-demand"), (.lagged, 110, "lagged"), (.epochChanged, 111, "epoch-changed"),
    (.invalidSetting, 112, "invalid-setting"), (.limitReached, 113, "limit-reached"),
    (.unsupported, 114, "unsupported"), (.producerFailure, 200, "producer-failure"),
  ]

  @Test("each keeps its number, its name and its scope")
  func table() {
    for (code, number, name) in Self.codes {
      #expect(code.rawValue == number)
      #expect(code.description == name)
      #expect(code.endsConnection == (number < 100))
    }
    #expect(Set(Self.codes.map(\.number)).count == Self.codes.count)
  }

  @Test("one that isn't known is told by its number")
  func unknown() {
    #expect(ErrorCode(rawValue: 4711).description == "error 4711")
    #expect(WireError(.lagged, "too late").description == "too late (lagged)")
  }
}
