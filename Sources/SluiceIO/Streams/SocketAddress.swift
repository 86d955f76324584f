import Glibc

/// A protocol other than the broker's own by which clients reach its topics.
public enum Door: String, Hashable, Sendable, CaseIterable {
  /// WebSockets: the native protocol in binary messages.
  case webSocket = "ws"
  /// HTTP/1.1.
  case http
  /// MQTT 5 and 3.1.1.
  case mqtt

  /// `ws` or `wss`.
  func scheme(isSecure: Bool) -> String { isSecure ? rawValue + "s" : rawValue }
}

/// Where to listen or connect: a host and port, with TLS or without, or a Unix socket's path.
///
/// Written `HOST:PORT`, `[V6]:PORT`, `tls://HOST:PORT`, `unix:PATH`, or with the scheme of a ``Door``: `ws://HOST:PORT`, `mqtts://HOST:PORT`.
public enum SocketAddress: Hashable, Sendable, CustomStringConvertible {
  /// A name or a numeric address, without brackets. Port 0 means any free one when listening.
  case host(String, port: UInt16)
  /// The same with TLS over it. Only a network that was set up for it knows how.
  case tls(String, port: UInt16)
  /// The same by another protocol, with TLS or without. Only a network that was set up for it knows how.
  case door(Door, String, port: UInt16, isSecure: Bool)
  /// A path in the file system.
  case unix(String)

  public var description: String {
    switch self {
    case .host(let host, let port): host.contains(":") ? "[\(host)]:\(port)" : "\(host):\(port)"
    case .tls(let host, let port): "tls://\(SocketAddress.host(host, port: port))"
    case .door(let door, let host, let port, let isSecure):
      "\(door.scheme(isSecure: isSecure))://\(SocketAddress.host(host, port: port))"
    case .unix(let path): "unix:\(path)"
    }
  }
}

/// Why a text isn't an address.
public struct SocketAddressError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The text that was read.
  public var text: String
  /// The mistake in it, and the correct form.
  public var problem: String

  /// "'localhost' is not an address: there is no port; write HOST:PORT, for example localhost:7420"
  public var description: String { "'\(text)' is not an address: \(problem)" }
}

extension SocketAddress {
  /// The longest path that the system takes for a Unix socket, in bytes.
  static let longestUnixPath = 107

  /// Reads `HOST:PORT`, `[V6]:PORT`, either of them behind `tls://` or the scheme of a ``Door``, or `unix:PATH`.
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

    let (scheme, text) = Self.schemed(text)
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
    self =
      switch scheme {
      case .none: .host(String(host), port: number)
      case .tls: .tls(String(host), port: number)
      case .door(let door, let isSecure): .door(door, String(host), port: number, isSecure: isSecure)
      }
  }

  private enum Scheme {
    case none
    case tls
    case door(Door, isSecure: Bool)
  }

  /// Takes the scheme off a text.
  private static func schemed(_ text: String) -> (Scheme, Substring) {
    guard let range = text.utf8.firstIndex(of: UInt8(ascii: ":")), text[range...].hasPrefix("://") else {
      return (.none, text[...])
    }
    let (name, rest) = (text[..<range], text[range...].dropFirst(3))
    if name == "tls" { return (.tls, rest) }
    for door in Door.allCases {
      for isSecure in [false, true] where name == door.scheme(isSecure: isSecure) {
        return (.door(door, isSecure: isSecure), rest)
      }
    }
    return (.none, text[...])
  }
}

/// An address of IPv4 or IPv6, in numbers. One of IPv4 is the same whether it comes by itself or within IPv6 (`::ffff:10.0.0.1`).
public enum NumericAddress: Hashable, Sendable {
  case v4(UInt32)
  /// The network's half, and the interface's.
  case v6(network: UInt64, interface: UInt64)

