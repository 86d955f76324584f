import SluiceHTTP

/// The client's half of the opening handshake: for tests, and for programs that connect to a server.
package struct WebSocketRequest: Hashable, Sendable {
  package var host: String
  package var path: String
  package var subprotocols: [String]
  package var origin: String?
  /// The Base64 of 16 random bytes.
  package let key: String

  package init(
    host: String, path: String, subprotocols: [String], origin: String? = nil, key: [UInt8]? = nil
  ) {
    self.host = host
    self.path = path
    self.subprotocols = subprotocols
    self.origin = origin
    self.key = Base64.encode(key ?? (0..<16).map { _ in UInt8.random(in: 0...255) })
  }

  /// To be sent.
  package var bytes: [UInt8] {
    var fields = [
      ("Host", host), ("Upgrade", "websocket"), ("Connection", "Upgrade"), ("Sec-WebSocket-Key", key),
      ("Sec-WebSocket-Version", "13"),
    ]
    if !subprotocols.isEmpty {
      fields.append(("Sec-WebSocket-Protocol", subprotocols.joined(separator: ", ")))
    }
    if let origin { fields.append(("Origin", origin)) }
    return Array("GET \(path) HTTP/1.1\r\n\(HTTPAnswerHead.text(fields))\r\n".utf8)
  }
}
