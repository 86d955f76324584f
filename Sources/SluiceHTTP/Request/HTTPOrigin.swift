/// The origin of the page whose script makes a request: scheme, host and port (RFC 6454).
package enum HTTPOrigin {
  /// Returns whether an origin is the address to which the client has connected, as numbers or `localhost`. Some programs send it. No other server answers
  /// there, so a page can't have this origin. A page could have an origin with a name, through a name server of its own.
  package static func isAddress(_ origin: String, of host: String) -> Bool {
    guard let mark = origin.firstRange(of: "://"),
      origin[mark.upperBound...].lowercased() == host.lowercased()
    else { return false }
    let name = host.hasPrefix("[") ? host[...] : host.prefix { $0 != ":" }
    return name.lowercased() == "localhost" || name.hasPrefix("[")
      || !name.isEmpty && name.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2E }
  }
}
