import FoundationEssentials
import SluiceWire

/// The content of a token. Claims that aren't here are passed over.
struct TokenClaims: Decodable, Sendable {
  let subject: String
  /// In milliseconds since 1970, as the others.
  let expires: Int64
  let notBefore: Int64?
  let issued: Int64?
  /// Nil: not said.
  let audience: [String]?
  /// Nil: the broker's permissions file applies.
  let permissions: Permissions?

  /// The audience of tokens.
  static let audience = "sluice"

  private enum Name: String, CodingKey {
    case sub, exp, nbf, iat, aud, sluice
  }

  init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: Name.self)
    subject = try members.decode(String.self, forKey: .sub)
    if let objection = IdentityRules.objection(to: subject) {
      throw TokenError.malformed("its subject (sub) can't be an identity: \(objection)")
    }
    expires = try Self.time(members, .exp)
    notBefore = members.contains(.nbf) ? try Self.time(members, .nbf) : nil
    issued = members.contains(.iat) ? try Self.time(members, .iat) : nil
    if !members.contains(.aud) {
      audience = nil
    } else if let one = try? members.decode(String.self, forKey: .aud) {
      audience = [one]
    } else {
      audience = try members.decode([String].self, forKey: .aud)
    }
    permissions =
      members.contains(.sluice)
      ? try members.decode(TokenPermissions.self, forKey: .sluice).permissions : nil
  }

  /// Why they don't hold now, in milliseconds since 1970. An expiry is reported only if everything else is valid.
  func objection(now: Int64) -> TokenError? {
    if let audience, !audience.contains(Self.audience) { return .otherAudience }
    if let notBefore, notBefore - TokenKeys.leeway > now { return .notYet(notBefore) }
    return expires > now ? nil : .expired(expires)
  }

  /// Seconds since 1970, with or without a fraction.
  private static func time(_ members: KeyedDecodingContainer<Name>, _ name: Name) throws -> Int64 {
    let seconds = try members.decode(Double.self, forKey: name)
    // Some hundred thousand years.
    guard seconds.isFinite, abs(seconds) < 1e13 else {
      throw TokenError.malformed("\(name.rawValue) isn't a time in seconds since 1970")
    }
    return Int64(seconds * 1000)
  }
}

/// `{"publish":["orders.>"],"subscribe":["orders.>"]}`
private struct TokenPermissions: Decodable {
  let permissions: Permissions

  private struct Name: CodingKey {
    let stringValue: String
    var intValue: Int? { nil }

    init(stringValue: String) { self.stringValue = stringValue }
    init?(intValue: Int) { nil }
  }

  init(from decoder: any Decoder) throws {
    let members = try decoder.container(keyedBy: Name.self)
    var rules: [Permissions.Rule] = []
    for (rights, text) in Rights.names {
      let name = Name(stringValue: text)
      guard members.contains(name) else { continue }
      for pattern in try members.decode([String].self, forKey: name) {
        do {
          rules.append(.init(rights, on: try TopicPattern(pattern)))
        } catch {
          throw TokenError.malformed("sluice.\(text): \(error.message)")
        }
      }
    }
    permissions = Permissions(rules)
  }
}
