import Foundation
import SluiceWebSocket
import TestSupport
import Testing

/// The page that lists the close codes of WebSockets, compared with those that the broker sends.
@Suite("The page of close codes")
struct CloseCodePageTests {
  /// Violations by a client, each as bytes.
  private static let violations: [[UInt8]] = [
    frame(2, [1], rsv: 1), frame(3, [1]), frame(2, [1], mask: nil), frame(9, [1], fin: false),
    [UInt8](hex: "89 fe 007e"), [UInt8](hex: "82 ff 8000000000000000 01020304"),
    [UInt8](hex: "82 fe 007d 01020304"), frame(0, [1]), frame(2, [1], fin: false) + frame(2, [1]),
    frame(8, [3]), closeFrame(1005), frame(1, "text"), closeFrame(1000, [0xFF]),
    frame(2, [1], fin: false) + [UInt8](hex: "80 ff 7fffffffffffffff 01020304"),
  ]

  /// Violations if compression was negotiated.
  private static let compressionViolations: [[UInt8]] = [
    frame(2, [1], rsv: 2), frame(9, [1], rsv: 4), frame(2, [0x07], rsv: 4), frame(2, [0xF2], rsv: 4),
  ]

  /// In the page's notation: numbers as N, kinds of frames as TYPE.
  private static func written(_ reason: String) -> String {
    reason.replacing(/[0-9]+/, with: "N").replacing("UTF-N", with: "UTF-8")
      .replacing(/^a (ping|pong|close|text|binary) frame/, with: "a TYPE frame")
  }

  /// The ending, by the rules of the broker's gateway.
  private static func ending(_ bytes: [UInt8], compression: Bool = false) -> WebSocketEnding? {
    let limits = WebSocketDecoder.Limits(frame: .max >> 1, message: .max >> 1)
    var session = WebSocketSession(
      .server,
      WebSocketSession.Rules(
        limits: limits, takesText: false, compression: compression, pingAfter: 0), now: 0)
    let messages = WebSocketMessageReader(InflaterPool())
    var room = [UInt8](repeating: 0, count: 1000)
    var ending: WebSocketEnding?
    var output: [UInt8] = []
    withWritable(bytes) { chunk in
      _ = session.receive(partOf: chunk, now: 0, output: &output) { action throws(WebSocketError) in
        switch action {
        case .part(_, let part, _, let isLast, let isCompressed):
          try room.withUnsafeMutableBufferPointer { room throws(WebSocketError) in
            _ = try messages.take(
              part, isCompressed: isCompressed, isLast: isLast, into: UnsafeMutableRawBufferPointer(room))
          }
        case .end(let end): ending = end
        }
        return true
      }
    }
    return ending
  }

  @Test("has each code and reason, and no other")
  func rows() throws {
    let page = URL(filePath: #filePath).appending(
      path: "../../../Sources/Documentation/Sluice.docc/WebSocket.md")
    let text = try String(contentsOf: page.standardized, encoding: .utf8)
    let section = try #require(
      text.firstRange(of: "\n## How a WebSocket ends\n").map { text[$0.upperBound...] })
    let rows = section.prefix(through: try #require(section.firstRange(of: "\n## ")).lowerBound)
      .matches(of: /\| (1[0-9]{3}) \| `([^`]+)` \|/).map { "\($0.output.1) \($0.output.2)" }
    var sent: [String] = []
    let all = Self.violations.map { ($0, false) } + Self.compressionViolations.map { ($0, true) }
    for (bytes, compression) in all {
      let ending = try #require(Self.ending(bytes, compression: compression), "\(bytes) ends nothing")
      #expect(ending.isViolation)
      sent.append("\(ending.code) \(Self.written(ending.reason))")
    }
    #expect(rows.sorted() == sent.sorted())
  }

  @Test("a client that closes by itself has broken no rule")
  func orderly() throws {
    for bytes in [frame(8), closeFrame(1000), closeFrame(1002), closeFrame(4000)] {
      #expect(try #require(Self.ending(bytes)).isViolation == false)
    }
  }
}
