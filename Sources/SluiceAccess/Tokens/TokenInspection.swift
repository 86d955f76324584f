import FoundationEssentials
import SluiceWire

/// A token taken apart for people to look at.
public struct TokenInspection: Sendable {
  private let text: TokenText
  private let claims: TokenClaims

  /// - Throws: ``TokenError`` for a token that no broker would take, whatever its signature.
  public init(_ token: String) throws(TokenError) {
    text = try TokenText(token)
    claims = try text.claims()
  }

  public var algorithm: String { text.header.algorithm }
  public var keyID: String { text.header.key }
  public var subject: String { claims.subject }
  /// In milliseconds since 1970, as the others.
  public var expires: Int64 { claims.expires }
  public var issued: Int64? { claims.issued }
  public var notBefore: Int64? { claims.notBefore }
  /// Nil when it doesn't say.
  public var audience: [String]? { claims.audience }
  /// Nil where the broker's own file decides.
  public var permissions: Permissions? { claims.permissions }

  /// All of the header and the claims as JSON, on one line each.
  public var headerJSON: String { Self.compact(text.headerBytes) }
  public var claimsJSON: String { Self.compact(text.claimBytes) }

  /// The objection of a broker with this key under the token's ID, at that time, in milliseconds since 1970; nil if it would accept the token.
  public func objection(of key: TokenKey, now: Int64) -> TokenError? {
    var keys: TokenKeys = [:]
    keys[keyID] = key
    do {
      _ = try keys.verify(text, now: now)
      return nil
    } catch {
      return error
    }
  }

  /// The objection of a broker, without a check of the signature.
  public func objection(now: Int64) -> TokenError? { claims.objection(now: now) }

  private static func compact(_ bytes: [UInt8]) -> String {
    let encoder = JSONEncoder()
    encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
    guard let value = try? JSONDecoder().decode(JSONValue.self, from: Data(bytes)),
      let text = try? encoder.encode(value)
    else { return "null" }
    // The encoder escapes ASCII alone. The notation has no line break, and no quotation mark that isn't its own.
    return ShownText.line(String(decoding: text, as: UTF8.self))
  }
}

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
