/// Why a text isn't an address.
public struct SocketAddressError: Error, Hashable, Sendable, CustomStringConvertible {
  /// What was to be read.
  public var text: String
  /// What is wrong with it, and how it should be.
  public var problem: String

  /// "'localhost' is not an address: there is no port; write HOST:PORT, for example localhost:7420"
  public var description: String { "'\(text)' is not an address: \(problem)" }
}

extension SocketAddress {
  /// The longest path that the system takes for a Unix socket, in bytes.
  static let longestUnixPath = 107

  /// Reads `HOST:PORT`, `[V6]:PORT`, either of them behind `tls://`, or `unix:PATH`.
  ///
  /// A host is a name or a numeric address; names aren't looked up here. A port is a number from 0 to 65535.
  ///
  /// - Throws: `SocketAddressError`, whose description says what is wrong.
  public init(parsing text: String) throws(SocketAddressError) {
    func fail(_ problem: String) -> SocketAddressError { SocketAddressError(text: text, problem: problem) }

    if text.hasPrefix("unix:") {
      let path = String(text.dropFirst("unix:".count))
      if path.isEmpty { throw fail("there is no path; write unix:PATH") }
      if path.utf8.contains(0) { throw fail("a path can't contain a zero byte") }
      if path.utf8.count > Self.longestUnixPath {
        throw fail(
          "a Unix socket's path has \(Self.longestUnixPath) bytes at most, this one has \(path.utf8.count)")
      }
      self = .unix(path)
      return
    }

    let isSecure = text.hasPrefix("tls://")
    let text = text.dropFirst(isSecure ? "tls://".count : 0)
    let host: Substring
    let port: Substring
    if text.hasPrefix("[") {
      guard let bracket = text.firstIndex(of: "]") else {
        throw fail("']' is missing after the IPv6 address")
      }
      host = text[text.index(after: text.startIndex)..<bracket]
      let rest = text[text.index(after: bracket)...]
      guard rest.hasPrefix(":") else { throw fail("there is no port; write [\(host)]:PORT") }
      guard host.contains(":") else { throw fail("only an IPv6 address stands in brackets") }
      port = rest.dropFirst()
    } else {
      guard let colon = text.lastIndex(of: ":") else {
        throw fail("there is no port; write HOST:PORT, for example \(text.isEmpty ? "localhost" : text):7420")
      }
      host = text[..<colon]
      port = text[text.index(after: colon)...]
      if host.isEmpty { throw fail("there is no host; write 0.0.0.0:\(port) for every interface") }
      if host.contains(":") { throw fail("an IPv6 address needs brackets; write [V6]:PORT") }
    }
    if let bad = host.utf8.first(where: { $0 <= 0x20 || $0 == 0x7f || $0 == UInt8(ascii: "/") }) {
      throw fail("a host can't contain \(bad == UInt8(ascii: "/") ? "'/'" : "spaces or control characters")")
    }
    let isNumber =
      !port.isEmpty && port.utf8.allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains($0) }
    guard isNumber, let number = UInt16(port) else {
      throw fail("a port is a number from 0 to 65535, not '\(port)'")
    }
    self = isSecure ? .tls(String(host), port: number) : .host(String(host), port: number)
  }
}
