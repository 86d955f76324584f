import SluiceCommand
import SluiceHTTP

// The names that requests may use. An unknown name is refused: if a misspelt name were ignored, the request would do something else and still succeed.
extension HTTPRequest {
  /// Conditions, all of which must hold.
  private static let repeatable: Set = ["header", "key", "key-base64", "key-prefix"]
  private static let recordFields = ["Sluice-Key", "Sluice-Key-Base64", "Sluice-Header-NAME"]

  /// The content of a request's body.
  enum Body {
    case none
    /// One record, or several.
    case records
    /// Settings of a topic, or offsets.
    case statement
  }

  /// Checks the names of parameters and of the gateway's own fields, `Sluice-…`. Other fields belong to HTTP, to proxies or to browsers.
  ///
  /// - Parameters:
  ///   - known: the request's parameters; nil if they are a topic's settings, whose names are checked when they are parsed.
  ///   - use: the content of the body.
  /// - Throws: ``HTTPProblem`` for a body that would be ignored, for an unknown name, and for a repeated name that may appear only once.
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
