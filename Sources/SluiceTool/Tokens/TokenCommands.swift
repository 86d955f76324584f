import SluiceAccess
import SluiceCommand
import SluiceTLS
import SluiceWire

struct TokenCommand: CommandGroup {
  static var needsBroker: Bool { false }

  static var members: [any Command.Type] {
    [TokenMakeCommand.self, TokenShowCommand.self, TokenKeyCommand.self]
  }

  static let page = CommandPage(
    "sluice token", summary: "make and show signed tokens for authentication",
    operands: [Operand("COMMAND")],
    details: """
      A token is a JSON Web Token with the bearer's identity, its expiry and, optionally, permissions on topics. The owner of the key makes tokens without a broker; \
      sluiced accepts tokens that are signed with a key in the directory of --token-keys. To replace a key, add another one under another ID, and remove the old one \
      when its tokens have expired.
      """,
    examples: [
      "Make a key pair; the broker gets the public key.":
        "sluice token key --output signing.pem --public /etc/sluice/keys/2026.pem",
      "Make a token that may publish orders for an hour.":
        "sluice token make --key signing.pem --key-id 2026 --subject shop --for 1h --publish 'orders.>'",
      "Show a token's contents.": "sluice token show --file shop.token",
    ], commands: members.map { $0.page })
}

struct TokenKeyCommand: Command {
  let algorithm: TokenAlgorithm
  let output: String
  let publicOutput: String?

  static let page = CommandPage(
    "sluice token key", summary: "make a key to sign tokens with",
    options: [
      CommandOption(
        "algorithm", value: "NAME",
        help:
          "ed25519 or rs256: a key pair, of which the broker needs the public key; hs256: a secret that both sides have.",
        standard: "ed25519", choices: ["ed25519", "rs256", "hs256"]),
      CommandOption(
        "output", value: "FILE",
        help: "The file for the private key or the secret, readable only by its owner. It must not exist."),
      CommandOption(
        "public", value: "FILE",
        help: "The file for the public key. Without it: the name of --output with .pub appended."),
    ],
    details: """
      In the broker's directory of --token-keys, a public key is named ID.pem and a secret ID.secret, where ID is the --key-id of sluice token make. With a secret, \
      every reader of the broker's file can make tokens.
      """,
    examples: [
      "Make a key pair; the broker gets the public key.":
        "sluice token key --output signing.pem --public /etc/sluice/keys/2026.pem",
      "Make a secret for both sides.":
        "sluice token key --algorithm hs256 --output /etc/sluice/keys/2026.secret",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    algorithm =
      try arguments.value("algorithm", Values.choice(["ed25519": .eddsa, "rs256": .rs256, "hs256": .hs256]))
      ?? .eddsa
    guard let path = arguments.text("output"), !path.isEmpty else {
      throw UsageError("--output is missing; name the file for the key")
    }
    output = path
    publicOutput = arguments.text("public")
    if algorithm == .hs256, publicOutput != nil {
      throw UsageError("--public: a secret has no public key; leave it out, or use ed25519")
    }
  }

  func start(_ run: Run) {
    AccessJob.start(run) {
      try make(run)
      return ""
    }
  }

  private func make(_ run: Run) throws {
    guard algorithm != .hs256 else {
      try KeyFile.make(output, TokenKey.newSecret(), isSecret: true)
      return run.note(
        "created \(output); copy it as ID.secret into the broker's directory of --token-keys")
    }
    let key: PrivateKey
    do {
      key = try PrivateKey.generate(algorithm == .eddsa ? .ed25519 : .rsa(bits: 3072))
    } catch {
      throw AccessFileError(output, "has \(error)")
    }
    let publicOutput = publicOutput ?? output + ".pub"
    try KeyFile.make(output, key.pem, isSecret: true)
    do {
      try KeyFile.make(publicOutput, key.publicPEM, isSecret: false)
    } catch {
      KeyFile.discard(output)
      throw error
    }
    run.note(
      "created \(output) and \(publicOutput); copy the latter as ID.pem into the broker's directory of --token-keys"
    )
  }
}

struct TokenMakeCommand: Command {
  let key: String
  let keyID: String
  let subject: String
  let lifetime: Duration
  /// Nil for the permissions of the broker's file.
  let permissions: Permissions?
  /// Nil for standard output.
  let output: String?

