import SluiceWire

/// Tokens of permissions' patterns that stand for a name of the client: `devices.%c.>` is `devices.lamp.>` for the client `lamp`.
struct PermissionPlaceholders: OptionSet, Hashable, Sendable {
  var rawValue: UInt8

  /// `%u`: the name of the identity.
  static let user = PermissionPlaceholders(rawValue: 1)
  /// `%c`: the client's identifier.
  static let clientID = PermissionPlaceholders(rawValue: 2)

  init(rawValue: UInt8) { self.rawValue = rawValue }

  /// The placeholder that a whole token is; nil for any other token.
  private init?(token: Substring) {
    switch token {
    case "%u": self = .user
    case "%c": self = .clientID
    default: return nil
    }
  }

  init(in pattern: TopicPattern) {
    self = Self.tokens(of: pattern).reduce(into: []) { $0.formUnion(Self(token: $1) ?? []) }
  }

  private static func tokens(of pattern: TopicPattern) -> [Substring] {
    guard pattern.description.utf8.contains(UInt8(ascii: "%")) else { return [] }
    return pattern.description.split(separator: ".", omittingEmptySubsequences: false)
  }

  /// The pattern for one client; nil if the client's name can't be a token of a topic's name.
  static func bind(_ pattern: TopicPattern, to subject: PermissionSubject) -> TopicPattern? {
    var isChanged = false
    var bound: [Substring] = []
    for (index, token) in tokens(of: pattern).enumerated() {
      guard let placeholder = Self(token: token) else {
        bound.append(token)
        continue
      }
      let name = placeholder == .user ? subject.user : subject.clientID
      guard let literal = Self.literal(name, isFirst: index == 0) else { return nil }
      bound.append(literal[...])
      isChanged = true
    }
    return isChanged ? try? TopicPattern(bound.joined(separator: ".")) : pattern
  }

  /// The token of topics' names that is a client's level: as a client of MQTT writes it between slashes, with escapes for what isn't allowed in a token. No two
  /// names have the same. Nil for a name that can't be one level.
  private static func literal(_ name: String, isFirst: Bool) -> String? {
    guard !name.isEmpty, Self(token: name[...]) == nil,
      !name.utf8.contains(where: { "/+#\0".utf8.contains($0) })
    else { return nil }
    // Below these are topics of the broker and of other clients, whatever a client calls itself.
    if isFirst, name.utf8.first == UInt8(ascii: "$") || name == "mqtt" || name == "_inbox" { return nil }
    let token = MQTTLevel(isFirst: isFirst).token(of: name[...])
    guard (try? TopicName.validate(token)) != nil, !token.utf8.contains(UInt8(ascii: ".")),
      !TopicPattern.hasWildcards(token)
    else { return nil }
    return token
  }
}

/// The client that permissions are for.
package struct PermissionSubject: Hashable, Sendable {
  /// The identity's name; empty for a client without credentials.
  package var user: String
  /// The identifier by which the client calls itself; empty without one.
  package var clientID: String

  package init(user: String, clientID: String = "") {
    self.user = user
    self.clientID = clientID
  }
}

extension Permissions {
  /// The permissions of one client: placeholders are its names. A rule whose placeholder has no valid value allows nothing.
  package func bound(to subject: PermissionSubject) -> Permissions {
    guard !placeholders.isEmpty else { return self }
    return Permissions(
      rules.compactMap { rule in
        PermissionPlaceholders.bind(rule.pattern, to: subject).map { Rule(rule.rights, on: $0) }
      })
  }
}
