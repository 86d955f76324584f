import COpenSSL

/// TLS's usual cipher by itself, as the limit of the speed of a TLS connection.
enum BlockCipher {
  /// Encrypts `count` blocks of `size` bytes with AES-256-GCM, each with its own nonce and tag, like TLS records. Returns false if OpenSSL fails.
  static func encrypt(blocks count: Int, of size: Int) -> Bool {
    guard let context = EVP_CIPHER_CTX_new() else { return false }
    defer { EVP_CIPHER_CTX_free(context) }
    let key = [UInt8](repeating: 7, count: 32)
    guard EVP_EncryptInit_ex(context, EVP_aes_256_gcm(), nil, key, nil) == 1 else { return false }
    let buffer = UnsafeMutablePointer<UInt8>.allocate(capacity: size + 64)
    buffer.initialize(repeating: 1, count: size + 64)
    defer { buffer.deallocate() }
    var nonce = [UInt8](repeating: 0, count: 12)
    var tag = [UInt8](repeating: 0, count: 16)
    var length: Int32 = 0
    for number in 0..<count {
      for index in 0..<8 { nonce[4 + index] = UInt8(truncatingIfNeeded: number >> (8 * index)) }
      guard EVP_EncryptInit_ex(context, nil, nil, nil, nonce) == 1,
        EVP_EncryptUpdate(context, buffer, &length, buffer, Int32(size)) == 1,
        EVP_EncryptFinal_ex(context, buffer + Int(length), &length) == 1,
        EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, &tag) == 1
      else { return false }
    }
    return true
  }
}
