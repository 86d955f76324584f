import SluiceAccess
import SluiceCommand
import SluiceWire

/// Explains by which rule of a file of permissions an identity may do something, or may not.
struct UserCanCommand: Command {
  let subject: PermissionSubject
  /// Whose rules count.
  let identity: String
  let isAnonymous: Bool
  let right: Rights
  let action: String
  let topic: String
  let permissions: String
  let users: String?

  static let page = CommandPage(
    "sluice user can", summary: "explain which rule lets a user use a topic, or that none does",
    operands: [Operand("USER"), Operand("ACTION"), Operand("TOPIC")],
    options: [
      CommandOption("permissions", value: "FILE", help: "The file of permissions."),
      CommandOption(
        "file", value: "FILE", help: "The file of users: a user that isn't in it may do nothing."),
      CommandOption(
        "client-id", value: "ID",
        help: "The client's identifier, for rules with %c: the one of MQTT, or the name of any other client."),
      CommandOption(
        "anonymous",
        help:
          "USER is the name that sluiced --anonymous has: lines of * don't apply, and a rule with %u allows nothing."
      ),
    ],
    details: """
      ACTION is publish, subscribe, create or admin. TOPIC is the broker's name of a topic, devices.lamp for devices/lamp of MQTT. The answer is \
      what a broker with these files decides, and the line of the rule. Exit code 0: allowed; 1: not allowed, or a file can't be read.
      """,
    examples: [
      "By a rule for all devices.":
        "sluice user can lamp publish devices.lamp.state --permissions /etc/sluice/permissions",
      "For one client of the user.":
        "sluice user can home subscribe devices.d1.set --client-id d1 --permissions /etc/sluice/permissions",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    let name = arguments.operands[0]
    if let objection = IdentityRules.objection(to: name) {
      throw UsageError("'\(name)' can't be a user's name: \(objection)")
    }
    action = arguments.operands[1]
    let actions = Rights.names.map(\.value)
    guard let right = Rights.names.first(where: { [action] in $0.value == action })?.key else {
      let nearest = Spelling.nearest(to: action, in: actions).map { "; did you mean \($0)?" } ?? ""
      throw UsageError("'\(action)' isn't an action: \(actions.joined(separator: ", "))\(nearest)")
    }
    self.right = right
    topic = try TopicOperand.read(arguments.operands[2])
    guard let path = arguments.text("permissions"), !path.isEmpty else {
      throw UsageError("--permissions FILE is missing: name the file of permissions to check")
    }
    permissions = path
    users = arguments.text("file")
    isAnonymous = arguments.has("anonymous")
    if isAnonymous, users != nil {
      throw UsageError("--file: an anonymous client isn't a user; leave out --file or --anonymous")
    }
    identity = name
    subject = PermissionSubject(
      user: isAnonymous ? "" : name, clientID: arguments.text("client-id") ?? "")
  }

  func start(_ run: Run) {
    AccessJob.answer(run) {
      if let users {
        let file = try UsersFile.read(users)
        guard file.hasUser(identity) else {
          return ("no: \(UserCommand.missing(identity, in: file, users))\n", .failure)
        }
      }
      let decision = PermissionDecision(
        right, on: topic, by: try PermissionsFile.read(permissions), for: subject, rulesOf: identity,
        isAnonymous: isAnonymous)
      return (answer(decision), decision.isAllowed ? .success : .failure)
    }
  }

  // MARK: The answer

  private var client: String {
    (isAnonymous ? "an anonymous client" : identity)
      + (subject.clientID.isEmpty ? "" : " as client \(ShownText.line(subject.clientID, limit: 64))")
  }

  private var deed: String {
    switch right {
    case .publish: "publish to \(topic)"
    case .subscribe: "subscribe to \(topic)"
    case .create: "create \(topic)"
    default: "administer \(topic)"
    }
  }

  private func answer(_ decision: PermissionDecision) -> String {
    guard decision.isAllowed else {
      var lines = ["no: \(client) may not \(deed), as no rule in \(permissions) allows it"]
      lines += decision.others.map { "\(shown($0)) selects the topic, but doesn't allow to \(action)" }
      lines += decision.unbound.map { "\(shown($0)) allows nothing here: \(reason($0))" }
      return lines.joined(separator: "\n") + "\n"
    }
    guard let rule = decision.deciding else {
      return "yes: \(client) may \(deed), as the topic is an inbox, whose name is the permission\n"
    }
    let bound = Permissions([rule.rule]).bound(to: subject).rules[0].pattern
    let meaning = bound == rule.rule.pattern ? "" : ", which is \(bound) here"
    return "yes: \(client) may \(deed), by \(shown(rule))\(meaning)\n"
  }

  private func shown(_ rule: PermissionFileRule) -> String {
    let rights = Rights.names.filter { rule.rule.rights.contains($0.key) }.map(\.value)
    return
      "line \(rule.line) of \(permissions): \(rule.subject ?? "*") \(rights.joined(separator: ",")) \(rule.rule.pattern)"
  }

  private func reason(_ rule: PermissionFileRule) -> String {
    if subject.clientID.isEmpty, rule.rule.pattern.description.contains("%c") {
      return "%c is the client's identifier; state one with --client-id"
    }
    if isAnonymous, rule.rule.pattern.description.contains("%u") {
      return "%u is the name of a user, and anonymous clients have none"
    }
    return "the name of the user or client can't be a level of a topic there"
  }
}
