import SluiceIO

/// A server's address: `nats://HOST:PORT`, `tls://HOST:PORT`, or without a scheme; the port is 4222 if none is given.
public struct NATSAddress: Hashable, Sendable, CustomStringConvertible {
  /// A name or a numeric address, without brackets.
  public var host: String
  public var port: UInt16
  /// Whether the connection must be encrypted. Without it, the client still uses TLS if the server requests it.
  public var requiresTLS: Bool

  public static let defaultPort: UInt16 = 4_222

  public init(_ host: String, port: UInt16 = NATSAddress.defaultPort, requiresTLS: Bool = false) {
    self.host = host
    self.port = port
    self.requiresTLS = requiresTLS
  }

  /// - Throws: ``NATSError/Code-swift.struct/invalidAddress`` with the expected form.
  public init(parsing text: String) throws(NATSError) {
    var rest = text[...]
    requiresTLS = false
    if let mark = text.firstRange(of: "://") {
      switch text[..<mark.lowerBound].lowercased() {
      case "nats": break
      case "tls": requiresTLS = true
      case let scheme:
        throw Self.invalid(text, "the scheme is '\(scheme)'; use nats:// or tls://")
      }
      rest = text[mark.upperBound...]
    }
    if rest.hasSuffix("/") { rest = rest.dropLast() }
    guard !rest.contains("@") else {
      throw NATSError(
        .invalidAddress,
        "an address of a NATS server has a user or password in it, which other users of the machine could read; give credentials in a file or in the settings"
      )
    }
    let hasPort = rest.hasPrefix("[") ? !rest.hasSuffix("]") : rest.contains(":")
    let address: SocketAddress
    do {
      address = try SocketAddress(parsing: hasPort ? String(rest) : "\(rest):\(Self.defaultPort)")
    } catch {
      throw Self.invalid(text, error.problem)
    }
    guard case .host(let host, let port) = address, port > 0 else {
      throw Self.invalid(text, "write nats://HOST:PORT")
    }
    self.host = host
    self.port = port
  }

  /// Parses a list with commas between the addresses. A scheme also applies to the following addresses without one.
  public static func list(parsing text: String) throws(NATSError) -> [NATSAddress] {
    var addresses: [NATSAddress] = []
    var scheme = ""
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      let part = String(part.trimmingBlanks)
      if let mark = part.firstRange(of: "://") { scheme = String(part[..<mark.upperBound]) }
      addresses.append(try NATSAddress(parsing: part.contains("://") ? part : scheme + part))
    }
    return addresses
  }

  private static func invalid(_ text: String, _ problem: String) -> NATSError {
    NATSError(
      .invalidAddress,
      "'\(NATSError.bounded(text))' is no address of a NATS server: \(NATSError.bounded(problem))")
  }

  /// `127.0.0.1:4222`, with `tls://` if encryption is required.
  public var description: String { "\(requiresTLS ? socketAddressWithTLS : socketAddress)" }

  var socketAddress: SocketAddress { .host(host, port: port) }
  var socketAddressWithTLS: SocketAddress { .tls(host, port: port) }
}
