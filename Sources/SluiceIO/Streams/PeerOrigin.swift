import Glibc
import SluiceIO

/// What of a peer's address counts as one place to come from.
///
/// Of IPv6 that is the first 64 bits: the rest is the peer's to choose. IPv4 is the same whether it comes by itself or within IPv6.
enum PeerOrigin: Hashable, Sendable, CustomStringConvertible {
  case v4(UInt32)
  case v6(UInt64)
  /// A name, on networks that have no numbers.
  case other(String)

  /// Nil for a Unix socket: the file's permissions say who may connect there.
  init?(_ address: SocketAddress) {
    switch address {
    case .unix: return nil
    case .host(let host, _), .tls(let host, _): self.init(host: host)
    }
  }

  private init(host: String) {
    var v4 = in_addr()
    if unsafe inet_pton(AF_INET, host, &v4) == 1 {
      self = .v4(UInt32(bigEndian: v4.s_addr))
      return
    }
    var v6 = in6_addr()
    let plain = host.prefix { $0 != "%" }
    guard unsafe inet_pton(AF_INET6, String(plain), &v6) == 1 else {
      self = .other(host)
      return
    }
    let (first, second) = unsafe withUnsafeBytes(of: &v6) {
      unsafe (
        UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 0, as: UInt64.self)),
        UInt64(bigEndian: $0.loadUnaligned(fromByteOffset: 8, as: UInt64.self))
      )
    }
    let isMapped = first == 0 && second >> 32 == 0xFFFF
    self = isMapped ? .v4(UInt32(truncatingIfNeeded: second)) : .v6(first)
  }

  var description: String {
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
