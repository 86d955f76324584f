import SluiceWire

/// A rule of a file of permissions.
package struct PermissionFileRule: Hashable, Sendable {
  /// From 1.
  package var line: Int
  /// Nil for a rule of all authenticated clients.
  package var subject: String?
  package var rule: Permissions.Rule
}

/// Whether a client may do something with a topic by a file of permissions, and which rules decide.
package struct PermissionDecision: Sendable {
  package let isAllowed: Bool
  /// The first rule that allows it. Nil if none does, and for an inbox, whose name is the permission.
  package let deciding: PermissionFileRule?
  /// Rules of the client that select the topic and allow something else.
  package let others: [PermissionFileRule]
  /// Rules that allow it on topics of other clients, as their placeholders have no value for this one.
  package let unbound: [PermissionFileRule]

  /// - Parameters:
  ///   - right: a single one.
  ///   - subject: the client.
  ///   - identity: the identity whose rules count; for anonymous clients, the name in the broker's settings.
  ///   - isAnonymous: whether the rules of all authenticated clients don't count.
  package init(
    _ right: Rights, on topic: String, by file: PermissionsFile, for subject: PermissionSubject,
    rulesOf identity: String, isAnonymous: Bool
  ) {
    let rules = file.rules.filter { rule in
      rule.subject.map { $0.utf8.elementsEqual(identity.utf8) } ?? !isAnonymous
    }
    func permissions(_ rules: [PermissionFileRule]) -> Permissions {
      Permissions(rules.map(\.rule)).bound(to: subject)
    }
    isAllowed = permissions(rules).allow(right, on: topic)
    deciding = rules.first { permissions([$0]).rights(on: topic).contains(right) }
    others = rules.filter { rule in
      let rights = permissions([rule]).rights(on: topic)
      return !rights.isEmpty && !rights.contains(right)
    }
    unbound = rules.filter { $0.rule.rights.contains(right) && permissions([$0]).rules.isEmpty }
  }
}
