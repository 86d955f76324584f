import SluiceAccess
import SluiceCommand
import SluiceWire

/// Users and permissions in the API. Never has passwords, their hashes or keys, only names.
enum AccessJSON {
  /// Identities in the order of their names: those with a password, and those with permissions.
  static func list(_ policy: AccessPolicy, filter: String, limit: Int) -> JSON {
    var isUser: NameTable<Bool> = [:]
    for name in policy.permissions.names { isUser[name] = false }
    for name in policy.users.names { isUser[name] = true }
    let wanted = filter.lowercased()
    let selected = isUser.names.filter { wanted.isEmpty || $0.lowercased().contains(wanted) }.sorted()
    return [
      "identities": .array(
        selected.prefix(limit).map { name in
          [
            "name": .text(name), "password": .flag(isUser[name] ?? false),
            "permissions": rules(policy.permissions[name]),
          ]
        }),
      "count": .exact(isUser.count), "selected": .exact(selected.count),
      "everyIdentity": rules(policy.commonPermissions),
      "tokenKeys": .array(policy.tokenKeys.names.sorted().prefix(limit).map { .text($0) }),
      "certificatesMustBeListed": .flag(policy.certificatesMustBeListed),
    ]
  }

  private static func rules(_ permissions: Permissions?) -> JSON {
    .array(
      (permissions?.rules ?? []).map { rule in
        [
          "pattern": .text(rule.pattern.description),
          "rights": .array(Rights.names.filter { rule.rights.contains($0.key) }.map { .text($0.value) }),
        ]
      })
  }
}
