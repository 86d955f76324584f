import Foundation
import SluiceWire
import TestSupport
import Testing

/// The published specification, checked against the codec.
@Suite("Specification")
struct SpecificationTests {
  private let lines: [String]

  init() throws {
    let page = URL(filePath: #filePath).appending(
      path: "../../../Sources/SluiceWire/SluiceWire.docc/Protocol.md")
    lines = try String(contentsOf: page.standardized, encoding: .utf8)
      .split(separator: "\n", omittingEmptySubsequences: false).map(String.init)
  }

  /// The table rows with this number of cells for which `isWanted` is true.
  private func rows(_ cells: Int, where isWanted: ([String]) -> Bool) -> [[String]] {
    lines.filter { $0.hasPrefix("|") }.map { line in
      line.dropFirst().dropLast().split(separator: "|", omittingEmptySubsequences: false)
        .map { $0.trimmingCharacters(in: .whitespaces) }
    }.filter { $0.count == cells && isWanted($0) }
  }

  // MARK: Tables

  private var errorRows: [[String]] {
    rows(5) { UInt32($0[0]) != nil && ["connection", "stream", "topic"].contains($0[2]) }
  }

  @Test("every type of frame is there with its number, its senders and its streams")
  func frameTypes() throws {
    let rows = rows(4) { $0[0].hasPrefix("0x") }
    #expect(rows.count == 65)
    for row in rows {
      let type = FrameType(rawValue: try #require(UInt8(row[0].dropFirst(2), radix: 16)))
      #expect(type.description == row[1])
      for (stream, isAllowed) in [(UInt32(0), row[3] != "not 0"), (1, row[3] != "0")] {
        let header = FrameHeader(length: 0, type: type, stream: stream)
        for (receiver, sender) in [(Side.broker, "client"), (.client, "broker")] {
          let isTaken = (try? header.admission(at: receiver)) == .take
          #expect(
            isTaken == (isAllowed && (row[2] == sender || row[2] == "both")), "\(row) at the \(receiver)")
        }
      }
    }
  }

  @Test("every error code is there with its name and its scope")
  func errorCodes() throws {
    let rows = errorRows
    let known = (0...300).map { ErrorCode(rawValue: $0) }.filter { !$0.description.hasPrefix("error ") }
    #expect(rows.map { $0[0] } == known.map { "\($0.rawValue)" })
    for (row, code) in zip(rows, known) {
      #expect(row[1] == code.description)
      #expect((row[2] == "connection") == code.endsConnection)
      #expect(["retry", "resume", "give up"].contains(row[4]), "\(row)")
    }
  }

