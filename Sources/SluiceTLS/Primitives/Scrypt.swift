import COpenSSL

/// The key derivation of RFC 7914, which makes passwords slow to guess.
public enum Scrypt {
  /// What it costs. Memory is 128 · N · r bytes and somewhat more, time grows with N · r · p.
  public struct Cost: Hashable, Sendable {
    /// The logarithm of N.
    public var logN: Int
    public var r: Int
    public var p: Int

    public init(logN: Int, r: Int, p: Int) {
      self.logN = logN
      self.r = r
      self.p = p
    }

    /// 32 MiB, and about a tenth of a second.
    public static let standard = Cost(logN: 15, r: 8, p: 1)

    /// Whether a derivation at this cost ends in seconds, within 256 MiB.
    public var isBearable: Bool {
      guard (1...20).contains(logN), (1...32).contains(r), (1...16).contains(p) else { return false }
      return memory <= 256 << 20 && work <= 1 << 22
    }

    /// N · r · p: how often a block is mixed.
    public var work: Int { (1 << logN) * r * p }
    private var memory: Int { 128 * r * ((1 << logN) + p + 2) }

    /// What OpenSSL may take: it counts somewhat otherwise.
    fileprivate var memoryLimit: UInt64 { UInt64(memory) + (1 << 20) }
  }

  /// Derives `count` bytes. Takes as long and as much memory as the cost says: not for an event loop. From any thread.
  ///
  /// - Returns: nil for a cost that isn't bearable, or that the parameters' rules forbid, and where there is no memory for it.
  public static func derive(
    password: some Sequence<UInt8>, salt: [UInt8], cost: Cost, count: Int
  ) -> [UInt8]? {
    guard cost.isBearable, count > 0 else { return nil }
    let password = password.map { CChar(bitPattern: $0) }
    var isDerived = false
    let key = unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
      isDerived =
        unsafe EVP_PBE_scrypt(
          password, password.count, salt, salt.count, 1 << UInt64(cost.logN), UInt64(cost.r), UInt64(cost.p),
          cost.memoryLimit, buffer.baseAddress, count) == 1
      filled = isDerived ? count : 0
    }
    // A thread's errors stay in a queue, where TLS on the same thread would take them for its own.
    if !isDerived { ERR_clear_error() }
    return isDerived ? key : nil
  }
}
