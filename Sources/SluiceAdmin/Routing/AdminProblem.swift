import SluiceCommand

/// Why a request isn't answered with what it asks for: a status of HTTP, and words for whoever asked.
struct AdminProblem: Error, Hashable, Sendable {
  var status: Int
  var message: String
  /// What a response of that status has to have.
  var header: HTTPHeader?

  init(_ status: Int, _ message: String, _ header: HTTPHeader? = nil) {
    self.status = status
    self.message = message
    self.header = header
  }

  var response: HTTPResponse {
    var body = JSONObject()
    body.add("status", UInt64(status))
    body.add("error", message)
    var response = HTTPResponse.json(body.text, status: status)
    if let header { response.headers.append(header) }
    return response
  }
}

extension AdminProblem {
  static func badRequest(_ message: String) -> Self { Self(400, message) }
  static func forbidden(_ message: String) -> Self { Self(403, message) }
  static func notFound(_ message: String) -> Self { Self(404, message) }
  static func unavailable(_ message: String) -> Self {
    Self(503, message, HTTPHeader("Retry-After", "1"))
  }
  static func unknownTopic(_ name: String) -> Self { notFound("there is no topic \(name)") }
}
