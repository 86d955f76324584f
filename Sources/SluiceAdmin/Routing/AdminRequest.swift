import SluiceCommand
import SluiceIO
import SluiceWire

/// The parts of a request that the listener uses.
struct AdminRequest: Sendable {
  var method = "GET"
  /// The path and the query, as they were received.
  var target = "/"
  var host: String?
  var origin: String?
  /// `Sec-Fetch-Site`: the origin of the request, as the browser states it.
  var fetchSite: String?
  var authorization: String?
  var accept: String?
  var contentType: String?
  /// The value of the header ``ActionCheck/header``.
  var token: String?
  /// Whether the request has a body, or may have one.
  var hasBody = false
  /// The body's length according to the request; nil if the request contains no valid length.
  var bodyLength: Int?
  /// The body of a request that may have one.
  var body: [UInt8] = []
  var peer = SocketAddress.unix("")
}

/// Prevents pages of other sites from reading data that this machine's browser can reach.
///
/// The owner of a domain can let its name resolve to 127.0.0.1, so that the browser treats this listener's pages as those of that domain (DNS rebinding). A
/// listener that only this machine can reach therefore answers only requests to `localhost` and numeric addresses, with any port, since a tunnel may use
/// another one. Other listeners accept any name, since they don't know their own.
///
/// An origin is accepted if it is the listener's own address with its scheme. A listener without TLS that others can reach may be behind a proxy that adds
/// TLS.
enum HostCheck {
  /// - Throws: 400 or 403, with the reason.
  static func check(
    _ request: AdminRequest, _ route: Route, isLocal: Bool, hasTLS: Bool
  ) throws(AdminProblem) {
    if isLocal {
      guard let host = request.host else { throw .badRequest("there is no Host header") }
      guard isOwn(host) else {
        throw .forbidden("this listener answers to localhost, 127.0.0.1 and [::1], not to '\(host)'")
      }
    }
    let schemes = hasTLS ? ["https"] : isLocal ? ["http"] : ["http", "https"]
    if let origin = request.origin, !isSame(origin, as: request.host, schemes) {
      throw .forbidden("pages of '\(origin)' may not use this")
    }
    // Pages of other sites may link to the dashboard, and nothing else.
    let isElsewhere = request.fetchSite == "cross-site" || request.fetchSite == "same-site"
    if isElsewhere, route != .dashboard { throw .forbidden("pages of other sites may not use this") }
  }

  static func isOwn(_ host: String) -> Bool {
    guard let name = withoutPort(host)?.lowercased() else { return false }
    if name == "localhost" || name == "[::1]" { return true }
    let parts = name.split(separator: ".", omittingEmptySubsequences: false)
    return parts.count == 4 && parts[0] == "127" && parts.allSatisfy { isDigits($0) && UInt8($0) != nil }
  }

  private static func withoutPort(_ host: String) -> Substring? {
    let start = host.hasPrefix("[") ? host.firstIndex(of: "]") ?? host.startIndex : host.startIndex
    guard let colon = host[start...].firstIndex(of: ":") else { return host[...] }
    let port = host[host.index(after: colon)...]
    return isDigits(port) ? host[..<colon] : nil
  }

  private static func isSame(_ origin: String, as host: String?, _ schemes: [String]) -> Bool {
    guard let host = host?.lowercased() else { return false }
    let origin = origin.lowercased()
    return schemes.contains { origin == "\($0)://\(host)" }
  }

  private static func isDigits(_ text: Substring) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }
}

/// The reason why a request is rejected: an HTTP status, and a message for the visitor.
struct AdminProblem: Error, Hashable, Sendable {
  var status: Int
  var message: String
  /// The header that a response of that status needs.
  var header: HTTPHeader?

  init(_ status: Int, _ message: String, _ header: HTTPHeader? = nil) {
    self.status = status
    self.message = message
    self.header = header
  }

  var response: HTTPResponse {
    var response = HTTPResponse.json(["status": .number(status), "error": .text(message)], status: status)
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
  /// The topic, if it exists, belongs to another node.
  static func elsewhere(_ name: String, _ node: ClusterInfo.Node) -> Self {
    notFound(
      "topic \(name) isn't at this node: node \(node.name), which clients reach at \(node.address), owns its shard; look at the page or API of that node"
    )
  }
}
