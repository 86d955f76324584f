import SluiceAccess
import SluiceCommand
import SluiceWire

/// `sluice token make`
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
      CommandOption("subject", value: "NAME", help: "Whose it is."),
      CommandOption("for", value: "TIME", help: "How long it can be used, from now on: 15m, 24h."),
      pattern("publish", "May publish to topics that match, and end them."),
      pattern("subscribe", "May subscribe to topics that match."),
      pattern("create", "May create topics that match, with settings or by the first use."),
      pattern("admin", "May delete topics that match, and look after their cursors and groups."),
      CommandOption(
        "output", value: "FILE",
        help: "Write it there instead, for the owner alone; what was there before is replaced at once."),
    ],
    details: [
      """
      With one of --publish, --subscribe, --create and --admin the token says what may be done, and the broker's own permissions don't count; \
      without any, they do.
      """
    ],
    examples: [
      .init(
        "An hour of publishing.",
        "sluice token make --key signing.pem --key-id 2026 --subject shop --for 1h --publish 'orders.>'"),
      .init(
        "For a client that reads it from a file each time it connects.",
        "sluice token make --key signing.pem --key-id 2026 --subject shop --for 24h --output shop.token"),
    ])

  private static func pattern(_ name: String, _ help: String) -> CommandOption {
    CommandOption(name, value: "PATTERN", help: help, isRepeatable: true)
  }

  private static func pattern(_ text: String) throws(ValueError) -> TopicPattern {
    do {
      return try TopicPattern(text)
    } catch {
      throw ValueError(error.message)
    }
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
    subject = try needed("subject", "NAME says whose it is")
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
      let patterns = try arguments.values(option, Self.pattern)
      rules += patterns.map { Permissions.Rule(rights, on: $0) }
    }
    permissions = rules.isEmpty ? nil : Permissions(rules)
  }

  func start(_ run: Run) {
    AccessJob.start(run) { () throws(AccessJob.Failure) in
      do throws(AccessFileError) {
        return try make(run)
      } catch {
        throw .init(error)
      }
    }
  }

  private func make(_ run: Run) throws(AccessFileError) -> String {
    let signer = try KeyFile.signer(key) { run.note($0) }
    let now = TokenCommand.now
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
