/// A line of a response's head.
struct HTTPHeader: Hashable, Sendable {
  var name: String
  var value: String

  init(_ name: String, _ value: String) {
    self.name = name
    self.value = value
  }
}

/// An answer that is known as a whole.
struct HTTPResponse: Hashable, Sendable {
  var status: Int
  var headers: [HTTPHeader]
  var body: [UInt8]
  /// Whether the connection is of no use afterwards.
  var closes = false

  init(status: Int = 200, type: String, body: [UInt8]) {
    self.status = status
    self.body = body
    headers = [HTTPHeader("Content-Type", type)]
  }

  static func json(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, type: "application/json; charset=utf-8", body: Array("\(text)\n".utf8))
  }

  static func text(_ text: String, status: Int = 200) -> HTTPResponse {
    HTTPResponse(status: status, type: "text/plain; charset=utf-8", body: Array("\(text)\n".utf8))
  }

  /// What every response has: nothing is kept, nothing is guessed, and no other page may use it.
  static let common = [
    HTTPHeader("Cache-Control", "no-store"),
    HTTPHeader("X-Content-Type-Options", "nosniff"),
    HTTPHeader("Cross-Origin-Resource-Policy", "same-origin"),
    HTTPHeader("Referrer-Policy", "no-referrer"),
    HTTPHeader("X-Frame-Options", "DENY"),
  ]

  /// For what isn't a page: a browser that shows it shows text.
  static let noContentPolicy = HTTPHeader(
    "Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
}
