import SluiceHTTP
import SluiceTLS
import SluiceWebSocket
import TestSupport
import Testing

@Suite("WebSocket upgrade")
struct WebSocketUpgradeTests {
  /// A valid request, as lines.
  private static let good = [
    "GET /chat?x=1 HTTP/1.1", "Host: server.example.com", "Upgrade: websocket",
    "Connection: keep-alive, Upgrade", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
    "Origin: http://Example.com", "Sec-WebSocket-Protocol: chat, mqtt", "Sec-WebSocket-Protocol: sluice.1",
    "Sec-WebSocket-Version: 13", "Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits",
  ]

  private static let upgrade = WebSocketUpgrade(
    WebSocketUpgrade.Rules(
      subprotocols: ["sluice.1", "mqtt"], paths: ["/chat"], origins: ["http://example.com"]), sha1: sha1(_:))

  private static func answer(_ lines: [String]) throws -> WebSocketUpgrade.Agreement {
    var reader = HTTPHeadReader()
    let bytes = Array((lines.joined(separator: "\r\n") + "\r\n\r\n").utf8)
    do {
      let found = try bytes.withUnsafeBytes { bytes throws(HTTPRequestHead.Fault) in try reader.take(bytes) }
      return try upgrade.answer(try #require(found).head)
    } catch let fault as HTTPRequestHead.Fault {
      throw WebSocketUpgrade.Refusal(fault)
    }
  }

  /// The key and the reply are those of RFC 6455, section 1.3.
  @Test("agrees with the key of the standard's example, on the first subprotocol that the client asks for")
  func agrees() throws {
    let agreement = try Self.answer(Self.good)
    #expect(agreement.subprotocol == "mqtt")
    #expect(agreement.request.values("host") == ["server.example.com"])
    let expected = """
      HTTP/1.1 101 Switching Protocols\r
      Upgrade: websocket\r
      Connection: Upgrade\r
      Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r
      Sec-WebSocket-Protocol: mqtt\r
      \r

      """
    #expect(String(decoding: agreement.answer, as: UTF8.self) == expected)
  }

  @Test(
    "refuses with the right status",
    arguments: [
      (0, "POST /chat HTTP/1.1", 405), (0, "GET /chat HTTP/1.0", 505), (0, "GET /other HTTP/1.1", 404),
      (0, "GET  /chat HTTP/1.1", 400), (0, "GET /chat", 400), (0, "get\u{7f} /chat HTTP/1.1", 400),
      (1, "X: y", 400), (1, "Host: a\r\nHost: b", 400), (1, "Host : a", 400), (1, "Host: a\u{1}", 400),
      (1, "Host: a\r\n folded", 400), (1, "Host: a\nX: y", 400), (2, "Upgrade: h2c", 426),
      (3, "Connection: close", 426), (4, "X: y", 400), (4, "Sec-WebSocket-Key: dGhlIHNhbXBsZQ==", 400),
      (4, "Sec-WebSocket-Key: not base64 at all!!!", 400), (5, "Origin: http://evil.example", 403),
      (6, "Content-Length: 5", 400), (6, "Transfer-Encoding: chunked", 400), (7, "X: y", 101),
      (8, "Sec-WebSocket-Version: 12", 426), (8, "X: y", 426), (5, "X: y", 101), (9, "X: y", 101),
    ])
  func refuses(_ line: Int, _ text: String, _ status: Int) {
    var lines = Self.good
    lines[line] = text
    do {
      _ = try Self.answer(lines)
      #expect(status == 101)
    } catch {
      let refusal = error as? WebSocketUpgrade.Refusal
      #expect(refusal?.status == status)
      #expect(refusal?.answer(at: 0).starts(with: Array("HTTP/1.1 \(status) ".utf8)) == true)
    }
  }

  @Test("tells the version that it speaks, and the method")
  func tells() throws {
    var lines = Self.good
    lines[8] = "Sec-WebSocket-Version: 8"
    #expect(try Self.refusal(lines).contains("\r\nSec-WebSocket-Version: 13\r\n"))
    lines = Self.good
    lines[0] = "PUT /chat HTTP/1.1"
    #expect(try Self.refusal(lines).contains("\r\nAllow: GET\r\n"))
    #expect(try Self.refusal(lines).contains("\r\nDate: Thu, 01 Jan 1970 00:00:00 GMT\r\n"))
  }

  private static func refusal(_ lines: [String]) throws -> String {
    do {
      _ = try answer(lines)
    } catch let refusal as WebSocketUpgrade.Refusal {
      return String(decoding: refusal.answer(at: 0), as: UTF8.self)
    }
    throw TestFailure("it wasn't refused")
  }

  @Test("refuses a request without a subprotocol that is served here")
  func subprotocols() throws {
    #expect(try Self.refusal(Self.good.filter { !$0.hasPrefix("Sec-WebSocket-Protocol") }).contains("400"))
    var lines = Self.good.filter { !$0.hasPrefix("Sec-WebSocket-Protocol") }
    lines.append("Sec-WebSocket-Protocol: chat, MQTT")
    #expect(try Self.refusal(lines).contains("sluice.1, mqtt"))
  }

  @Test("bounds the head and the number of its fields, and needs no more memory than that")
  func bounded() {
    var reader = HTTPHeadReader(limit: 1000)
    let endless = Array("GET / HTTP/1.1\r\nX: ".utf8) + [UInt8](repeating: UInt8(ascii: "x"), count: 2000)
    #expect(throws: HTTPRequestHead.Fault.self) { try endless.withUnsafeBytes { try reader.take($0) } }
    #expect(reader.heldBytes <= 2100)
    let many = Self.good + (0..<100).map { "X\($0): y" }
    #expect(throws: WebSocketUpgrade.Refusal.self) { try Self.answer(many) }
  }

  @Test("takes a client's request cut anywhere, and leaves what is behind it")
  func client() throws {
    let request = WebSocketRequest(
      host: "localhost", path: "/chat", subprotocols: ["sluice.1"], origin: "http://example.com",
      key: Array(0..<16))
    let bytes = request.bytes + [0x82, 0x80]
    for cut in 0..<bytes.count {
      var reader = HTTPHeadReader()
      var found: (head: HTTPRequestHead, taken: Int)?
      var before = 0
      for chunk in [Array(bytes[..<cut]), Array(bytes[cut...])] where found == nil {
        found = try chunk.withUnsafeBytes { try reader.take($0) }
        before += found?.taken ?? chunk.count
      }
      #expect(before == request.bytes.count)
      let agreement = try Self.upgrade.answer(try #require(found).head)
      #expect(agreement.subprotocol == "sluice.1")
      #expect(request.key == "AAECAwQFBgcICQoLDA0ODw==")
    }
  }
}
