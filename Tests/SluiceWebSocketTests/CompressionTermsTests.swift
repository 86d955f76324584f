import SluiceHTTP
import SluiceTLS
import SluiceWebSocket
import TestSupport
import Testing

@Suite("Offers of permessage-deflate")
struct CompressionTermsTests {
  /// The server's reply to the values of `Sec-WebSocket-Extensions` fields; nil if it sends none.
  private static func answer(_ offers: [String], compression: Bool = true) throws -> String? {
    let request = WebSocketRequest(host: "b", path: "/", subprotocols: ["mqtt"]).bytes
    let fields = offers.map { "Sec-WebSocket-Extensions: \($0)\r\n" }.joined()
    var reader = HTTPHeadReader()
    let bytes = request.dropLast(2) + Array("\(fields)\r\n".utf8)
    let found = try Array(bytes).withUnsafeBytes { try reader.take($0) }
    let upgrade = WebSocketUpgrade(
      WebSocketUpgrade.Rules(subprotocols: ["mqtt"], compression: compression), sha1: { sha1($0) })
    let agreement = try upgrade.answer(try #require(found).head)
    let answer = String(decoding: agreement.answer, as: UTF8.self)
    let lines = answer.split(separator: "\r\n").filter { $0.hasPrefix("Sec-WebSocket-Extensions: ") }
    #expect(lines.count <= 1)
    #expect((agreement.compression != nil) == !lines.isEmpty)
    return lines.first.map { String($0.dropFirst(26)) }
  }

  private static let accepted =
    "permessage-deflate; server_no_context_takeover; client_no_context_takeover"

  @Test(
    "are accepted without a window that outlives a message",
    arguments: [
      ["permessage-deflate"],
      ["permessage-deflate; client_max_window_bits"],
      ["permessage-deflate; client_max_window_bits=8"],
      ["permessage-deflate;client_max_window_bits = \"10\" ; server_no_context_takeover"],
      ["permessage-deflate; server_no_context_takeover; client_no_context_takeover"],
      ["x-webkit-deflate-frame, permessage-deflate"],
      ["other; a=\"x\\y\"; b", "permessage-deflate"],
      [", ,permessage-deflate,"],
      // The first offer can't be accepted, the second can.
      ["permessage-deflate; server_max_window_bits=8, permessage-deflate"],
      ["permessage-deflate; mode=best", "permessage-deflate; client_max_window_bits"],
    ])
  func accepts(_ offers: [String]) throws {
    #expect(try Self.answer(offers) == Self.accepted)
  }

  @Test("with a limit of the server's window are accepted with it", arguments: 9...15)
  func limits(bits: Int) throws {
    let limited = "\(Self.accepted); server_max_window_bits=\(bits)"
    #expect(try Self.answer(["permessage-deflate; server_max_window_bits=\(bits)"]) == limited)
    let both = "permessage-deflate; server_max_window_bits=\"\(bits)\"; client_max_window_bits=9"
    #expect(try Self.answer([both]) == limited)
  }

  @Test(
    "are declined, without an error, where they can't be accepted",
    arguments: [
      [], [""], ["other"], ["Permessage-Deflate"], ["permessage-deflate; other"],
      ["permessage-deflate; server_max_window_bits"],
      ["permessage-deflate; server_max_window_bits=8"],
      ["permessage-deflate; server_max_window_bits=16"],
      ["permessage-deflate; server_max_window_bits=09"],
      ["permessage-deflate; server_max_window_bits=+9"],
      ["permessage-deflate; server_max_window_bits=9; server_max_window_bits=9"],
      ["permessage-deflate; client_max_window_bits=7"],
      ["permessage-deflate; client_max_window_bits=16"],
      ["permessage-deflate; client_max_window_bits; client_max_window_bits"],
      ["permessage-deflate; server_no_context_takeover=1"],
      ["permessage-deflate; client_no_context_takeover=true"],
      ["permessage-deflate; server_no_context_takeover; server_no_context_takeover"],
    ])
  func declines(_ offers: [String]) throws {
    #expect(try Self.answer(offers) == nil)
  }

  @Test(
    "are refused where the field isn't in the form of RFC 6455, also where the server takes none",
    arguments: [
      ["permessage-deflate;"], ["permessage-deflate; =9"], ["permessage-deflate; server_max_window_bits="],
      ["permessage-deflate; server_max_window_bits=\"9"], ["permessage-deflate; a=\"\""],
      ["permessage-deflate; client_max_window_bits=\"1,0\""], ["permessage-deflate other"],
      ["\"permessage-deflate\""], ["permessage-deflate; client_max_window_bits=9\\"],
      ["permessage-deflate", "other;"],
    ])
  func refuses(_ offers: [String]) {
    for compression in [true, false] {
      #expect(throws: WebSocketUpgrade.Refusal.self) { try Self.answer(offers, compression: compression) }
    }
  }

  @Test("are declined unless the server takes them")
  func off() throws {
    #expect(try Self.answer(["permessage-deflate"], compression: false) == nil)
  }
}
