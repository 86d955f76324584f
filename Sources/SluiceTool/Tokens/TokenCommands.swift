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
    "sluice token", summary: "make and show the signed tokens that clients authenticate with",
    operands: [Operand("COMMAND")],
    details: """
      A token states its bearer's identity, its expiry and, optionally, permissions on topics (JSON Web Token). The owner of the key makes tokens \
      without a broker; sluiced takes those that are signed with a key in the directory of its --token-keys. A key is replaced by putting another \
      beside it, under another id, and removing the old one when no token needs it any more.
      """,
    examples: [
      "A pair of keys, one half of which is the broker's.":
        "sluice token key --output signing.pem --public /etc/sluice/keys/2026.pem",
      "A token that may publish orders for an hour.":
        "sluice token make --key signing.pem --key-id 2026 --subject shop --for 1h --publish 'orders.>'",
      "What a token says.": "sluice token show --file shop.token",
    ], commands: members.map { $0.page })
}

struct TokenKeyCommand: Command {
  let algorithm: TokenAlgorithm
  let output: String
  let publicOutput: String?

  static let page = CommandPage(
    "sluice token key", summary: "make a key that tokens are signed with",
    options: [
      CommandOption(
        "algorithm", value: "NAME",
        help:
          "ed25519 or rs256, a pair of keys of which the broker needs the public one; or hs256, a secret that both have.",
        standard: "ed25519", choices: ["ed25519", "rs256", "hs256"]),
      CommandOption(
        "output", value: "FILE",
        help: "Where the key goes that signs, for its owner alone. Mustn't be there yet."),
      CommandOption(
        "public", value: "FILE",
        help: "Where the public key goes; beside the other with .pub behind its name unless told."),
    ],
    details: """
      The broker has public keys as ID.pem and secrets as ID.secret in the directory of its --token-keys, where ID is what sluice token make is told as \
      --key-id. With a secret, every reader of the broker's file can make tokens, too.
      """,
    examples: [
      "A pair of keys, one half of which is the broker's.":
        "sluice token key --output signing.pem --public /etc/sluice/keys/2026.pem",
      "A secret that both have.": "sluice token key --algorithm hs256 --output /etc/sluice/keys/2026.secret",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    algorithm =
      try arguments.value("algorithm", Values.choice(["ed25519": .eddsa, "rs256": .rs256, "hs256": .hs256]))
      ?? .eddsa
    guard let path = arguments.text("output"), !path.isEmpty else {
      throw UsageError("--output FILE says where the key goes")
    }
    output = path
    publicOutput = arguments.text("public")
    if algorithm == .hs256, publicOutput != nil {
      throw UsageError("--public: a secret has no public half; leave it out, or take ed25519")
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
        "made \(output); the broker has the same as ID.secret in the directory of its --token-keys")
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
      "made \(output) and \(publicOutput); the broker has the latter as ID.pem in the directory of its --token-keys"
    )
  }
}

struct TokenMakeCommand: Command {
  let key: String
  let keyID: String
  let subject: String
  let lifetime: Duration
  /// Nil: what the broker's own file says.
  let permissions: Permissions?
  /// Nil for standard output.
  let output: String?

  private static let rights: KeyValuePairs<String, Rights> = [
    "publish": .publish, "subscribe": .subscribe, "create": .create, "admin": .admin,
  ]

  static let page = CommandPage(
    "sluice token make", summary: "make a token, and print it",
    options: [
      CommandOption("key", value: "FILE", help: "What it is signed with: a private key in PEM, or a secret."),
      CommandOption(
        "key-id", value: "ID", help: "What the broker calls the key: its file is ID.pem or ID.secret there."),
      CommandOption("subject", value: "NAME", help: "The identity that it is for."),
      CommandOption("for", value: "TIME", help: "How long it can be used, from now on: 15m, 24h."),
      pattern("publish", "May publish to topics that match, and end them."),
      pattern("subscribe", "May subscribe to topics that match."),
      pattern("create", "May create topics that match, with settings or by the first use."),
      pattern("admin", "May delete topics that match, and manage their cursors and groups."),
      CommandOption(
        "output", value: "FILE",
        help: "Write it there instead, for the owner alone; what was there before is replaced at once."),
    ],
    details: """
      With one of --publish, --subscribe, --create and --admin the token says what may be done, and the broker's own permissions don't count; \
      without any, they do.
      """,
    examples: [
      "An hour of publishing.":
        "sluice token make --key signing.pem --key-id 2026 --subject shop --for 1h --publish 'orders.>'",
      "For a client that reads it from a file each time it connects.":
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
    key = try needed("key", "FILE says what the token is signed with; sluice token key makes one")
    keyID = try needed("key-id", "ID says by which key the broker knows it")
    if let objection = TokenKeyID.objection(to: keyID) {
      throw UsageError("--key-id: '\(keyID)' can't be the id of a key: \(objection)")
    }
    subject = try needed("subject", "NAME says which identity it is for")
    if let objection = IdentityRules.objection(to: subject) {
      throw UsageError("--subject: '\(subject)' can't be an identity: \(objection)")
    }
    guard let lifetime = try arguments.value("for", TimeSpan.parse) else {
      throw UsageError("--for TIME says how long it can be used, like 1h")
    }
    guard lifetime >= .seconds(1) else { throw UsageError("--for: a token lasts a second at least") }
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
