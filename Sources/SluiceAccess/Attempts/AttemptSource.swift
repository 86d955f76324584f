import Glibc

/// Where attempts come from, as far as they are counted together: an address of IPv4, or a network of 64 bits of IPv6.
struct AttemptSource: Hashable, Sendable {
  private var prefix: UInt64
  private var isIPv6: Bool

  /// Nil for what isn't a numeric address. A zone behind a percent sign doesn't matter.
  init?(_ host: String?) {
    guard let host else { return nil }
    var four = in_addr()
    if unsafe inet_pton(AF_INET, host, &four) == 1 {
      prefix = UInt64(UInt32(bigEndian: four.s_addr))
      isIPv6 = false
      return
    }
    var six = [UInt8](repeating: 0, count: 16)
    guard unsafe inet_pton(AF_INET6, String(host.prefix { $0 != "%" }), &six) == 1 else { return nil }
    // ::ffff:a.b.c.d is an address of IPv4.
    isIPv6 = !(six[..<10].allSatisfy { $0 == 0 } && six[10] == 0xFF && six[11] == 0xFF)
    prefix = (isIPv6 ? six[..<8] : six[12...]).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
