import SluiceAccess
import SluiceBroker
import SluiceCommand
import SluiceIO

/// Whether clients are authenticated, and the files for it.
struct AccessSettings {
  var files = AccessFiles()
  /// Nil if it follows from the files.
  var isOn: Bool?
  /// Whether the operator allows every client to do everything, from any address.
  var allowsUnauthenticated = false
  /// Nil if it follows from ``authenticatesClients``.
  var audit: Bool?

  /// Whether authentication, denials and administration are logged at every log level.
  var isAudited: Bool { audit ?? authenticatesClients }

  var authenticatesClients: Bool { isOn ?? (files.users != nil || files.tokenKeys != nil) }
}

extension DaemonSettings {
  /// Authentication and authorisation.
  static func accessSettings() -> [Setting] {
    [
      .path(
        "users", "FILE", \.access.files.users,
        "The file of users and password hashes; see sluice user --help."),
      .path(
        "token-keys", "DIR", \.access.files.tokenKeys,
        "The directory of keys that sign tokens, ID.pem or ID.secret; see sluice token --help."
      ),
      .path(
        "link-key", "FILE", \.access.files.linkKey,
        "The key that signs links of HTTP, at least 32 bytes. The nodes of a cluster need the same; without one, links end with the broker's process."
      ),
      .path(
        "permissions", "FILE", \.access.files.permissions,
        "Permissions of identities, a line each: IDENTITY RIGHTS PATTERN..., where * is every authenticated client, and rights are publish, subscribe, create, admin or all. In a pattern, a whole token %u is the identity and %c the client's identifier."
      ),
      Setting(
        CommandOption(
          "anonymous", value: "NAME",
          help:
            "Accept clients without credentials beside those that authenticate. Their permissions are those of NAME in --permissions; lines of * aren't for them."
        ), write: { $0.access.files.anonymous }
      ) { arguments, settings throws(UsageError) in
        guard let name = arguments.text("anonymous") else { return }
        if let objection = IdentityRules.objection(to: name) {
          throw UsageError("--anonymous: '\(name)' can't be an identity: \(objection)")
        }
        settings.access.files.anonymous = name
      },
      onOrOff(
        "auth", \.access.isOn,
        "Whether clients must authenticate. The default is on with --users or --token-keys; set it to use only certificates."
      ),
      .choice(
        "certificate-names", "any|listed", \.access.files.certificatesMustBeListed,
        "Whether the name in a client's certificate must be listed in --users or --permissions.",
        ["any": false, "listed": true]),
      Setting(
        CommandOption(
          "allow-unauthenticated", value: "BOOL", bare: "true",
          help:
            "Without authentication, allow addresses that other machines can reach: every client may do everything there.",
          standard: "false"), write: { $0.access.allowsUnauthenticated ? "true" : "false" }
      ) { arguments, settings throws(UsageError) in
        let read = Values.choice([
          "true": true, "false": false, "on": true, "off": false, "1": true, "0": false,
        ])
        if let value = try arguments.value("allow-unauthenticated", read) {
          settings.access.allowsUnauthenticated = value
        }
      },
      onOrOff(
        "audit", \.access.audit,
        "Whether authentication, denials and administration are logged at every log level, marked as audit. The default is on if clients must authenticate."
      ),
    ]
  }

  /// A setting that is on, off, or nil if it follows from other settings.
  private static func onOrOff(
    _ name: String, _ target: WritableKeyPath<DaemonSettings, Bool?>, _ help: String
  ) -> Setting {
    Setting(
      CommandOption(name, value: "on|off", help: help),
      write: { $0[keyPath: target].map { $0 ? "on" : "off" } }
    ) { arguments, settings throws(UsageError) in
      settings[keyPath: target] = try arguments.value(name, Values.choice(["on": true, "off": false]))
    }
  }

  /// - Throws: `UsageError` for settings that contradict each other, and for an address at which every client could do everything without an explicit
  ///   permission.
  func checkAccess() throws(UsageError) {
    guard access.authenticatesClients else {
      if access.files.users != nil || access.files.tokenKeys != nil {
        throw UsageError(
          "--auth: off contradicts --\(access.files.users != nil ? "users" : "token-keys"); leave one of them out"
        )
      }
      if access.files.anonymous != nil {
        throw UsageError(
          "--anonymous: no client authenticates, so all are anonymous; choose how others authenticate with --users FILE, --token-keys DIR, or --auth on for "
            + "certificates")
      }
      if access.files.permissions != nil {
        throw UsageError(
          "--permissions: clients don't authenticate; let them with --users FILE, --token-keys DIR, or --auth on for "
            + "certificates")
      }
      guard !access.allowsUnauthenticated, let open = broker.listen.first(where: { $0.isReachedByOthers })
      else {
        return
      }
      throw UsageError(
        "--listen: every client that reaches \(open) could read and write every topic; authenticate clients with --users FILE, --token-keys DIR, or --auth on for "
          + "certificates, or allow it with --allow-unauthenticated")
    }
    if access.files.anonymous != nil, access.files.permissions == nil {
      throw UsageError(
        "--anonymous: anonymous clients have no permissions; grant some with --permissions FILE")
    }
    if access.files.users == nil, access.files.tokenKeys == nil, access.files.anonymous == nil,
      !broker.listen.contains(where: \.hasTLS)
    {
      throw UsageError(
        "--auth: no client could authenticate; name --users FILE or --token-keys DIR, or listen on tls://HOST:PORT for clients with certificates"
      )
    }
    if access.allowsUnauthenticated {
      throw UsageError("--allow-unauthenticated: clients authenticate; leave it out")
    }
  }
}

extension SocketAddress {
  /// Whether other machines may be able to connect there.
  var isReachedByOthers: Bool { !isOnThisMachine }
}
