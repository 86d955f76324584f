import SluiceWire

/// The text by which a node sends another one the permissions of an identity.
///
/// ```
/// "" where the identity's name is enough
/// "@", and the client's identifier where permissions depend on it
/// "=", and for each rule that the identity carries a line: the rights' number in decimal, a space, the pattern
/// ```
public enum CarriedPermissions {
  enum Content {
    case rules(Permissions)
    case client(String)

    /// Empty where the text has none.
    var clientID: String { if case .client(let clientID) = self { clientID } else { "" } }
  }

  /// Nil for permissions without limits, which no token carries.
  public static func encoded(_ identity: Identity) -> String? {
    guard identity.carriesPermissions else {
      return identity.dependsOnClient ? encoded(client: identity.clientID) : ""
    }
    guard !identity.permissions.isUnrestricted else { return nil }
    return identity.permissions.rules.reduce(into: "=") { text, rule in
      text += "\n\(rule.rights.rawValue) \(rule.pattern)"
    }
  }

  /// For an identity whose permissions may depend on the client's identifier.
  public static func encoded(client clientID: String) -> String { "@" + clientID }

  /// - Throws: `authenticationFailed` for what ``encoded(_:)`` doesn't make.
  static func decoded(_ text: String) throws(WireError) -> Content {
    guard !text.isEmpty else { return .client("") }
    if text.utf8.first == UInt8(ascii: "@") { return .client(String(text.dropFirst())) }
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
    return .rules(Permissions(rules))
  }

  private static var malformed: WireError {
    WireError(.authenticationFailed, "the node sent malformed permissions of a client")
  }
}
