import Foundation
import SluiceWebSocket
import TestSupport
import Testing

/// The page that lists how a WebSocket ends, compared with what the broker sends.
@Suite("The page of close codes")
struct CloseCodePageTests {
  /// What a client does wrong: each as chunks of bytes.
  private static let violations: [[UInt8]] = [
    frame(2, [1], rsv: 1), frame(3, [1]), frame(2, [1], mask: nil), frame(9, [1], fin: false),
    [UInt8](hex: "89 fe 007e"), [UInt8](hex: "82 ff 8000000000000000 01020304"),
    [UInt8](hex: "82 fe 007d 01020304"), frame(0, [1]), frame(2, [1], fin: false) + frame(2, [1]),
    frame(8, [3]), closeFrame(1005), frame(1, "text"), closeFrame(1000, [0xFF]),
    frame(2, [1], fin: false) + [UInt8](hex: "80 ff 7fffffffffffffff 01020304"),
  ]

  /// As the page writes it: numbers as N, kinds of frames as TYPE.
  private static func written(_ reason: String) -> String {
    reason.replacing(/[0-9]+/, with: "N").replacing("UTF-N", with: "UTF-8")
      .replacing(/^a (ping|pong|close|text|binary) frame/, with: "a TYPE frame")
  }

  /// With the rules of the broker's door.
  private static func ending(_ bytes: [UInt8]) -> WebSocketEnding? {
    let limits = WebSocketDecoder.Limits(frame: .max >> 1, message: .max >> 1)
    var session = WebSocketSession(
      .server, WebSocketSession.Rules(limits: limits, takesText: false, pingAfter: 0), now: 0)
    var ending: WebSocketEnding?
    var output: [UInt8] = []
    withWritable(bytes) { chunk in
      session.receive(chunk, now: 0, output: &output) { if case .end(let end) = $0 { ending = end } }
    }
    return ending
  }

  @Test("has each code and reason, and no other")
  func rows() throws {
    let page = URL(filePath: #filePath).appending(path: "../../../Sources/Documentation/Sluice.docc/Doors.md")
    let text = try String(contentsOf: page.standardized, encoding: .utf8)
    let section = try #require(text.firstRange(of: "### How a WebSocket ends").map { text[$0.upperBound...] })
    let rows = section.prefix(through: try #require(section.firstRange(of: "\n## ")).lowerBound)
      .matches(of: /\| (1[0-9]{3}) \| `([^`]+)` \|/).map { "\($0.output.1) \($0.output.2)" }
    var sent: [String] = []
    for bytes in Self.violations {
      let ending = try #require(Self.ending(bytes), "\(bytes) ends nothing")
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
