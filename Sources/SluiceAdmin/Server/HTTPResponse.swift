import SluiceCommand

/// A line of a response's head.
struct HTTPHeader: Hashable, Sendable {
  var name: String
  var value: String

  init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// A complete response.
struct HTTPResponse: Hashable, Sendable {
  var status: Int
  /// The type of the body.
  var type: String
  /// Headers that not every response has.
  var headers: [HTTPHeader] = []
  var body: [UInt8]

  init(status: Int = 200, type: String, body: [UInt8]) {
    self.status = status
    self.type = type
    self.body = body
  }

  static func json(_ json: JSON, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, type: "application/json; charset=utf-8", body: Array(json.line.utf8))
  }

  static func text(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, type: "text/plain; charset=utf-8", body: Array("\(text)\n".utf8))
  }

  /// The headers to send.
  var fields: [(String, String)] {
    let hasPolicy = headers.contains { $0.name == Self.noContentPolicy.name }
    let all = [HTTPHeader("Cache-Control", "no-store")] + Self.common + headers
    return (hasPolicy ? all : all + [Self.noContentPolicy]).map { ($0.name, $0.value) }
  }

  /// The headers of a stream of events to send, besides its type.
  static let streamFields = (common + [noContentPolicy]).map { ($0.name, $0.value) }

  /// The headers of every response: no guessing of types, no use by other sites.
  private static let common = [
    HTTPHeader("X-Content-Type-Options", "nosniff"),
    HTTPHeader("Cross-Origin-Resource-Policy", "same-origin"),
    HTTPHeader("Referrer-Policy", "no-referrer"),
    HTTPHeader("X-Frame-Options", "DENY"),
  ]

  /// The policy of responses other than the page: a browser that shows them runs no scripts.
  static let noContentPolicy = HTTPHeader(
    "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}
