/// Why a token is refused. For the operator: the client learns only that it is.
public enum TokenError: Error, Hashable, Sendable, CustomStringConvertible {
  case malformed(String)
  case noSuchKey(String)
  /// The key isn't for the algorithm that the token names.
  case otherAlgorithm(String, expected: TokenAlgorithm)
  case badSignature
  /// When it ended, in milliseconds since 1970.
  case expired(Int64)
  /// When it begins, in milliseconds since 1970.
  case notYet(Int64)
  case otherAudience

  public var description: String {
    switch self {
    case .malformed(let what): "the token is malformed: \(what)"
    case .noSuchKey(let id): "there is no key '\(IdentityRules.shown(id))'"
    case .otherAlgorithm(let name, let expected):
      "the token says that it is signed with \(IdentityRules.shown(name)), and its key is for \(expected.rawValue)"
    case .badSignature: "the signature isn't the key's"
    case .expired: "the token has expired"
    case .notYet: "the token isn't valid yet"
    case .otherAudience: "the token is for another service: its audience (aud) isn't sluice"
    }
  }
}
