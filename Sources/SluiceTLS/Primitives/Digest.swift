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