  private static let rights: KeyValuePairs<String, Rights> = [
    "publish": .publish, "subscribe": .subscribe, "create": .create, "admin": .admin,
  ]

  static let page = CommandPage(
    "sluice token make", summary: "make a token, and print it",
    options: [
      CommandOption("key", value: "FILE", help: "The key to sign with: a private key in PEM, or a secret."),
      CommandOption(
        "key-id", value: "ID", help: "The key's ID at the broker, where its file is ID.pem or ID.secret."),
      CommandOption("subject", value: "NAME", help: "The identity of the bearer."),
      CommandOption("for", value: "TIME", help: "How long the token is valid: 15m, 24h."),
      pattern("publish", "Permit publishing to matching topics, and ending them."),
      pattern("subscribe", "Permit subscribing to matching topics."),
      pattern("create", "Permit creating matching topics, with settings or by their first use."),
      pattern("admin", "Permit deleting matching topics, and managing their cursors and groups."),
      CommandOption(
        "output", value: "FILE",
        help: "Write the token to FILE, readable only by its owner; an existing file is replaced atomically."),
    ],
    details: """
      With any of --publish, --subscribe, --create and --admin, the token's permissions replace those of the broker. Without them, the broker's permissions apply.
      """,
    examples: [
      "Make a token for an hour of publishing.":
        "sluice token make --key signing.pem --key-id 2026 --subject shop --for 1h --publish 'orders.>'",
      "Write a token for a client that reads its file at each connection.":
        "sluice token make --key signing.pem --key-id 2026 --subject shop --for 24h --output shop.token",
    ])

  private static func pattern(_ name: String, _ help: String) -> CommandOption {
    CommandOption(name, value: "PATTERN", help: help, isRepeatable: true)
  }

  init(_ arguments: ParsedArguments) throws(UsageError) {
    func needed(_ option: String, _ why: String) throws(UsageError) -> String {
      guard let text = arguments.text(option) else { throw UsageError("--\(option) \(why)") }
      return text
    }
    key = try needed("key", "is missing; name the file of the key to sign with (sluice token key makes one)")
    keyID = try needed("key-id", "is missing; give the key's ID at the broker")
    if let objection = TokenKeyID.objection(to: keyID) {
      throw UsageError("--key-id: '\(keyID)' can't be the id of a key: \(objection)")
    }
    subject = try needed("subject", "is missing; name the bearer's identity")
    if let objection = IdentityRules.objection(to: subject) {
      throw UsageError("--subject: '\(subject)' can't be an identity: \(objection)")
    }
    guard let lifetime = try arguments.value("for", TimeSpan.parse) else {
      throw UsageError("--for is missing; give the time that the token is valid, like 1h")
    }
    guard lifetime >= .seconds(1) else { throw UsageError("--for is too short; write at least 1s") }
    self.lifetime = lifetime
    output = arguments.text("output")
    var rules: [Permissions.Rule] = []
    for (option, rights) in Self.rights {
      let patterns = try arguments.values(option, Values.pattern)
      rules += patterns.map { Permissions.Rule(rights, on: $0) }
    }
    permissions = rules.isEmpty ? nil : Permissions(rules)
  }

  func start(_ run: Run) {
    AccessJob.start(run) { try make(run) }
  }

  private func make(_ run: Run) throws -> String {
    let signer = try KeyFile.signer(key) { run.note($0) }
    let now = WallTime.now
    let new = NewToken(
      subject: subject, keyID: keyID, issued: now, expires: now + lifetime.components.seconds * 1000,
      permissions: permissions)
    let token: String
    do {
      token = try new.signed(with: signer) + "\n"
    } catch {
      throw AccessFileError(key, error.description)
    }
    guard let output else { return token }
    try KeyFile.replace(output, with: Array(token.utf8))
    return ""
  }
}
