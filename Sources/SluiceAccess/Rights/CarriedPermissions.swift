import SluiceWire

/// The permissions that an identity carries, as nodes send them to each other.
///
/// ```
/// "" where it carries none, or "=", and for each rule a line: the rights' number in decimal, a space, the pattern
/// ```
public enum CarriedPermissions {
  /// Nil for permissions without limits, which no token carries.
  public static func encoded(_ identity: Identity) -> String? {
    guard identity.carriesPermissions else { return "" }
    guard !identity.permissions.isUnrestricted else { return nil }
    return identity.permissions.rules.reduce(into: "=") { text, rule in
      text += "\n\(rule.rights.rawValue) \(rule.pattern)"
    }
  }

  /// Nil where the identity carries none.
  ///
  /// - Throws: `authenticationFailed` for what ``encoded(_:)`` doesn't make.
  static func decoded(_ text: String) throws(WireError) -> Permissions? {
    guard !text.isEmpty else { return nil }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    guard lines.first == "=" else { throw malformed }
    var rules: [Permissions.Rule] = []
    for line in lines.dropFirst() {
      let words = line.split(separator: " ", maxSplits: 1)
      guard words.count == 2, let rights = UInt8(words[0]),
        Rights.all.isSuperset(of: Rights(rawValue: rights)),
        let pattern = try? TopicPattern(String(words[1]))
      else { throw malformed }
      rules.append(Permissions.Rule(Rights(rawValue: rights), on: pattern))
    }
    return Permissions(rules)
  }

  private static var malformed: WireError {
    WireError(.authenticationFailed, "the node sent malformed permissions of a client")
  }
}
