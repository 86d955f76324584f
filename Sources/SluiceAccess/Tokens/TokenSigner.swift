import SluiceTLS

/// What tokens are signed with.
public enum TokenSigner: Sendable {
  /// HS256, with what brokers have as well.
  case secret([UInt8])
  /// EdDSA with Ed25519, or RS256.
  case privateKey(PrivateKey)

  /// Reads the file of a key: a private key in PEM, or else a secret, without the line break at its end.
  ///
  /// - Throws: ``AccessTextError`` with what is wrong, as the end of a sentence.
  public init(_ bytes: [UInt8]) throws(AccessTextError) {
    if bytes.starts(with: "-----BEGIN".utf8) {
      do {
        self = .privateKey(try PrivateKey(pem: bytes))
      } catch {
        throw AccessTextError("it has \(error)")
      }
    } else {
      self = .secret(try TokenKey.secretBytes(bytes))
    }
  }

  public var algorithm: TokenAlgorithm {
    switch self {
    case .secret: .hs256
    case .privateKey(let key): TokenAlgorithm(key.kind)
    }
  }

  /// Nil when OpenSSL can't.
  func sign(_ message: [UInt8]) -> [UInt8]? {
    switch self {
    case .secret(let secret): hmacSHA256(message, key: secret)
    case .privateKey(let key): key.sign(message)
    }
  }
}
