import SluiceCommand
import SluiceHTTP

// What requests may say. A name that isn't known is refused rather than passed over: one that is misspelt would change what the request does, and the client
// would be told of a success.
extension HTTPRequest {
  /// Conditions, all of which have to hold.
  private static let repeatable: Set = ["header", "key", "key-base64", "key-prefix"]
  private static let recordFields = ["Sluice-Key", "Sluice-Key-Base64", "Sluice-Header-NAME"]

  /// What the body of a request is.
  enum Body {
    case none
    /// One record, or several.
    case records
    /// Settings of a topic, or offsets.
    case statement
  }

  /// Checks the names of parameters, and of the fields that are the door's own by their names, `Sluice-…`. Other fields belong to HTTP, to proxies or to browsers.
  ///
  /// - Parameters:
  ///   - known: the request's parameters; nil where they are a topic's settings, whose names are looked at when they are read.
  ///   - use: what the body is.
  /// - Throws: ``HTTPProblem`` for a body that would be passed over, for a name that isn't known, and for one that comes twice and can't.
  func check(parameters known: [String]?, body use: Body = .none) throws(HTTPProblem) {
    let hasRecords = use == .records
    var seen: Set<String> = []
    for name in query.map(\.name) {
      if let known, !known.contains(name) { throw Self.unknown("parameter", name, known) }
      guard seen.insert(name).inserted || Self.repeatable.contains(name) else {
        throw HTTPProblem(400, "the parameter '\(name.prefix(64))' comes twice")
      }
    }
    for field in head.fields {
      let name = field.name.lowercased()
      guard name.hasPrefix("sluice-") else { continue }
      let isKnown = name == "sluice-key" || name == "sluice-key-base64" || Self.isRecordHeader(name)
      guard isKnown, hasRecords else {
        throw Self.unknown("field", field.name, hasRecords ? Self.recordFields : [])
      }
      guard seen.insert(name).inserted || Self.isRecordHeader(name) else {
        throw HTTPProblem(400, "the field \(field.name) comes twice")
      }
    }
    guard use != .none || body.isEmpty else {
      throw HTTPProblem(400, "\(head.method) \(head.target.prefix(64)) takes no body; send it without")
    }
  }

  private static func isRecordHeader(_ name: String) -> Bool {
    name.hasPrefix("sluice-header-") && name != "sluice-header-"
  }

  private static func unknown(_ kind: String, _ name: String, _ known: [String]) -> HTTPProblem {
    let name = name.prefix(64)
    guard !known.isEmpty else {
      let all = kind == "field" ? "\(kind) that begins with Sluice-" : kind
      return HTTPProblem(400, "there is no \(kind) '\(name)' here: the request has no \(all)")
    }
    let all = "here are \(known.joined(separator: ", "))"
    guard let near = Spelling.nearest(to: String(name), in: known) else {
      return HTTPProblem(400, "there is no \(kind) '\(name)' here; t\(all)")
    }
    return HTTPProblem(400, "there is no \(kind) '\(name)' here; did you mean '\(near)'? T\(all)")
  }
}
