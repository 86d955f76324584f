import SluiceAccess
import SluiceTLS

/// Prevents pages of other sites from changing anything, although a browser sends their requests with the visitor's credentials.
///
/// A request that changes something must come from this listener's own page, as the browser states it in `Origin` or `Sec-Fetch-Site`. It must contain a
/// header that pages of other sites can send only after a preflight request, which this listener never permits. The header's value is a token in the page,
/// which other sites' pages can't read. A body must be JSON, which no form can send. There are no cookies.
struct ActionCheck: Sendable {
  /// The header with the token.
  static let header = "Sluice-Token"

  /// Created by each run of the broker.
  private let key = secureRandomBytes(32)

  /// The token of the visitor's page. It isn't valid for another identity.
  func token(of identity: Identity) -> String {
    Base64Text.standard.encode(hmacSHA256(Array(identity.name.utf8), key: key))
  }

  /// Checks the head of a request, before its body is read and the visitor is authenticated.
  ///
  /// - Throws: 400, 403, 411, 413 or 415, with the reason.
  static func check(
    _ request: AdminRequest, _ action: AdminAction, _ limits: AdminLimits
  ) throws(AdminProblem) {
    guard request.origin != nil || request.fetchSite != nil else {
      throw .forbidden(
        "a request that changes something has to say that it comes from here: send 'Origin: http://HOST:PORT' of this listener"
      )
    }
    guard request.fetchSite == nil || request.fetchSite == "same-origin" else {
      throw .forbidden("only this listener's own page may change something")
    }
    guard request.token != nil else {
      throw .forbidden(
        "the header \(header) is missing; its value is in the page at /, as the content of sluice-token")
    }
    guard request.hasBody else { return }
    guard action.takesBody else { throw .badRequest("this request has no body") }
    guard let length = request.bodyLength else {
      throw AdminProblem(411, "the body's length has to be stated, by Content-Length")
    }
    guard length <= limits.bodyBytes else {
      throw AdminProblem(413, "the body has more than \(limits.bodyBytes) bytes, which is the limit")
    }
    let type = request.contentType?.prefix { $0 != ";" }.filter { $0 != " " }.lowercased()
    guard type == "application/json" else {
      throw AdminProblem(415, "the body has to be JSON, with 'Content-Type: application/json'")
    }
  }

  /// Checks the token.
  ///
  /// - Throws: 403.
  func checkToken(_ request: AdminRequest, of identity: Identity) throws(AdminProblem) {
    let token = Array((request.token ?? "").utf8)
    guard isEqualInConstantTime(token, Array(self.token(of: identity).utf8)) else {
      throw .forbidden(
        "the token isn't this visitor's, or is of another run of the broker; load the page again")
    }
  }
}
