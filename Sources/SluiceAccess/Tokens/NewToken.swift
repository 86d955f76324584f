import FoundationEssentials
import SluiceTLS
import SluiceWire

/// A token to be signed.
public struct NewToken: Sendable {
  /// Whose it is.
  public var subject: String
  /// The id of the key that it is signed with.
  public var keyID: String
  /// In milliseconds since 1970, of which tokens have the seconds.
  public var issued: Int64
  public var expires: Int64
  /// Its permissions; nil if the broker's permissions file applies.
  public var permissions: Permissions?

  public init(
    subject: String, keyID: String, issued: Int64, expires: Int64, permissions: Permissions? = nil
  ) {
    self.subject = subject
    self.keyID = keyID
    self.issued = issued
    self.expires = expires
    self.permissions = permissions
  }

  private struct Header: Encodable {
    var alg: String
    var kid: String
    var typ = "JWT"
  }

  private struct Claims: Encodable {
    var sub: String
    var aud = TokenClaims.audience
    var iat: Int64
    var exp: Int64
    var sluice: [String: [String]]?
  }

  /// - Throws: ``AccessTextError`` with what can't be in a token.
  public func signed(with signer: TokenSigner) throws(AccessTextError) -> String {
    if let objection = IdentityRules.objection(to: subject) {
      throw AccessTextError("'\(IdentityRules.shown(subject))' can't be a subject: \(objection)")
    }
    if let objection = TokenKeyID.objection(to: keyID) {
      throw AccessTextError("'\(IdentityRules.shown(keyID))' can't be the id of a key: \(objection)")
    }
    var allowed: [String: [String]]?
    if let permissions {
      allowed = [:]
      for rule in permissions.rules {
        for (right, name) in Rights.names where rule.rights.contains(right) {
          allowed?[name, default: []].append(rule.pattern.description)
        }
      }
    }
    let claims = Claims(sub: subject, iat: issued / 1000, exp: expires / 1000, sluice: allowed)
    let header = Header(alg: signer.algorithm.rawValue, kid: keyID)
    guard let headerJSON = Self.json(header), let claimsJSON = Self.json(claims) else {
      throw AccessTextError("the token can't be written as JSON")
    }
    guard let token = Self.text(header: Array(headerJSON), claims: Array(claimsJSON), signer) else {
      throw AccessTextError("OpenSSL can't sign with this key")
    }
    guard token.utf8.count <= TokenText.maximumLength else {
      throw AccessTextError(
        "the token would have \(token.utf8.count) bytes, and \(TokenText.maximumLength) is the limit; leave the patterns to the "
          + "broker's permissions, or take fewer")
    }
    return token
  }

  /// Signs any header and claims; nil when OpenSSL can't.
  package static func text(header: [UInt8], claims: [UInt8], _ signer: TokenSigner) -> String? {
    let signed = "\(Base64Text.url.encode(header)).\(Base64Text.url.encode(claims))"
    return signer.sign(Array(signed.utf8)).map { "\(signed).\(Base64Text.url.encode($0))" }
  }

  private static func json(_ value: some Encodable) -> Data? {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    return try? encoder.encode(value)
  }
}

/// The key that signs tokens.
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
