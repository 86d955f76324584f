import SluiceTLS

/// A key with which a broker verifies tokens' signatures. The key decides the algorithm, whatever a token says.
public enum TokenKey: Sendable {
  /// HS256: a holder of the key can verify and sign. At least ``minimumSecret`` bytes.
  case secret([UInt8])
  /// EdDSA with Ed25519, or RS256.
  case publicKey(PublicKey)

  /// In bytes: as many as the signature has.
  public static let minimumSecret = 32

  /// Reads a file that checks signatures: a public key in PEM, or else a secret, without the line break at its end.
  ///
  /// - Throws: ``AccessTextError`` with what is wrong, as the end of a sentence.
  public init(_ bytes: [UInt8]) throws(AccessTextError) {
    self =
      bytes.starts(with: "-----BEGIN".utf8)
      ? try Self.publicKey(pem: bytes) : .secret(try Self.secretBytes(bytes))
  }

  /// A new secret, as text with a line break.
  public static func newSecret() -> [UInt8] {
    Array(Base64Text.url.encode(secureRandomBytes(48)).utf8) + [UInt8(ascii: "\n")]
  }

  static func publicKey(pem: [UInt8]) throws(AccessTextError) -> TokenKey {
    do {
      return .publicKey(try PublicKey(pem: pem))
    } catch {
      throw AccessTextError("it has \(error)")
    }
  }

  /// Any bytes; a line break at the end doesn't count.
  static func secretBytes(_ bytes: [UInt8]) throws(AccessTextError) -> [UInt8] {
    var secret = bytes[...]
    if secret.last == UInt8(ascii: "\n") { secret.removeLast() }
    if secret.last == UInt8(ascii: "\r") { secret.removeLast() }
    guard secret.count >= minimumSecret else {
      throw AccessTextError("it has \(secret.count) bytes, and a secret needs \(minimumSecret) at least")
    }
    guard !secret.starts(with: "-----BEGIN".utf8) else {
      throw AccessTextError("it has a key in PEM, which isn't a secret that both sides have")
    }
    return Array(secret)
  }

  var algorithm: TokenAlgorithm {
    switch self {
    case .secret: .hs256
    case .publicKey(let key): TokenAlgorithm(key.kind)
    }
  }

  func verify(_ signature: [UInt8], of message: [UInt8]) -> Bool {
    switch self {
    case .secret(let secret): isEqualInConstantTime(hmacSHA256(message, key: secret), signature)
    case .publicKey(let key): key.verify(signature, of: message)
    }
  }

  /// Changes with the key, and doesn't reveal it.
  var fingerprint: [UInt8] {
    switch self {
    case .secret(let secret): hmacSHA256(Array("sluice key fingerprint".utf8), key: secret)
    case .publicKey(let key): key.fingerprint
    }
  }
}

/// How tokens are signed, as RFC 7518 and RFC 8037 call it.
public enum TokenAlgorithm: String, CaseIterable, Sendable {
  case hs256 = "HS256"
  case eddsa = "EdDSA"
  case rs256 = "RS256"

  init(_ kind: KeyKind) {
    switch kind {
    case .ed25519: self = .eddsa
    case .rsa: self = .rs256
    }
  }
}

/// The rules for IDs of keys, which are also the names of their files.
public enum TokenKeyID {
  public static let maximumLength = 64

  /// The mistake in it, as the end of a sentence; nil for a valid one.
  public static func objection(to id: String) -> String? {
    guard (1...maximumLength).contains(id.utf8.count) else {
      return "it needs 1 to \(maximumLength) characters"
    }
    let isPlain = id.utf8.allSatisfy { letter in
      switch letter {
      case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
        UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"), UInt8(ascii: "."):
        true
      default: false
      }
    }
    guard isPlain, id.utf8.first != UInt8(ascii: ".") else {
      return "it can have letters and digits of ASCII, dashes, underscores, and dots that aren't first"
    }
    return nil
  }
}
