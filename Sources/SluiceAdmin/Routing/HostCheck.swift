/// Keeps pages of other sites from reading what this machine's browser can reach.
///
/// A name that somebody else's name server answers for can be made to stand for 127.0.0.1; the browser then takes our pages for his. So a listener
/// that only this machine reaches answers to `localhost` and to numbers alone, which can't be made to stand for anything, with any port: it may be
/// reached through a tunnel. Others answer to any name, since nobody knows what they are called.
enum HostCheck {
  /// - Throws: 400 or 403, and why.
  static func check(_ request: AdminRequest, _ route: Route, isLocal: Bool) throws(AdminProblem) {
    if isLocal {
      guard let host = request.host else { throw .badRequest("there is no Host header") }
      guard isOwn(host) else {
        throw .forbidden("this listener answers to localhost, 127.0.0.1 and [::1], not to '\(host)'")
      }
    }
    if let origin = request.origin, !isSame(origin, as: request.host) {
      throw .forbidden("pages of '\(origin)' may not use this")
    }
    // To follow a link to the dashboard is all that another site's page may have a browser do.
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

  /// A proxy in front may have TLS, and the browser say so.
  private static func isSame(_ origin: String, as host: String?) -> Bool {
    guard let host = host?.lowercased() else { return false }
    let origin = origin.lowercased()
    return origin == "http://\(host)" || origin == "https://\(host)"
  }

  private static func isDigits(_ text: Substring) -> Bool {
    !text.isEmpty && text.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
  }
}
