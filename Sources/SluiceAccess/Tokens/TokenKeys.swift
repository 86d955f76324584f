/// The keys that a broker takes tokens of, by their ids.
public typealias TokenKeys = NameTable<TokenKey>

extension TokenKeys {
  /// How far clocks may be apart for a token that isn't valid yet, in milliseconds. There is nothing of the kind for one that has expired.
  public static var leeway: Int64 { 60_000 }

  public var ids: [String] { names.sorted() }

  /// Believes a token, or doesn't.
  ///
  /// - Parameter now: in milliseconds since 1970.
  /// - Throws: ``TokenError/expired(_:)`` only when everything else is right.
  func verify(_ token: String, now: Int64) throws(TokenError) -> VerifiedToken {
    try verify(try TokenText(token), now: now)
  }

  func verify(_ text: TokenText, now: Int64) throws(TokenError) -> VerifiedToken {
    guard let key = self[text.header.key] else { throw .noSuchKey(text.header.key) }
    guard text.header.algorithm == key.algorithm.rawValue else {
      throw .otherAlgorithm(text.header.algorithm, expected: key.algorithm)
    }
    guard key.verify(text.signature, of: text.signed) else { throw .badSignature }
    let claims = try text.claims()
    if let objection = claims.objection(now: now) { throw objection }
    return VerifiedToken(claims: claims, keyID: text.header.key, keyFingerprint: key.fingerprint)
  }
}

/// A token that was signed with a known key and holds now.
struct VerifiedToken: Sendable {
  let claims: TokenClaims
  let keyID: String
  let keyFingerprint: [UInt8]
}
