import COpenSSL

/// The half of a key pair that checks signatures. From any thread.
// @unchecked: the key isn't changed after `init`, and OpenSSL reads a key from several threads.
@safe
public final class PublicKey: @unchecked Sendable {
  public let kind: KeyKind
  /// Changes when the key does.
  public let fingerprint: [UInt8]
  private let key: OpaquePointer

  /// Reads PEM: `-----BEGIN PUBLIC KEY-----`.
  ///
  /// - Throws: ``KeyError`` when there is no such key, when it is a private one, or too weak.
  public init(pem: [UInt8]) throws(KeyError) {
    guard !KeyText.isPrivate(pem) else {
      throw KeyError("a private key, which must stay with the signer; a public key belongs here")
    }
    guard let key = unsafe KeyText.publicKey(pem) else {
      throw KeyError("no public key in PEM, which begins with -----BEGIN PUBLIC KEY-----")
    }
    do {
      kind = try unsafe KeyKind(key)
    } catch {
      unsafe EVP_PKEY_free(key)
      throw error
    }
    unsafe self.key = unsafe key
    fingerprint = unsafe sha256(KeyText.publicText(key))
  }

  deinit { unsafe EVP_PKEY_free(key) }

  /// Whether `signature` was made of `message` by the other half.
  public func verify(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    guard let context = unsafe EVP_MD_CTX_new() else { return false }
    defer {
      unsafe EVP_MD_CTX_free(context)
      ERR_clear_error()
    }
    guard unsafe EVP_DigestVerifyInit_ex(context, nil, kind.digest, nil, nil, key, nil) == 1 else {
      return false
    }
    return unsafe EVP_DigestVerify(context, signature, signature.count, message, message.count) == 1
  }
}
