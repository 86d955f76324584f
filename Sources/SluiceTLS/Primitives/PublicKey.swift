import COpenSSL

/// The kind of signatures of a key pair.
public enum KeyKind: Hashable, Sendable {
  case ed25519
  /// RSASSA-PKCS1-v1_5 with SHA-256, with a modulus of so many bits.
  case rsa(bits: Int)

  /// Shorter moduli can be factored; longer ones only take time.
  static let rsaBits = 2048...8192

  init(_ key: OpaquePointer) throws(KeyError) {
    if unsafe EVP_PKEY_is_a(key, "ED25519") == 1 {
      self = .ed25519
    } else if unsafe EVP_PKEY_is_a(key, "RSA") == 1 {
      let bits = unsafe Int(EVP_PKEY_get_bits(key))
      guard Self.rsaBits.contains(bits) else {
        throw KeyError(
          "an RSA key of \(bits) bits; it needs \(Self.rsaBits.lowerBound) to \(Self.rsaBits.upperBound)")
      }
      self = .rsa(bits: bits)
    } else {
      let name = unsafe EVP_PKEY_get0_type_name(key).map { unsafe String(cString: $0) } ?? "unknown"
      throw KeyError("a key for \(name); Ed25519 and RSA are what can be used")
    }
  }

  /// The digest that belongs to the signature; Ed25519 has its own.
  var digest: String? {
    switch self {
    case .ed25519: nil
    case .rsa: "SHA256"
    }
  }
}

/// Why a file has no key that can be used, as the end of a sentence: "an RSA key of 1024 bits; …".
public struct KeyError: Error, Hashable, Sendable, CustomStringConvertible {
  public var description: String

  init(_ description: String) {
    self.description = description
  }
}

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
