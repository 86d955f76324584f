/// The head of an answer (RFC 9112, 2.1).
package enum HTTPAnswerHead {
  /// A head, including the empty line at its end.
  package static func bytes(_ status: Int, _ fields: [(String, String)]) -> [UInt8] {
    Array("HTTP/1.1 \(status) \(phrases[status] ?? "Error")\r\n\(text(fields))\r\n".utf8)
  }

  /// Fields of an answer or a request, each with its line end.
  package static func text(_ fields: [(String, String)]) -> String {
    fields.map { "\($0.0): \($0.1)\r\n" }.joined()
  }

  /// The reason phrases of the statuses in use (RFC 9110, 15).
  private static let phrases: [Int: String] = [
    101: "Switching Protocols", 200: "OK", 202: "Accepted", 204: "No Content", 400: "Bad Request",
    401: "Unauthorized", 403: "Forbidden", 404: "Not Found", 405: "Method Not Allowed",
    408: "Request Timeout", 409: "Conflict", 410: "Gone", 413: "Content Too Large",
    415: "Unsupported Media Type", 426: "Upgrade Required",
    429: "Too Many Requests", 431: "Request Header Fields Too Large", 500: "Internal Server Error",
    501: "Not Implemented", 502: "Bad Gateway", 503: "Service Unavailable", 504: "Gateway Timeout",
    505: "HTTP Version Not Supported", 507: "Insufficient Storage",
  ]
}