  /// Nil for a name. A zone behind a percent sign doesn't matter.
  public init?(_ host: String) {
    var four = in_addr()
    if unsafe inet_pton(AF_INET, host, &four) == 1 {
      self = .v4(UInt32(bigEndian: four.s_addr))
      return
    }
    var six = [UInt8](repeating: 0, count: 16)
    guard unsafe inet_pton(AF_INET6, String(host.prefix { $0 != "%" }), &six) == 1 else { return nil }
    let network = six[..<8].reduce(0) { $0 << 8 | UInt64($1) }
    let interface = six[8...].reduce(0) { $0 << 8 | UInt64($1) }
    let isMapped = network == 0 && interface >> 32 == 0xFFFF
    self = isMapped ? .v4(UInt32(truncatingIfNeeded: interface)) : .v6(network: network, interface: interface)
  }

  /// Whether it stands for this machine, and can't be reached from another: `127.0.0.0/8` and `::1`.
  public var isLoopback: Bool {
    switch self {
    case .v4(let number): number >> 24 == 127
    case .v6(let network, let interface): network == 0 && interface == 1
    }
  }
}

extension SocketAddress {
  public var hasTLS: Bool {
    switch self {
    case .tls: true
    case .door(_, _, _, let isSecure): isSecure
    case .host, .unix: false
    }
  }

  /// The protocol by which it is reached; nil for the broker's own.
  public var door: Door? { if case .door(let door, _, _, _) = self { door } else { nil } }

  /// The same host and port without TLS and without a gateway's protocol; nil for a Unix socket.
  package var plain: SocketAddress? {
    switch self {
    case .host(let host, let port), .tls(let host, let port), .door(_, let host, let port, _):
      .host(host, port: port)
    case .unix: nil
    }
  }

  /// The same scheme at the host and port of another address.
  package func bound(to address: SocketAddress) -> SocketAddress {
    switch (self, address.plain) {
    case (.tls, .host(let host, let port)): .tls(host, port: port)
    case (.door(let door, _, _, let isSecure), .host(let host, let port)):
      .door(door, host, port: port, isSecure: isSecure)
    default: address
    }
  }

  /// The port; nil for a Unix socket.
  package var port: UInt16? {
    switch self {
    case .host(_, let port), .tls(_, let port), .door(_, _, let port, _): port
    case .unix: nil
    }
  }

  /// The name or the numeric address; nil for a Unix socket.
  public var host: String? {
    switch self {
    case .host(let host, _), .tls(let host, _), .door(_, let host, _, _): host
    case .unix: nil
    }
  }

  /// Whether only programs of this machine get there. Of names only `localhost`: others may resolve to anything.
  public var isOnThisMachine: Bool {
    guard let host else { return true }
    return NumericAddress(host).map(\.isLoopback) ?? (host.lowercased() == "localhost")
  }
}

/// The part of a peer's address by which peers are counted or delayed.
///
/// Of IPv6 that is the first 64 bits: the rest is the peer's to choose. IPv4 is the same whether it comes by itself or within IPv6.
public enum PeerOrigin: Hashable, Sendable, CustomStringConvertible {
  case v4(UInt32)
  case v6(UInt64)
  /// A name, on networks that have no numbers.
  case other(String)

  /// Nil for a Unix socket: the file's permissions limit connections there.
  public init?(_ address: SocketAddress) {
    guard let host = address.host else { return nil }
    self = PeerOrigin(numeric: host) ?? .other(host)
  }

  /// Nil for what isn't a numeric address.
  public init?(numeric host: String) {
    switch NumericAddress(host) {
    case .v4(let number): self = .v4(number)
    case .v6(let network, _): self = .v6(network)
    case nil: return nil
    }
  }

  public var description: String {
    switch self {
    case .v4(let number):
      return (0..<4).map { String(number >> (24 - 8 * $0) & 0xFF) }.joined(separator: ".")
    case .v6(let prefix):
      return (0..<4).map { String(prefix >> (48 - 16 * $0) & 0xFFFF, radix: 16) }.joined(separator: ":")
        + "::/64"
    case .other(let name): return name
    }
  }
}
