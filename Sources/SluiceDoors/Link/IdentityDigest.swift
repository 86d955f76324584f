import SluiceTLS

/// Numbers for names that clients choose, each identity for itself.
enum IdentityDigest {
  /// The first 64 bits of the SHA-256 of both: a client can't choose a name whose number is that of another identity's.
  static func number(of name: String, of identity: String) -> UInt64 {
    // The length keeps the two apart: ("ab", "c") isn't ("a", "bc").
    let hash = sha256(Array("\(identity.utf8.count) \(identity)\(name)".utf8))
    return hash.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
