/// The permissions of pages of other origins. A browser asks for permission (OPTIONS) before it sends a page's request, and shows a page only the fields
/// that the answer names.
package struct HTTPCrossOrigin: Sendable {
  /// Origins whose pages may connect, in lower case; nil for all.
  private let origins: Set<String>?

  /// Whether browsers send their own credentials, such as cookies and certificates, and show pages the answers.
  private let withCredentials: Bool
  /// Fields that pages may send beside ``requestFields``.
  private let otherFields: [String]

  package init(_ origins: Set<String>?, withCredentials: Bool = false, fields: [String] = []) {
    self.origins = origins
    self.withCredentials = withCredentials
    otherFields = fields
  }

  /// The request fields with a meaning for this server, besides those of records, `Sluice-Header-NAME`.
  private static let requestFields = [
    "Authorization", "Content-Type", "Idempotency-Key", "Last-Event-ID", "Sluice-Key", "Sluice-Key-Base64",
  ]

  private func isAllowed(_ origin: String) -> Bool {
    origins?.contains(origin.lowercased()) ?? true
  }

  /// - Throws: ``HTTPProblem`` for the request of a page that may not connect.
  func check(_ head: HTTPRequestHead) throws(HTTPProblem) {
    guard let origin = head.values("origin").last, !isAllowed(origin),
      !HTTPOrigin.isAddress(origin, of: head.values("host").first ?? "")
    else { return }
    throw HTTPProblem(403, "pages of the origin \(origin) may not connect here")
  }

  /// The fields of the answer to OPTIONS. They name all permitted request fields that the browser asks about.
  func preflight(_ request: HTTPRequest) -> [(String, String)] {
    let asked = request.head.elements("access-control-request-headers").filter { name in
      name.lowercased().hasPrefix("sluice-header-") && HTTPRequestHead.isToken(name[...])
    }
    return [
      ("Access-Control-Allow-Methods", "DELETE, GET, HEAD, OPTIONS, PATCH, POST, PUT"),
      ("Access-Control-Allow-Headers", (Self.requestFields + otherFields + asked).joined(separator: ", ")),
      ("Access-Control-Max-Age", "600"),
    ]
  }

  /// The fields that make an answer visible to a page.
  ///
  /// - Parameters:
  ///   - request: the request; nil if it couldn't be parsed.
  ///   - fields: the other fields of the answer.
  func fields(for request: HTTPRequest?, with fields: [(String, String)] = []) -> [(String, String)] {
    guard let origin = request?.field("origin"), isAllowed(origin) else { return [] }
    let shown = fields.map(\.0).filter {
      $0.hasPrefix("Sluice-") || $0 == "Retry-After" || $0 == "WWW-Authenticate"
    }
    let exposed = shown.isEmpty ? [] : [("Access-Control-Expose-Headers", shown.joined(separator: ", "))]
    let credentials = withCredentials ? [("Access-Control-Allow-Credentials", "true")] : []
    return [("Access-Control-Allow-Origin", origin), ("Vary", "Origin")] + credentials + exposed
  }
}
