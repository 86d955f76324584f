import COpenSSL

/// Keys in PEM, in memory.
enum KeyText {
  // With a function for the pass phrase that has none: OpenSSL's own would ask the terminal.
  static func publicKey(_ pem: [UInt8]) -> OpaquePointer? {
    unsafe read(pem) { unsafe PEM_read_bio_PUBKEY($0, nil, { _, _, _, _ in -1 }, nil) }
  }

  static func privateKey(_ pem: [UInt8]) -> OpaquePointer? {
    unsafe read(pem) { unsafe PEM_read_bio_PrivateKey($0, nil, { _, _, _, _ in -1 }, nil) }
  }

  static func publicText(_ key: OpaquePointer) -> [UInt8] {
    unsafe write { unsafe PEM_write_bio_PUBKEY($0, key) }
  }

  /// Without a pass phrase.
  static func privateText(_ key: OpaquePointer) -> [UInt8] {
    unsafe write { unsafe PEM_write_bio_PKCS8PrivateKey($0, key, nil, nil, 0, nil, nil) }
  }

  /// Whether a text is what must stay secret.
  static func isPrivate(_ pem: [UInt8]) -> Bool {
    String(decoding: pem, as: UTF8.self).contains("PRIVATE KEY-----")
  }

  static func isEncrypted(_ pem: [UInt8]) -> Bool {
    let text = String(decoding: pem, as: UTF8.self)
    return text.contains("BEGIN ENCRYPTED PRIVATE KEY") || text.contains("Proc-Type: 4,ENCRYPTED")
  }

  private static func read(_ pem: [UInt8], _ body: (OpaquePointer) -> OpaquePointer?) -> OpaquePointer? {
    defer { ERR_clear_error() }
    return unsafe pem.withUnsafeBytes { bytes -> OpaquePointer? in
      guard let count = Int32(exactly: bytes.count), count > 0,
        let bio = unsafe BIO_new_mem_buf(bytes.baseAddress, count)
      else { return nil }
      defer { unsafe BIO_free(bio) }
      return unsafe body(bio)
    }
  }

  private static func write(_ body: (OpaquePointer) -> Int32) -> [UInt8] {
    guard let bio = unsafe BIO_new(BIO_s_mem()) else { return [] }
    defer { unsafe BIO_free(bio) }
    guard unsafe body(bio) == 1 else { return [] }
    var text: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4096)
    while true {
      let count = unsafe BIO_read(bio, &chunk, Int32(chunk.count))
      guard count > 0 else { return text }
      text += chunk.prefix(Int(count))
    }
  }
}
