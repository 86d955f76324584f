import SluiceTLS

/// Derives numbers from names that clients choose, separately for each identity.
enum IdentityDigest {
  /// Returns the first 64 bits of the SHA-256 of both: a client can't choose a name that has the number of another identity's name.
  static func number(of name: String, of identity: String) -> UInt64 {
    // The length separates the two: ("ab", "c") and ("a", "bc") differ.
    let hash = sha256(Array("\(identity.utf8.count) \(identity)\(name)".utf8))
    return hash.prefix(8).reduce(0) { $0 << 8 | UInt64($1) }
  }
}
