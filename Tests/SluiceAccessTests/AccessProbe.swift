import SluiceAccess
import SluiceWire
import TestSupport

/// Passes any bytes to the parsers of tokens and of the files of users and permissions.
enum AccessProbe: Probe {
  enum Target: String, CaseIterable, Sendable {
    /// A token, unchanged.
    case tokens
    /// The claims of a correctly signed token.
    case tokenClaims
    /// The header of a correctly signed token.
    case tokenHeaders
    case usersFiles
    case permissionsFiles
  }

  static func run(_ target: Target, on input: [UInt8]) throws {
    switch target {
    case .tokens: try token(input)
    case .tokenClaims: try claims(input)
    case .tokenHeaders: try header(input)
    case .usersFiles: try users(input)
    case .permissionsFiles: try permissions(input)
    }
  }

  // MARK: Tokens

  private static let secret: [UInt8] = Array("a secret of at least 32 bytes, really".utf8)
  private static let header = Array(#"{"alg":"HS256","kid":"k"}"#.utf8)
  private static let now: Int64 = 1_800_000_000_000

  private static let policy: AccessPolicy = {
    var policy = AccessPolicy()
    policy.tokenKeys["k"] = .secret(secret)
    return policy
  }()

  /// No valid token can be made without the secret.
  static func token(_ bytes: [UInt8]) throws {
    let text = String(decoding: bytes, as: UTF8.self)
    if let identity = try authenticate(text) {
      throw ProbeViolation("\(text) was taken for a token of \(identity.name)")
    }
    try inspect(text)
  }

  /// An accepted token has a valid identity, and gives the same one after it is signed again.
  static func claims(_ bytes: [UInt8]) throws {
    guard let text = NewToken.text(header: header, claims: bytes, .secret(secret)) else { return }
    try inspect(text)
    guard let identity = try authenticate(text) else { return }
    guard IdentityRules.objection(to: identity.name) == nil, let expires = identity.expires, expires > now
    else {
      throw ProbeViolation("a token was taken for \(identity)")
    }
    let again = NewToken(
      subject: identity.name, keyID: "k", issued: now, expires: expires / 1000 * 1000 + 1000,
      permissions: identity.carriesPermissions ? identity.permissions : nil)
    // The encoding may be longer than the original, and then too long.
    guard let other = try? again.signed(with: .secret(secret)) else { return }
    guard let second = try authenticate(other), second.hasName(of: identity),
      second.permissions.rules.count == identity.permissions.rules.count,
      second.carriesPermissions == identity.carriesPermissions
    else { throw ProbeViolation("\(identity) isn't the same in a token that is made of it") }
  }

  /// A token signed with this key is accepted as such or rejected, whatever its header says.
  static func header(_ bytes: [UInt8]) throws {
    let claims = Array(#"{"sub":"a","exp":9e9}"#.utf8)
    guard let text = NewToken.text(header: bytes, claims: claims, .secret(secret)) else { return }
    try inspect(text)
    guard let identity = try authenticate(text) else { return }
    let inspection = try TokenInspection(text)
    guard identity.name == "a", inspection.algorithm == "HS256", inspection.keyID == "k" else {
      throw ProbeViolation("a token with the header \(inspection.headerJSON) was taken")
    }
  }

  private static func inspect(_ text: String) throws {
    guard let inspection = try? TokenInspection(text) else { return }
    for json in [inspection.headerJSON, inspection.claimsJSON] where json.utf8.contains(where: { $0 < 0x20 })
    {
      throw ProbeViolation("there is a control character in \(json)")
    }
  }

  private static func authenticate(_ token: String) throws -> Identity? {
    do throws(WireError) {
      return try policy.authenticate(.token(token), peerName: nil, peerExpires: nil, now: now)
    } catch {
      guard error.code == .authenticationFailed || error.code == .credentialsExpired else {
        throw ProbeViolation("a token was refused with \(error)")
      }
      return nil
    }
  }

  // MARK: Files

  /// A parsed file is the same after writing and parsing it, also after changes.
  static func users(_ bytes: [UInt8]) throws {
    guard var file = try parse({ () throws(AccessFileError) in try UsersFile(bytes, path: "users") }) else {
      return
    }
    func expect(_ names: [String]) throws {
      let again = try UsersFile(file.bytes, path: "users")
      guard again.bytes == file.bytes, again.users.map(\.hash) == file.users.map(\.hash),
        again.users.map({ Array($0.name.utf8) }) == names.map({ Array($0.utf8) })
      else { throw ProbeViolation("users aren't the same when they are read again") }
    }
    let names = file.users.map(\.name)
    try expect(names)
    guard let last = file.users.last else { return }
    file.set(last.hash, of: "somebody new")
    try expect(names.contains { $0 == "somebody new" } ? names : names + ["somebody new"])
    guard file.remove("somebody new") else { throw ProbeViolation("somebody new can't be removed") }
    try expect(names.filter { $0 != "somebody new" })
    guard file.hasUser(last.name) == (last.name != "somebody new") else {
      throw ProbeViolation("\(last.name) has gone")
    }
  }

  /// An identity that isn't listed has the common permissions.
  static func permissions(_ bytes: [UInt8]) throws {
    guard
      let file = try parse({ () throws(AccessFileError) in try PermissionsFile(bytes, path: "permissions") })
    else {
      return
    }
    var policy = AccessPolicy()
    policy.permissions = file.permissions
    policy.commonPermissions = file.commonPermissions
    for name in file.permissions.names.prefix(10) + ["somebody new"] {
      let identity = try policy.authenticate(.none, peerName: name, peerExpires: nil, now: now)
      for topic in ["a", "a.b", "_inbox.x", "$x"] {
        let rights = identity.permissions.rights(on: topic)
        let expected = file.commonPermissions.rights(on: topic).union(
          file.permissions[name]?.rights(on: topic) ?? [])
        guard rights == expected else {
          throw ProbeViolation("\(name) may do other things with \(topic)")
        }
      }
    }
  }

  /// The error of a rejected file is one line that any terminal can display.
  private static func parse<Value>(_ body: () throws(AccessFileError) -> Value) throws -> Value? {
    do throws(AccessFileError) {
      return try body()
    } catch {
      if error.description.unicodeScalars.contains(where: { $0.properties.generalCategory == .control }) {
        throw ProbeViolation("a message has a control character")
      }
      return nil
    }
  }
}
