import COpenSSL

/// Whether two secrets are the same, in a time that tells nothing but their lengths. From any thread.
public func isEqualInConstantTime(_ left: [UInt8], _ right: [UInt8]) -> Bool {
  guard left.count == right.count else { return false }
  return unsafe CRYPTO_memcmp(left, right, left.count) == 0
}
