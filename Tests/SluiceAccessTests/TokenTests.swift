import SluiceTLS
import SluiceWire
import TestSupport
import Testing

@testable import SluiceAccess

@Suite("Tokens")
struct TokenTests {
  private static let secret = Array("a secret of at least 32 bytes, really".utf8)
  private static let now: Int64 = 1_800_000_000_000

  private let pair: PrivateKey
  private let keys: TokenKeys

  init() throws {
    pair = try PrivateKey.generate(.ed25519)
    keys = ["shared": .secret(Self.secret), "pair": .publicKey(try PublicKey(pem: pair.publicPEM))]
  }

  private func signed(_ header: String, _ claims: String, with signer: TokenSigner = .secret(secret)) throws
    -> String
  {
    let text = "\(Base64Text.url.encode(header.utf8)).\(Base64Text.url.encode(claims.utf8))"
    return "\(text).\(Base64Text.url.encode(try #require(signer.sign(Array(text.utf8)))))"
  }

  /// A token with the usual header.
  private func signed(claims: String) throws -> String {
    try signed(#"{"alg":"HS256","kid":"shared"}"#, claims)
  }

  private func objection(_ token: String, now: Int64 = TokenTests.now) -> TokenError? {
    do {
      _ = try keys.verify(token, now: now)
      return nil
    } catch {
      return error
    }
  }

  private func isMalformed(_ error: TokenError?) -> Bool {
    if case .malformed = error { true } else { false }
  }

  @Test("what is made is taken, with every kind of key")
  func roundTrip() throws {
    let rsa = try PrivateKey.generate(.rsa(bits: 2048))
    var keys = keys
    keys["rsa"] = .publicKey(try PublicKey(pem: rsa.publicPEM))
    for (id, signer) in [
      ("shared", TokenSigner.secret(Self.secret)), ("pair", .privateKey(pair)), ("rsa", .privateKey(rsa)),
    ] {
      var token = NewToken(subject: "alice", keyID: id, issued: Self.now, expires: Self.now + 60_000)
      let plain = try keys.verify(try token.signed(with: signer), now: Self.now)
      #expect(
        plain.claims.subject == "alice" && plain.keyID == id && plain.claims.expires == Self.now + 60_000)
      #expect(plain.claims.permissions == nil && plain.claims.issued == Self.now)
      token.permissions = Permissions([
        .init([.publish, .create], on: try TopicPattern("orders.>")),
        .init(.all, on: try TopicPattern("a.*")),
      ])
      let carried = try #require(
        try keys.verify(try token.signed(with: signer), now: Self.now).claims.permissions)
      #expect(carried.rights(on: "orders.eu") == [.publish, .create] && carried.rights(on: "a.b") == .all)
      #expect(carried.rights(on: "other").isEmpty)
      token.permissions = .nothing
      let nothing = try keys.verify(try token.signed(with: signer), now: Self.now)
      #expect(nothing.claims.permissions == .nothing)
    }
  }

  @Test("a policy takes the token for its subject, with what the token says or else the file")
  func policy() throws {
    var policy = AccessPolicy()
    policy.tokenKeys = keys
    policy.permissions["alice"] = Permissions([.init(.publish, on: try TopicPattern("orders.>"))])
    policy.commonPermissions = Permissions([.init(.subscribe, on: try TopicPattern("public.>"))])
    let token = NewToken(subject: "alice", keyID: "shared", issued: 0, expires: Self.now + 1000)
    func identity(_ token: NewToken) throws -> Identity {
      try policy.authenticate(
        .token(try token.signed(with: .secret(Self.secret))), peerName: nil, peerExpires: nil, now: Self.now)
    }
    let plain = try identity(token)
    #expect(plain.name == "alice" && plain.proof == .token(key: "shared") && plain.expires == Self.now + 1000)
    #expect(plain.permissions.rights(on: "orders.eu") == .publish && !plain.carriesPermissions)
    var other = token
    other.permissions = Permissions([.init(.admin, on: try TopicPattern("x"))])
    let carrying = try identity(other)
    #expect(carrying.carriesPermissions && carrying.permissions.rights(on: "x") == .admin)
    #expect(
      carrying.permissions.rights(on: "orders.eu").isEmpty
        && carrying.permissions.rights(on: "public.a").isEmpty)

    var later = policy
    later.permissions["alice"] = nil
    #expect(later.reconsider(plain)?.permissions.rights(on: "orders.eu").isEmpty == true)
    #expect(later.reconsider(carrying) == carrying)
    later.tokenKeys["shared"] = .secret(Self.secret.reversed())
    #expect(later.reconsider(plain) == nil && later.reconsider(carrying) == nil)
    later.tokenKeys["shared"] = nil
    #expect(later.reconsider(carrying) == nil)

    var expired = token
    expired.expires = Self.now
    do {
      _ = try identity(expired)
      Issue.record("an expired token was taken")
    } catch {
      #expect((error as? WireError)?.code == .credentialsExpired)
    }
  }

  @Test("times are looked at in seconds with fractions, with some patience for what isn't valid yet")
  func times() throws {
    let at = 1_800_000_000
    let table: [(String, TokenError?)] = [
      ("\"exp\":\(at + 1)", nil), ("\"exp\":\(at)", .expired(Self.now)), ("\"exp\":\(at).5", nil),
      ("\"exp\":0", .expired(0)), ("\"exp\":-5", .expired(-5000)), ("\"exp\":1.8e9", .expired(Self.now)),
      ("\"exp\":9e12", nil), ("\"exp\":\(at + 1),\"nbf\":\(at + 60)", nil),
      ("\"exp\":\(at + 1),\"nbf\":\(at + 61)", .notYet(Self.now + 61_000)),
      ("\"exp\":\(at),\"nbf\":\(at + 61)", .notYet(Self.now + 61_000)),
      ("\"exp\":\(at + 1),\"iat\":\(at + 600)", nil),
    ]
    for (times, expected) in table {
      #expect(objection(try signed(claims: "{\"sub\":\"a\",\(times)}")) == expected, "\(times)")
    }
    let token = try signed(claims: "{\"sub\":\"a\",\"exp\":9e12,\"nbf\":-9e12}")
    let (begin, end) = (TokenError.notYet(-9_000_000_000_000_000), TokenError.expired(9_000_000_000_000_000))
    for (now, expected) in [(Int64.min, begin), (0, nil), (.max, end)] as [(Int64, TokenError?)] {
      #expect(objection(token, now: now) == expected)
    }
  }

  @Test(
    "claims of another kind than they should be make a token malformed",
    arguments: [
      "{}", "[]", "null", "1", "\"a\"", "", "{", "{\"sub\":\"a\"}", "{\"exp\":9e9}",
      "{\"sub\":\"\",\"exp\":9e9}", "{\"sub\":1,\"exp\":9e9}", "{\"sub\":null,\"exp\":9e9}",
      "{\"sub\":\"a\\nb\",\"exp\":9e9}", "{\"sub\":\"a\",\"exp\":\"9e9\"}", "{\"sub\":\"a\",\"exp\":null}",
      "{\"sub\":\"a\",\"exp\":1e999}", "{\"sub\":\"a\",\"exp\":-1e999}", "{\"sub\":\"a\",\"exp\":1e13}",
      "{\"sub\":\"a\",\"exp\":99999999999999999999999999999999}", "{\"sub\":\"a\",\"exp\":true}",
      "{\"sub\":\"a\",\"exp\":NaN}", "{\"sub\":\"a\",\"exp\":[9e9]}",
      "{\"sub\":\"a\",\"exp\":9e9,\"nbf\":\"0\"}",
      "{\"sub\":\"a\",\"exp\":9e9,\"nbf\":null}", "{\"sub\":\"a\",\"exp\":9e9,\"iat\":{}}",
      "{\"sub\":\"a\",\"exp\":9e9,\"aud\":1}", "{\"sub\":\"a\",\"exp\":9e9,\"aud\":null}",
      "{\"sub\":\"a\",\"exp\":9e9,\"aud\":[1]}", "{\"sub\":\"a\",\"exp\":9e9,\"sluice\":null}",
      "{\"sub\":\"a\",\"exp\":9e9,\"sluice\":[]}", "{\"sub\":\"a\",\"exp\":9e9,\"sluice\":\"all\"}",
      "{\"sub\":\"a\",\"exp\":9e9,\"sluice\":{\"publish\":\"a\"}}",
      "{\"sub\":\"a\",\"exp\":9e9,\"sluice\":{\"publish\":[1]}}",
      "{\"sub\":\"a\",\"exp\":9e9,\"sluice\":{\"publish\":[\"a..b\"]}}",
      "{\"sub\":\"a\",\"exp\":9e9,\"sluice\":{\"publish\":null}}", "{\"sub\":\"a\",\"exp\":9e9} x",
      "{\"sub\":\"\u{0}\",\"exp\":9e9}", "{\"sub\":\"\\u0000\",\"exp\":9e9}",
      "{\"sub\":\"\\ud800\",\"exp\":9e9}",
    ])
  func malformedClaims(claims: String) throws {
    #expect(isMalformed(objection(try signed(claims: claims))), "\(claims)")
  }

  @Test("a token for somebody else isn't taken, one for several is, and one for nobody in particular")
  func audience() throws {
    let table: [(String, TokenError?)] = [
      ("\"sluice\"", nil), ("\"other\"", .otherAudience), ("[\"other\",\"sluice\"]", nil),
      ("[]", .otherAudience),
      ("\"Sluice\"", .otherAudience), ("[\"other\"]", .otherAudience),
    ]
    for (audience, expected) in table {
      #expect(objection(try signed(claims: "{\"sub\":\"a\",\"exp\":9e9,\"aud\":\(audience)}")) == expected)
      // Other errors take precedence over an expired token.
      let expired = objection(try signed(claims: "{\"sub\":\"a\",\"exp\":1,\"aud\":\(audience)}"))
      #expect(expired == expected ?? .expired(1000))
    }
  }

  @Test("claims that nobody knows are passed over, deep ones too")
  func unknownClaims() throws {
    let deep = String(repeating: "[", count: 200) + String(repeating: "]", count: 200)
    let claims =
      "{\"sub\":\"a\",\"exp\":9e9,\"x\":\(deep),\"y\":1e999,\"sluice\":{\"read\":7,\"subscribe\":[\"a\"]},\"z\":\"\\ud83d\\ude00\"}"
    let verified = try keys.verify(try signed(claims: claims), now: Self.now)
    #expect(verified.claims.permissions?.rights(on: "a") == .subscribe)
    let bottomless = String(repeating: "[", count: 2900)
    #expect(isMalformed(objection(try signed(claims: bottomless))))
    #expect(isMalformed(objection(try signed(claims: "{\"sub\":\"a\",\"exp\":9e9,\"x\":\(bottomless)"))))
    let objects = String(repeating: "{\"a\":", count: 550)
    #expect(isMalformed(objection(try signed(claims: objects))))
  }

  @Test("the key decides the algorithm, whatever the header says")
  func algorithms() throws {
    let claims = "{\"sub\":\"a\",\"exp\":9e9}"
    // Signed with the public key's text as the secret, the classic confusion of HMAC and public keys.
    let confused = try signed(#"{"alg":"HS256","kid":"pair"}"#, claims, with: .secret(pair.publicPEM))
    #expect(objection(confused) == .otherAlgorithm("HS256", expected: .eddsa))
    for name in ["none", "None", "NONE", "", "hs256", "HS384", "RS256", "EdDSA", "ES256", "HS256\u{0}"] {
      let header = "{\"alg\":\"\(name)\",\"kid\":\"shared\"}"
      let error = objection(try signed(header, claims))
      #expect(error == .otherAlgorithm(name, expected: .hs256) || isMalformed(error), "\(name)")
    }
    let text =
      "\(Base64Text.url.encode(#"{"alg":"none","kid":"shared"}"#.utf8)).\(Base64Text.url.encode(claims.utf8))."
    #expect(objection(text) == .otherAlgorithm("none", expected: .hs256))
    let unsigned =
      "\(Base64Text.url.encode(#"{"alg":"HS256","kid":"shared"}"#.utf8)).\(Base64Text.url.encode(claims.utf8))."
    #expect(objection(unsigned) == .badSignature)
    #expect(
      objection(try signed(#"{"alg":"HS256","kid":"shared"}"#, claims, with: .secret(Self.secret + [1])))
        == .badSignature)
    #expect(
      objection(
        try signed(#"{"alg":"EdDSA","kid":"pair"}"#, claims, with: .privateKey(try .generate(.ed25519))))
        == .badSignature)
  }

  @Test(
    "a header that can't be understood is refused",
    arguments: [
      #"{"alg":"HS256"}"#, #"{"kid":"shared"}"#, #"{"alg":"HS256","kid":7}"#, #"{"alg":null,"kid":"shared"}"#,
      #"{"alg":["HS256"],"kid":"shared"}"#, #"{"alg":"HS256","kid":"shared","crit":["b64"],"b64":false}"#,
      #"{"alg":"HS256","kid":"shared","crit":[]}"#, #"{"alg":"HS256","kid":"shared","crit":null}"#, "[]", "",
      "x",
    ])
  func headers(header: String) throws {
    #expect(isMalformed(objection(try signed(header, "{\"sub\":\"a\",\"exp\":9e9}"))))
  }

  @Test("keys are found by their very id")
  func keyIDs() throws {
    for id in ["", "Shared", "shared ", "../shared", "shared\u{301}", "other"] {
      let error = objection(
        try signed("{\"alg\":\"HS256\",\"kid\":\"\(id)\"}", "{\"sub\":\"a\",\"exp\":9e9}"))
      #expect(error == .noSuchKey(id))
    }
  }

  @Test("text that isn't three parts of strict base64url is refused")
  func text() throws {
    let token = try signed(claims: "{\"sub\":\"a\",\"exp\":9e9}")
    #expect(objection(token) == nil)
    let dot = try #require(token.lastIndex(of: "."))
    let (signed, signature) = (String(token[..<dot]), String(token[token.index(after: dot)...]))
    // The last letter has unused bits, which must be zero.
    let last = try #require(signature.utf8.last)
    let table = [
      "", ".", "..", "...", "a", "\(token).", ".\(token)", "\(token).\(token)", " \(token)", "\(token) ",
      "\(token)=",
      "\(token)\n", "\(signed).\(signature.dropLast())\(Character(Unicode.Scalar(last + 1)))",
      "\(signed).+/+/",
      "\(signed).A", "é.é.é", String(repeating: "A", count: 5000), String(repeating: ".", count: 4000),
      String(repeating: "A", count: 4000) + "..",
    ]
    for text in table { #expect(isMalformed(objection(text)), "\(text)") }
    // Additional claims finally make it too long.
    let long = try self.signed(
      claims: "{\"sub\":\"a\",\"exp\":9e9,\"x\":\"\(String(repeating: "x", count: 3500))\"}")
    #expect(isMalformed(objection(long)))
  }

  @Test("what can't be in a token isn't signed")
  func refusals() throws {
    func refused(_ change: (inout NewToken) -> Void) -> Bool {
      var token = NewToken(subject: "a", keyID: "k", issued: 0, expires: 1000)
      change(&token)
      return (try? token.signed(with: .secret(Self.secret))) == nil
    }
    #expect(!refused { _ in })
    #expect(refused { $0.subject = "" })
    #expect(refused { $0.subject = "a\u{7}" })
    #expect(refused { $0.keyID = "../k" })
    #expect(refused { $0.keyID = "" })
    let pattern = try TopicPattern(String(repeating: "x", count: 250))
    #expect(refused { $0.permissions = Permissions(Array(repeating: .init(.all, on: pattern), count: 10)) })
  }

  @Test("a token is shown with all that it says")
  func inspection() throws {
    let token = try signed(
      #"{"typ":"JWT","alg":"HS256","kid":"shared"}"#,
      "{\"sub\":\"alice\", \"exp\":9e9, \"iat\":1,\n\"roles\":[true,null,1.5,\"x/y\"]}")
    let inspection = try TokenInspection(token)
    #expect(inspection.headerJSON == #"{"alg":"HS256","kid":"shared","typ":"JWT"}"#)
    #expect(
      inspection.claimsJSON == #"{"exp":9000000000,"iat":1,"roles":[true,null,1.5,"x/y"],"sub":"alice"}"#)
    #expect(inspection.objection(now: Self.now) == nil)
    #expect(inspection.objection(of: .secret(Self.secret), now: Self.now) == nil)
    #expect(inspection.objection(of: .secret(Self.secret + [1]), now: Self.now) == .badSignature)
    let steering = try TokenInspection(
      try signed(claims: "{\"sub\":\"a\",\"exp\":9e9,\"x\":\"\\u0085\\u007f\\u001b\"}"))
    #expect(steering.claimsJSON == #"{"exp":9000000000,"sub":"a","x":"\u0085\u007f\u001b"}"#)
    #expect(inspection.objection(now: .max) == .expired(9_000_000_000_000))
  }
}
