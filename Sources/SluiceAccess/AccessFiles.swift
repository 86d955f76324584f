/// The files with a broker's access rules.
public struct AccessFiles: Hashable, Sendable {
  /// Of users and the hashes of their passwords: see ``UsersFile``.
  public var users: String?
  /// The directory of the keys of tokens: `ID.secret`, `ID.pem`.
  public var tokenKeys: String?
  /// The file of the key that signs links; nil for a random key.
  public var linkKey: String?
  /// Of permissions: `IDENTITY RIGHTS PATTERN...` a line.
  public var permissions: String?
  /// See ``AccessPolicy/anonymous``.
  public var anonymous: String?
  /// See ``AccessPolicy/certificatesMustBeListed``.
  public var certificatesMustBeListed = false

  public init() {}

  /// Reads all of them. Blocks.
  ///
  /// - Parameter warn: called with warnings, in sentences.
  /// - Throws: ``AccessFileError`` for the first thing that is wrong: a line, or a file that every user of the machine may change.
  public func load(warn: (String) -> Void = { _ in }) throws(AccessFileError) -> AccessPolicy {
    var policy = AccessPolicy()
    policy.certificatesMustBeListed = certificatesMustBeListed
    if let users { policy.users = try Self.users(users, warn) }
    if let tokenKeys {
      policy.tokenKeys = try TokenKeyDirectory.read(tokenKeys, warn: warn)
      if policy.tokenKeys.isEmpty { warn("\(tokenKeys) has no keys: no token will be taken") }
    }
    if let linkKey { policy.linkKey = try LinkKey.read(linkKey, warn: warn) }
    if let permissions {
      let file = try AccessFile(permissions)
      Self.warnIfReplaceable(file, warn)
      let content = try PermissionsFile(try file.contents(), path: permissions)
      policy.permissions = content.permissions
      policy.commonPermissions = content.commonPermissions
    }
    if let anonymous {
      if let users, policy.users[anonymous] != nil {
        throw AccessFileError(
          users,
          "'\(IdentityRules.shown(anonymous))' is a user, and clients without credentials would have that user's permissions; choose another name for "
            + "anonymous clients")
      }
      policy.anonymous = anonymous
    }
    return policy
  }

  private static func users(_ path: String, _ warn: (String) -> Void) throws(AccessFileError) -> Users {
    let file = try AccessFile(path)
    warnIfReplaceable(file, warn)
    if file.isReadByOthers {
      warn("every user of this machine can read \(path), and try to guess passwords from it; chmod 600 helps")
    }
    let all = try UsersFile(try file.contents(), path: path).users
    let users = Users(all)
    if let usual = users.usualCost {
      let others = all.filter { $0.hash.cost != usual }.map(\.name)
      if let first = others.first {
        warn(
          "\(path): the hashes don't all have the same parameters, which reveals what users exist: "
            + "\(IdentityRules.shown(first))\(others.count > 1 ? " and \(others.count - 1) more" : ""); sluice user passwd makes new ones"
        )
      }
      let weak = all.count { $0.hash.isWeak }
      if weak > 0 {
        warn("\(path): \(weak) hashes are weaker than they should be; sluice user passwd makes new ones")
      }
    }
    return users
  }

  private static func warnIfReplaceable(_ file: AccessFile, _ warn: (String) -> Void) {
    guard let directory = file.replaceableIn else { return }
    warn(
      "every user of this machine may put another file in the place of \(file.path); chmod o-w '\(directory)' helps"
    )
  }
}
