/// A request with a complete head and body.
package struct HTTPRequest: Sendable {
  package var head: HTTPRequestHead
  package var body: [UInt8] = []
  /// The components of the target's path, decoded.
  package let path: [String]
  package private(set) var query: [HTTPTarget.Parameter]

  /// - Throws: ``HTTPProblem`` for an invalid target.
  package init(_ head: HTTPRequestHead) throws(HTTPProblem) {
    self.head = head
    let target = try HTTPTarget(try Self.originForm(of: &self.head))
    path = target.path
    query = target.query
  }

  /// Returns the target without the scheme and the host of its absolute form, which proxies use; that host replaces the `Host` field (RFC 9112, 3.2.2).
  private static func originForm(of head: inout HTTPRequestHead) throws(HTTPProblem) -> Substring {
    for scheme in ["http://", "https://"] where head.target.lowercased().hasPrefix(scheme) {
      let rest = head.target.dropFirst(scheme.count)
      let host = rest.prefix { $0 != "/" && $0 != "?" }
      guard !host.isEmpty else { break }
      head.fields.removeAll { $0.name.lowercased() == "host" }
      head.fields.append(HTTPRequestHead.Field(name: "Host", value: String(host)))
      let path = rest[host.endIndex...]
      return path.hasPrefix("/") ? path : "/" + path
    }
    return head.target[...]
  }

  package func parameter(_ name: String) -> String? { query.last { $0.name == name }?.value }

  /// Removes a parameter, and returns its value; nil if it is absent.
  package mutating func takeParameter(_ name: String) -> String? {
    defer { query.removeAll { $0.name == name } }
    return parameter(name)
  }

  package func field(_ name: String) -> String? { head.values(name).last }

  /// Whether the connection stays open after an answer with a known length (RFC 9112, 9.3): a client of HTTP/1.0 must request it.
  package var keepsAlive: Bool {
    let options = head.elements("connection").map { $0.lowercased() }
    return head.isOfHTTP10 ? options.contains("keep-alive") : !options.contains("close")
  }

  /// Whether the client waits for `100 Continue` before it sends the body (RFC 9110, 10.1.1).
  var expectsContinue: Bool {
    !head.isOfHTTP10 && head.elements("expect").contains { $0.lowercased() == "100-continue" }
  }

  /// Returns whether `Accept` names the type.
  package func accepts(_ type: String) -> Bool {
    head.elements("accept").contains { $0.prefix { $0 != ";" }.lowercased() == type }
  }

  /// The number of bytes of the body; nil for one in chunks (RFC 9112, 6.3).
  package func bodyLength() throws(HTTPProblem) -> Int? {
    let codings = head.elements("transfer-encoding")
    let lengths = head.values("content-length")
    guard codings.isEmpty else {
      guard !head.isOfHTTP10 else {
        throw HTTPProblem(400, "HTTP/1.0 has no Transfer-Encoding; send Content-Length")
      }
      guard lengths.isEmpty else {
        throw HTTPProblem(
          400, "the request has both Content-Length and Transfer-Encoding; send one of them")
      }
      guard codings.count == 1, codings[0].lowercased() == "chunked" else {
        throw HTTPProblem(501, "only the transfer coding chunked is understood")
      }
      return nil
    }
    guard let first = lengths.first else { return 0 }
    // A proxy in front may use another one of several lengths.
    guard lengths.count == 1 else {
      throw HTTPProblem(400, "the request has two Content-Length headers; send one")
    }
    guard !first.isEmpty, first.utf8.allSatisfy({ (0x30...0x39).contains($0) }), let length = Int(first)
    else { throw HTTPProblem(400, "Content-Length isn't a number") }
    return length
  }
}
