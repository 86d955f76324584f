import COpenSSL

/// The SHA-256 of some bytes. From any thread.
public func sha256(_ bytes: [UInt8]) -> [UInt8] {
  unsafe [UInt8](unsafeUninitializedCapacity: 32) { buffer, filled in
    var count = 0
    let isDone = unsafe EVP_Q_digest(nil, "SHA256", nil, bytes, bytes.count, buffer.baseAddress, &count) == 1
    precondition(isDone && count == 32, "OpenSSL has no SHA-256")
    filled = count
  }
}

/// The SHA-1 of some bytes: not for secrets, but for protocols that prescribe it. From any thread.
public func sha1(_ bytes: [UInt8]) -> [UInt8] {
  unsafe [UInt8](unsafeUninitializedCapacity: 20) { buffer, filled in
    var count = 0
    let isDone = unsafe EVP_Q_digest(nil, "SHA1", nil, bytes, bytes.count, buffer.baseAddress, &count) == 1
    precondition(isDone && count == 20, "OpenSSL has no SHA-1")
    filled = count
  }
}

/// The HMAC-SHA-256 of some bytes under a secret key. From any thread.
public func hmacSHA256(_ bytes: [UInt8], key: [UInt8]) -> [UInt8] {
  // OpenSSL takes a null pointer for "the key from before".
  let secret = key.isEmpty ? [0] : key
  return unsafe [UInt8](unsafeUninitializedCapacity: 32) { buffer, filled in
    var count = 0
    let end = unsafe EVP_Q_mac(
      nil, "HMAC", nil, "SHA256", nil, secret, key.count, bytes, bytes.count, buffer.baseAddress, 32, &count)
    unsafe precondition(end != nil && count == 32, "OpenSSL has no HMAC with SHA-256")
    filled = count
  }
}

/// Unpredictable bytes from OpenSSL's generator. From any thread.
public func secureRandomBytes(_ count: Int) -> [UInt8] {
  unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
    // It fails only where the system has no source of randomness: nothing that is done then would be secret.
    unsafe precondition(
      RAND_bytes(buffer.baseAddress, Int32(count)) == 1 || count == 0, "the system has no random bytes")
    filled = count
  }
}

/// The key derivation of RFC 7914, which makes passwords slow to guess.
public enum Scrypt {
  /// Its cost. Memory is 128 · N · r bytes and somewhat more, time grows with N · r · p.
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

    /// The limit for OpenSSL, which counts slightly differently.
    fileprivate var memoryLimit: UInt64 { UInt64(memory) + (1 << 20) }
  }

  /// Derives `count` bytes. Takes as long and as much memory as the cost says: not for an event loop. From any thread.
  ///
  /// - Returns: nil for a cost that is too high or that the rules of the parameters forbid, and if there is no memory for it.
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

/// Whether two secrets are the same, in a time that depends on their lengths only. From any thread.
public func isEqualInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  guard left.count == right.count else { return false }
  return unsafe CRYPTO_memcmp(left, right, left.count) == 0
}