  @Test("codes in the text are names of codes")
  func codesInText() {
    let names = Set(errorRows.map { $0[1] })
    let quoted = lines.joined(separator: "\n").split(separator: "`", omittingEmptySubsequences: false)
      .enumerated()
      .filter { !$0.offset.isMultiple(of: 2) }.map { String($0.element) }
    let codes = quoted.filter { text in
      text.contains("-") && text.allSatisfy { $0.isLowercase || $0 == "-" }
    }
    #expect(codes.count > 20)
    for code in codes { #expect(names.contains(code), "\(code)") }
  }

  @Test("characters that names can't have are those of the table")
  func forbiddenCharacters() throws {
    var listed: Set<UInt32> = []
    for row in rows(2, where: { $0[0].hasPrefix("U+") }) {
      for range in row[0].split(separator: ", ") {
        let ends = try range.split(separator: "–").map { try #require(UInt32($0.dropFirst(2), radix: 16)) }
        listed.formUnion(ends[0]...ends[ends.count - 1])
      }
    }
    #expect(listed.count > 60)
    for number in 0...0x10FFFF as ClosedRange<UInt32> {
      guard let scalar = Unicode.Scalar(number), scalar != "." else { continue }
      let name = "a" + String(scalar)
      let isTaken = (try? TopicName.validate(name)) != nil
      // Others are rejected for their spelling only.
      var span = name.utf8Span
      let isListed = listed.contains(number) || !span.checkForNFC(quickCheck: false)
      if isTaken == isListed { Issue.record("U+\(String(number, radix: 16))") }
    }
  }

  // MARK: The session

  /// A frame in the page's notation.
  private struct Shown {
    var sender: String
    var name: String
    var bytes: [UInt8]
  }

  /// The blocks whose lines begin with the sender of a frame. The text after a semicolon is for readers.
  private func shownFrames() throws -> [Shown] {
    var shown: [Shown] = []
    var isInside = false
    for line in lines {
      if line.hasPrefix("; ") {
        let words = line.dropFirst(2).split(separator: " ")
        try #require(words.count == 2)
        shown.append(Shown(sender: String(words[0].dropLast()), name: String(words[1]), bytes: []))
        isInside = true
      } else if line.hasPrefix("```") {
        isInside = false
      } else if isInside {
        shown[shown.count - 1].bytes += [UInt8](hex: String(line.prefix { $0 != ";" }))
      }
    }
    return shown
  }

  @Test("the session in bytes is what the codec makes of it, and the other way round")
  func session() throws {
    let shown = try shownFrames()
    let expected = try Self.session()
    #expect(shown.count == expected.count)
    for (shown, expected) in zip(shown, expected) {
      #expect(shown.sender == (expected.receiver == .broker ? "client" : "broker"))
      #expect(shown.bytes.hex == expected.bytes.hex, "\(shown.name)")
      let frames = try shown.bytes.withUnsafeBytes { try FrameCollector().feed($0) }
      #expect(frames.count == 1)
      let header = try #require(frames.first?.header)
      #expect(header.type.description == shown.name)
      #expect(try header.admission(at: expected.receiver) == .take)
      try expected.check(try #require(frames.first?.body))
    }
  }

  /// One frame of the session, in this codec's encoding.
  private struct Expected {
    var receiver: Side
    var bytes: [UInt8]
    /// Decodes a body and compares.
    var check: ([UInt8]) throws -> Void

    init<F: Frame>(to receiver: Side, _ stream: UInt32, _ frame: F) {
      self.receiver = receiver
      bytes = frame.encoded(stream: stream)
      check = { body in
        let decoded = try decode(body, like: frame)
        #expect(decoded == frame)
      }
    }

    init(to receiver: Side, bytes: [UInt8], check: @escaping ([UInt8]) throws -> Void) {
      self.receiver = receiver
      self.bytes = bytes
      self.check = check
    }

    static func publish(_ stream: UInt32, _ header: PublishHeader, _ batch: [UInt8]) -> Expected {
      var front = [UInt8](repeating: 0, count: FrameHeader.size + PublishHeader.size)
      front.withUnsafeMutableBytes {
        header.write(at: $0.baseAddress!, stream: stream, batchLength: batch.count)
      }
      return Expected(to: .broker, bytes: front + batch) { body in
        try body.withUnsafeBytes { body in
          let (decoded, batch) = try PublishHeader.decode(body)
          #expect(decoded == header)
          try RecordLayout.validate(batch, count: header.count, maximumRecord: 1 << 20)
        }
      }
    }

    static func deliver(
      _ stream: UInt32, _ header: DeliverHeader, _ batch: [UInt8], time: Int64, _ records: [ReceivedRecord]
    ) -> Expected {
      var front = [UInt8](repeating: 0, count: FrameHeader.size + DeliverHeader.size)
      front.withUnsafeMutableBytes {
        header.write(at: $0.baseAddress!, stream: stream, batchLength: batch.count)
      }
      return Expected(to: .client, bytes: front + batch) { body in
        let (decoded, batch) = try body.withUnsafeBytes { body in
          let (decoded, batch) = try DeliverHeader.decode(body)
          return (decoded, Array(batch))
        }
        #expect(decoded == header)
        let walked = try walk(batch, count: header.count, time: time).records
        #expect(walked == records)
      }
    }
  }

  private static func session() throws -> [Expected] {
    let epoch: UInt64 = 0x5CA1_AB1E_0000_0001
    let time: Int64 = 1_735_689_600_000
    var mark = [UInt8](repeating: 0, count: RecordLayout.timeMarkSize)
    mark.withUnsafeMutableBytes { RecordLayout.writeTimeMark(time, at: $0.baseAddress!) }
    let attributed = Attributes(
      key: Array("eu".utf8), headers: [("kind", Array("new".utf8))], payload: Array("two".utf8))
    var firstTwo = BatchBuilder()
    try firstTwo.append(Attributes(payload: Array("one".utf8)))
    try firstTwo.append(attributed)
    var third = BatchBuilder()
    try third.append(Attributes())
    let attributedBody = Array(firstTwo.bytes[(4 + 3 + 4)...])
    #expect(try Attributes(body: attributedBody) == attributed)

    return [
      Expected(to: .broker, 0, Hello(maximumFrame: 1 << 20, keepalive: 0, name: "probe")),
      Expected(
        to: .client, 0,
        Welcome(
          maximumFrame: 2 << 20, maximumRecord: 1 << 20, maximumStreams: 8192, keepalive: 30_000,
          broker: 0x1122_3344_5566_7788, software: "sluiced")),
      Expected(to: .broker, 1, Subscribe(topic: "orders", grantedThrough: 2)),
      Expected(to: .client, 1, Subscribed(epoch: epoch, nextOffset: 0, liveOffset: 0)),
      Expected(to: .client, 1, Live(nextOffset: 0)),
      Expected(
        to: .broker, 2, PublishOpen(topic: "orders", acknowledgement: .received, producer: 0x50_524F_4455)),
      Expected(to: .client, 2, PublishOpened(epoch: epoch, grantedThrough: 65_536)),
      .publish(2, PublishHeader(firstSequence: 0, count: 3), firstTwo.bytes + third.bytes),
      .deliver(
        1, DeliverHeader(firstOffset: 0, count: 2), mark + firstTwo.bytes, time: 0,
        [
          ReceivedRecord(time: time, body: Array("one".utf8)),
          ReceivedRecord(time: time, body: attributedBody, isAttributed: true),
        ]),
      Expected(to: .client, 2, Ack(through: 3, lastOffset: 2)),
      Expected(to: .broker, 1, Demand(grantedThrough: 100)),
      .deliver(
        1, DeliverHeader(firstOffset: 2, count: 1), third.bytes, time: time,
        [ReceivedRecord(time: time, body: [])]),
      Expected(to: .broker, 2, Complete(.finished)),
      Expected(to: .client, 2, Cancelled()),
      Expected(to: .client, 1, Complete(.finished)),
      Expected(to: .broker, 2, TopicShow(topic: "missing")),
      Expected(to: .client, 2, Fault(code: .unknownTopic, message: "there is no topic missing")),
      Expected(
        to: .broker, 1,
        Subscribe(topic: "orders", start: .offset(2), lag: .fail, epoch: epoch, grantedThrough: 0)),
      Expected(to: .client, 1, Subscribed(epoch: epoch, nextOffset: 2, liveOffset: 3)),
      Expected(to: .broker, 1, Cancel()),
      Expected(to: .client, 1, Cancelled()),
      Expected(to: .client, 0, Ping(token: 7)),
      Expected(to: .broker, 0, Pong(token: 7)),
      Expected(to: .client, 0, GoAway(code: .shuttingDown, message: "the broker is stopping")),
    ]
  }
}
