import COpenSSL

/// The half of a key pair that signs. From any thread.
// @unchecked: the key isn't changed after `init`, and OpenSSL reads a key from several threads.
@safe
public final class PrivateKey: @unchecked Sendable {
  public let kind: KeyKind
  private let key: OpaquePointer

  private init(owned key: OpaquePointer) throws(KeyError) {
    do {
      kind = try unsafe KeyKind(key)
    } catch {
      unsafe EVP_PKEY_free(key)
      throw error
    }
    unsafe self.key = unsafe key
  }

  /// Reads PEM: `-----BEGIN PRIVATE KEY-----`, without a pass phrase.
  ///
  /// - Throws: ``KeyError`` when there is no such key, when it needs a pass phrase, or is too weak.
  public convenience init(pem: [UInt8]) throws(KeyError) {
    guard !KeyText.isEncrypted(pem) else {
      throw KeyError(
        "a key with a pass phrase; take that off with openssl pkey, and keep the file to yourself")
    }
    guard let key = unsafe KeyText.privateKey(pem) else {
      throw KeyError("no private key in PEM, which begins with -----BEGIN PRIVATE KEY-----")
    }
    unsafe try self.init(owned: key)
  }

  /// The Ed25519 key that belongs to a seed.
  ///
  /// - Throws: ``KeyError`` when the seed doesn't have 32 bytes.
  public convenience init(ed25519Seed seed: [UInt8]) throws(KeyError) {
    guard seed.count == 32,
      let key = unsafe EVP_PKEY_new_raw_private_key_ex(nil, "ED25519", nil, seed, seed.count)
    else {
      ERR_clear_error()
      throw KeyError("no seed of an Ed25519 key: it has \(seed.count) bytes rather than 32")
    }
    unsafe try self.init(owned: key)
  }

  /// The public key of an Ed25519 key as its 32 bytes; nil for a key of another kind.
  public var ed25519Public: [UInt8]? {
    guard kind == .ed25519 else { return nil }
    var bytes = [UInt8](repeating: 0, count: 32)
    var count = bytes.count
    guard unsafe EVP_PKEY_get_raw_public_key(key, &bytes, &count) == 1, count == 32 else {
      ERR_clear_error()
      return nil
    }
    return bytes
  }

  /// Makes a new one. Takes up to seconds for RSA.
  ///
  /// - Throws: ``KeyError`` for an RSA key of a length that can't be used.
  public static func generate(_ kind: KeyKind) throws(KeyError) -> PrivateKey {
    let name: String
    switch kind {
    case .ed25519: name = "ED25519"
    case .rsa(let bits):
      guard KeyKind.rsaBits.contains(bits) else {
        throw KeyError("\(bits) bits can't be the length of an RSA key here")
      }
      name = "RSA"
    }
    var key: OpaquePointer?
    if let context = unsafe EVP_PKEY_CTX_new_from_name(nil, name, nil) {
      defer { unsafe EVP_PKEY_CTX_free(context) }
      var isReady = unsafe EVP_PKEY_keygen_init(context) == 1
      if isReady, case .rsa(let bits) = kind {
        isReady = unsafe EVP_PKEY_CTX_set_rsa_keygen_bits(context, Int32(bits)) == 1
      }
      if isReady { unsafe EVP_PKEY_generate(context, &key) }
    }
    ERR_clear_error()
    guard let key = unsafe key else { throw KeyError("nothing: OpenSSL can't make keys for \(name)") }
    return try unsafe PrivateKey(owned: key)
  }

  deinit { unsafe EVP_PKEY_free(key) }

  /// The key, for a file that only its owner can read.
  public var pem: [UInt8] { unsafe KeyText.privateText(key) }
  /// The public key, for verifying signatures.
  public var publicPEM: [UInt8] { unsafe KeyText.publicText(key) }

  /// Signs; nil when OpenSSL can't.
  public func sign(_ message: [UInt8]) -> [UInt8]? {
    guard let context = unsafe EVP_MD_CTX_new() else { return nil }
    defer {
      unsafe EVP_MD_CTX_free(context)
      ERR_clear_error()
    }
    guard unsafe EVP_DigestSignInit_ex(context, nil, kind.digest, nil, nil, key, nil) == 1 else { return nil }
    var count = unsafe Int(EVP_PKEY_get_size(key))
    var signature = [UInt8](repeating: 0, count: count)
    guard unsafe EVP_DigestSign(context, &signature, &count, message, message.count) == 1 else { return nil }
    return Array(signature.prefix(count))
  }
}
