/// The origin of the page whose script makes a request: scheme, host and port (RFC 6454).
package enum HTTPOrigin {
  /// Whether an origin is the address that the client has connected to, in numbers or `localhost`, as some programs name it. A page can't have this
  /// origin, since nothing else answers there; one under a name could, by a name server of its own.
  package static func isAddress(_ origin: String, of host: String) -> Bool {
    guard let mark = origin.firstRange(of: "://"),
      origin[mark.upperBound...].lowercased() == host.lowercased()
    else { return false }
    let name = host.hasPrefix("[") ? host[...] : host.prefix { $0 != ":" }
    return name.lowercased() == "localhost" || name.hasPrefix("[")
      || !name.isEmpty && name.utf8.allSatisfy { (0x30...0x39).contains($0) || $0 == 0x2E }
  }
}
