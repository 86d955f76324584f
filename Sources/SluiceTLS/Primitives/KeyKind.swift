import COpenSSL

/// What a key pair is for: signatures of one kind.
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
