import Glibc

/// The directory of the keys that a broker takes tokens of: `ID.secret` for HS256, `ID.pem` with a public key for EdDSA or RS256. Files whose name begins
/// with a dot are ignored.
enum TokenKeyDirectory {
  /// Keys in one directory.
  static let limit = 1_000
  /// The longest file, in bytes.
  static let fileLimit = 64 << 10

  static func read(_ path: String, warn: (String) -> Void) throws(AccessFileError) -> TokenKeys {
    var keys: TokenKeys = [:]
    for name in try names(in: path) {
      let file = "\(path)/\(name)"
      let suffix = [".secret", ".pem"].first { name.hasSuffix($0) }
      guard let suffix else {
        warn("\(file) is no key: ID.secret and ID.pem are, so it is left alone")
        continue
      }
      let id = String(name.dropLast(suffix.count))
      if let objection = TokenKeyID.objection(to: id) {
        throw AccessFileError(file, "'\(IdentityRules.shown(id))' can't be the id of a key: \(objection)")
      }
      guard keys[id] == nil else {
        throw AccessFileError(file, "there are both \(id).pem and \(id).secret; a key has an id of its own")
      }
      keys[id] = try key(file, isSecret: suffix == ".secret", warn)
      guard keys.count <= limit else {
        throw AccessFileError(
          path, "has more than \(limit) keys; remove those that no token is signed with any more")
      }
    }
    return keys
  }

  private static func key(
    _ path: String, isSecret: Bool, _ warn: (String) -> Void
  ) throws(AccessFileError) -> TokenKey {
    let file = try AccessFile(path)
    let bytes = try file.contents(limit: fileLimit)
    if isSecret, file.isReadByOthers {
      warn(
        "every user of this machine can read \(path), and sign tokens with it; chmod 600 it, and make another secret"
      )
    }
    do {
      return isSecret ? .secret(try TokenKey.secretBytes(bytes)) : try TokenKey.publicKey(pem: bytes)
    } catch {
      throw AccessFileError(path, error.description)
    }
  }

  /// In the order of their names, so that the report is the same each time.
  private static func names(in path: String) throws(AccessFileError) -> [String] {
    let directory = try AccessFile(path, .directory, flags: O_RDONLY | O_DIRECTORY)
    guard let stream = unsafe fdopendir(dup(directory.descriptor)) else {
      throw AccessFileError(path, failing: "cannot be read")
    }
    defer { unsafe closedir(stream) }
    var names: [String] = []
    while let entry = unsafe readdir(stream) {
      let name = unsafe withUnsafeBytes(of: entry.pointee.d_name) { bytes in
        unsafe String(validating: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      guard let name, name.utf8.first != UInt8(ascii: ".") else { continue }
      names.append(name)
    }
    return names.sorted()
  }
}
