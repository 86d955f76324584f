import SluiceWire

/// The rights of an identity on a topic.
public struct Rights: OptionSet, Hashable, Sendable {
  public var rawValue: UInt8

  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  /// Open publications, and with them end the topic.
  public static let publish = Rights(rawValue: 1)
  /// Subscribe, join groups, look at cursors.
  public static let subscribe = Rights(rawValue: 2)
  /// Make the topic, by the first use or with settings.
  public static let create = Rights(rawValue: 4)
  /// Delete the topic, connect and disconnect it, move and delete its cursors and groups.
  public static let admin = Rights(rawValue: 8)

  public static let all: Rights = [.publish, .subscribe, .create, .admin]
}

extension Rights {
  /// The rights one by one, as they are written.
  public static let names: KeyValuePairs<Rights, String> = [
    .publish: "publish", .subscribe: "subscribe", .create: "create", .admin: "admin",
  ]
}

/// The rights of one identity, by the names of topics. Everything that no rule allows is denied.
///
/// A wildcard that comes first doesn't select private names, `_inbox.…` and `$…`: see `TopicPattern.selects(_:)`. Inboxes, to which replies go, belong to their
/// owners by names that can't be guessed. An identity that may publish to any topic may open an inbox with a name of its own, and one that may subscribe to any
/// topic may send to an inbox.
public struct Permissions: Hashable, Sendable {
  public struct Rule: Hashable, Sendable {
    public var rights: Rights
    public var pattern: TopicPattern

    public init(_ rights: Rights, on pattern: TopicPattern) {
      self.rights = rights
      self.pattern = pattern
    }
  }

  /// For a broker that doesn't authenticate clients.
  public static let everything = Permissions(isUnrestricted: true, rules: [])
  public static let nothing = Permissions(isUnrestricted: false, rules: [])

  /// True for ``everything``, for which no name needs to be looked at.
  public let isUnrestricted: Bool
  public let rules: [Rule]
  /// Where in byte order all names stand that it may know of, among others. For ``everything``, everywhere.
  public let spans: [NameSpan]
  /// All rights that the rules allow on some name.
  private let most: Rights
  /// The placeholders in patterns, which ``bound(to:)`` replaces.
  let placeholders: PermissionPlaceholders

  public init(_ rules: [Rule]) {
    self.init(isUnrestricted: false, rules: rules)
  }

  private init(isUnrestricted: Bool, rules: [Rule]) {
    self.isUnrestricted = isUnrestricted
    self.rules = rules
    spans = isUnrestricted ? [.all] : NameSpan.merged(rules.lazy.map(\.pattern.span))
    most = rules.reduce(into: []) { $0.formUnion($1.rights) }
    placeholders = rules.reduce(into: []) { $0.formUnion(PermissionPlaceholders(in: $1.pattern)) }
  }

  /// The union of both.
  func adding(_ other: Permissions) -> Permissions {
    if isUnrestricted || other.isUnrestricted { return .everything }
    return rules.isEmpty ? other : Permissions(rules + other.rules)
  }

  /// All that may be done with the topic of that name, whether there is one or not.
  public func rights(on name: String) -> Rights {
    if isUnrestricted { return .all }
    var rights = Rights()
    for rule in rules where !rights.isSuperset(of: rule.rights) && rule.pattern.selects(name) {
      rights.formUnion(rule.rights)
    }
    return rights
  }

  /// Whether all of `wanted` may be done with the topic of that name.
  public func allow(_ wanted: Rights, on name: String) -> Bool {
    isUnrestricted || rights(on: name).union(inboxRights(on: name)).isSuperset(of: wanted)
  }

  /// Whether there could be a topic that the pattern selects and on which the rules allow `right`, a single one.
  public func reach(_ right: Rights, in pattern: TopicPattern) -> Bool {
    isUnrestricted
      || rules.contains { $0.rights.contains(right) && $0.pattern.commonName(with: pattern) != nil }
  }

  /// Whether the identity may administer every topic that a pattern selects, by a rule on `>`, and with that the broker.
  public var administerEverything: Bool {
    isUnrestricted || rules.contains { $0.rights.contains(.admin) && $0.pattern.description == ">" }
  }

  /// Whether the identity may know that there is such a topic.
  public func reveal(_ name: String) -> Bool {
    isUnrestricted || !rights(on: name).isEmpty
  }

  /// The rights that come with the name of an inbox. Doesn't make it visible.
  private func inboxRights(on name: String) -> Rights {
    guard name.hasPrefix(TopicName.inboxPrefix) else { return [] }
    var rights = Rights()
    if most.contains(.publish) { rights.formUnion([.create, .subscribe]) }
    if most.contains(.subscribe) { rights.formUnion(.publish) }
    return rights
  }
}
