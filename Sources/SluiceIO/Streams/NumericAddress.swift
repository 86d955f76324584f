import Glibc

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
  public var hasTLS: Bool { if case .tls = self { true } else { false } }

  /// Whether only programs of this machine get there. Of names only `localhost`: others may resolve to anything.
  public var isOnThisMachine: Bool {
    switch self {
    case .unix: true
    case .host(let host, _), .tls(let host, _):
      NumericAddress(host).map(\.isLoopback) ?? (host.lowercased() == "localhost")
    }
  }
}
