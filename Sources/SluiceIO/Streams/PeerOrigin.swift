/// What of a peer's address counts as one place to come from, where peers are counted or slowed down.
///
/// Of IPv6 that is the first 64 bits: the rest is the peer's to choose. IPv4 is the same whether it comes by itself or within IPv6.
public enum PeerOrigin: Hashable, Sendable, CustomStringConvertible {
  case v4(UInt32)
  case v6(UInt64)
  /// A name, on networks that have no numbers.
  case other(String)

  /// Nil for a Unix socket: the file's permissions limit connections there.
  public init?(_ address: SocketAddress) {
    switch address {
    case .unix: return nil
    case .host(let host, _), .tls(let host, _): self = PeerOrigin(numeric: host) ?? .other(host)
    }
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
