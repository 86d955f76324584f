import COpenSSL

/// Unpredictable bytes from OpenSSL's generator. From any thread.
public func secureRandomBytes(_ count: Int) -> [UInt8] {
  unsafe [UInt8](unsafeUninitializedCapacity: count) { buffer, filled in
    // It fails only where the system has no source of randomness: nothing that is done then would be secret.
    unsafe precondition(
      RAND_bytes(buffer.baseAddress, Int32(count)) == 1 || count == 0, "the system has no random bytes")
    filled = count
  }
}
