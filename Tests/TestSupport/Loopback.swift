import Glibc
import Synchronization

/// The loopback interface, which on Linux has sixteen million addresses.
public enum Loopback {
  private static let used = Atomic<UInt32>(0)
  private static let hasMany = canBind(host(number: 1))

  /// An address that this process hasn't used before, and that others are unlikely to use.
  ///
  /// Another process may take a free port at any time; with a separate address a test needn't care.
  public static func freshHost() -> String {
    hasMany ? host(number: used.wrappingAdd(1, ordering: .relaxed).newValue) : "127.0.0.1"
  }

  private static func host(number: UInt32) -> String {
    let process = UInt32(truncatingIfNeeded: getpid())
    return "127.\(1 + process % 250).\((process / 250 + number / 250) % 250).\(1 + number % 250)"
  }

  /// A sandbox may support only one address.
  private static func canBind(_ host: String) -> Bool {
    let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    inet_pton(AF_INET, host, &address.sin_addr)
    return withUnsafeBytes(of: &address) {
      bind(descriptor, $0.baseAddress!.assumingMemoryBound(to: sockaddr.self), socklen_t($0.count)) == 0
    }
  }
}
