/// Why a request isn't served: a status and a sentence that says what to do.
package struct HTTPProblem: Error, Hashable, Sendable {
  package var status: Int
  package var message: String
  /// The number and the name of an error that isn't HTTP's own; nil for what HTTP itself finds.
  package var code: Code?
  /// After how many seconds the same request is likely to be served (RFC 9110, 10.2.3); nil where only the client can change something.
  package var retryAfter: Int?
  /// The methods that are understood where this one isn't (RFC 9110, 15.5.6).
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

  /// The fields that belong to it in an answer.
  var fields: [(String, String)] {
    var fields: [(String, String)] = []
    if status == 401 { fields.append(("WWW-Authenticate", "Basic realm=\"sluice\", charset=\"UTF-8\"")) }
    if let retryAfter { fields.append(("Retry-After", "\(retryAfter)")) }
    if !methods.isEmpty { fields.append(("Allow", methods.joined(separator: ", "))) }
    return fields
  }
}
