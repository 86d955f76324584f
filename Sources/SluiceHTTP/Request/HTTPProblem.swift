/// The reason why a request is rejected: a status, and a sentence with advice.
package struct HTTPProblem: Error, Hashable, Sendable {
  package var status: Int
  package var message: String
  /// The number and the name of an error of Sluice; nil for errors of HTTP itself.
  package var code: Code?
  /// The seconds after which the same request may succeed (RFC 9110, 10.2.3); nil if the client has to change the request.
  package var retryAfter: Int?
  /// The supported methods, if the request's method isn't one of them (RFC 9110, 15.5.6).
  package var methods: [String] = []

  package struct Code: Hashable, Sendable {
    package var number: Int
    package var name: String

    package init(_ number: Int, _ name: String) {
      self.number = number
      self.name = name
    }
  }

  package init(
    _ status: Int, _ message: String, code: Code? = nil, retryAfter: Int? = nil, methods: [String] = []
  ) {
    self.status = status
    self.message = message
    self.code = code
    self.retryAfter = retryAfter
    self.methods = methods
  }

  /// The answer's fields for this problem.
  var fields: [(String, String)] {
    var fields: [(String, String)] = []
    if status == 401 { fields.append(("WWW-Authenticate", "Basic realm=\"sluice\", charset=\"UTF-8\"")) }
    if let retryAfter { fields.append(("Retry-After", "\(retryAfter)")) }
    if !methods.isEmpty { fields.append(("Allow", methods.joined(separator: ", "))) }
    return fields
  }
}
