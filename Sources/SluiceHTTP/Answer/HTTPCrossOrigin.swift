/// What pages of other origins may do: a browser asks before it sends a page's request (OPTIONS), and shows a page only those fields of an answer that the answer
/// names.
package struct HTTPCrossOrigin: Sendable {
  /// Origins whose pages may connect, in small letters; nil for all.
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

  /// The fields of requests that mean something here; those of records, `Sluice-Header-NAME`, as well.
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

  /// The fields of the answer to OPTIONS. Of the fields that the browser asks about, those are named that are permitted.
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

  /// The fields that show a page an answer.
  ///
  /// - Parameters:
  ///   - request: the request that is answered; nil where it couldn't be read.
  ///   - fields: the answer's others.
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
