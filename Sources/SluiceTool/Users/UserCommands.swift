import SluiceAccess
import SluiceCommand
import SluiceTLS

struct UserCommand: CommandGroup {
  static var needsBroker: Bool { false }

  static var members: [any Command.Type] {
    [
      UserAddCommand.self, UserPasswdCommand.self, UserRemoveCommand.self, UserListCommand.self,
      UserCanCommand.self,
    ]
  }

  static let page = CommandPage(
    "sluice user", summary: "manage the file of a broker's users and their passwords",
    operands: [Operand("COMMAND")],
    details: """
      FILE is the file of sluiced --users. The commands change it directly, without a broker; a running broker reads it again on SIGHUP. It contains hashes of \
      passwords (scrypt); still, only its owner should be able to read it. Comments and the order of lines stay unchanged.
      """,
    examples: [
      "Add a user, and type the password.": "sluice user add alice --file /etc/sluice/users",
      "Add a user with a random password, in a script.":
        "openssl rand -base64 18 | tee alice.password | sluice user add alice --file /etc/sluice/users",
      "List all users.": "sluice user list --file /etc/sluice/users",
      "Whether alice may publish to a topic, and why.":
        "sluice user can alice publish orders.eu --permissions /etc/sluice/permissions",
    ], commands: members.map { $0.page })

  static let file = CommandOption("file", value: "FILE", help: "The file of users.")

  /// The value of `--file`.
  static func file(_ arguments: ParsedArguments) throws(UsageError) -> String {
    guard let path = arguments.text("file"), !path.isEmpty else {
      throw UsageError("--file is missing; name the file of users")
    }
    return path
  }

  /// The user's name from the operands.
  static func name(_ arguments: ParsedArguments) throws(UsageError) -> String {
    let name = arguments.operands[0]
    if let objection = IdentityRules.objection(toUser: name) {
      throw UsageError("'\(name)' can't be a user's name: \(objection)")
    }
    return name
  }

  /// The failure for a missing user, which suggests the nearest name.
  static func missing(_ name: String, in file: UsersFile, _ path: String) -> AccessJob.Failure {
    let nearest = Spelling.nearest(to: name, in: file.users.map(\.name))
    return .init("there is no user \(name) in \(path)\(nearest.map { "; did you mean \($0)?" } ?? "")")
  }

  static func hash(_ password: String) throws(AccessJob.Failure) -> PasswordHash {
    guard let hash = PasswordHash(of: password) else {
      throw .init("there isn't enough memory to hash the password: 32 MiB are needed")
    }
    return hash
  }

  /// Changes the file, unless `change` returns a failure, which is thrown.
  static func edit(
    _ path: String, making: Bool = false, _ change: (inout UsersFile) -> AccessJob.Failure?
  ) throws -> Bool {
    var failure: AccessJob.Failure?
    do {
      return try UsersFile.edit(path, making: making) { users throws(AccessFileError) in
        failure = change(&users)
        if failure != nil { throw AccessFileError(path, "was left as it was") }
      }
    } catch {
      throw failure ?? error
    }
  }
}

struct UserAddCommand: Command {
  let name: String
  let file: String
  let password: PasswordInput

  static let page = CommandPage(
    "sluice user add", summary: "add a user with a password", operands: [Operand("NAME")],
    options: [UserCommand.file, PasswordInput.option],
    details: """
      On a terminal, type the password twice; it isn't shown. Otherwise it is read from standard input or --password-file. It needs at least \
      \(PasswordInput.minimumLength) characters. If FILE doesn't exist, it is created, readable only by its owner.
      """,
    examples: [
      "Add a user, and type the password.": "sluice user add alice --file /etc/sluice/users",
      "Add a user with a password from a file.":
        "sluice user add alice --file /etc/sluice/users --password-file /run/secrets/alice",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = try UserCommand.name(arguments)
    file = try UserCommand.file(arguments)
    password = PasswordInput(arguments)
  }

  func start(_ run: Run) {
    AccessJob.start(run) {
      let there = AccessJob.Failure(
        "user \(name) exists in \(file); to change the password, use sluice user passwd")
      // Checked before the user types a password.
      if let users = try? UsersFile.read(file), users.hasUser(name) { throw there }
      let hash = try UserCommand.hash(try password.read(for: name))
      let isNew = try UserCommand.edit(file, making: true) { users in
        if users.hasUser(name) { return there }
        users.set(hash, of: name)
        return nil
      }
      run.note(isNew ? "created \(file) with user \(name)" : "added user \(name) to \(file)")
      return ""
    }
  }
}

struct UserPasswdCommand: Command {
  let name: String
  let file: String
  let password: PasswordInput

  static let page = CommandPage(
    "sluice user passwd", summary: "change a user's password", operands: [Operand("NAME")],
    options: [UserCommand.file, PasswordInput.option],
    details: """
      Reads the password like sluice user add. When the broker reads the file again, it closes connections that were made with the old password.
      """,
    examples: [
      "Change a password, and type the new one.": "sluice user passwd alice --file /etc/sluice/users"
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = try UserCommand.name(arguments)
    file = try UserCommand.file(arguments)
    password = PasswordInput(arguments)
  }

  func start(_ run: Run) {
    AccessJob.start(run) {
      let users = try UsersFile.read(file)
      guard users.hasUser(name) else { throw UserCommand.missing(name, in: users, file) }
      let hash = try UserCommand.hash(try password.read(for: name))
      _ = try UserCommand.edit(file) { users in
        guard users.hasUser(name) else { return UserCommand.missing(name, in: users, file) }
        users.set(hash, of: name)
        return nil
      }
      run.note("changed the password of user \(name)")
      return ""
    }
  }
}

struct UserRemoveCommand: Command {
  let name: String
  let file: String

  static let page = CommandPage(
    "sluice user remove", summary: "remove a user", operands: [Operand("NAME")], options: [UserCommand.file],
    details: """
      When the broker reads the file again, it closes the user's connections. Permissions are in another file, and stay: a certificate or a token with the same name \
      still has them.
      """,
    examples: [
      "Remove a user, and close the user's connections.":
        "sluice user remove alice --file /etc/sluice/users && pkill -HUP sluiced"
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = try UserCommand.name(arguments)
    file = try UserCommand.file(arguments)
  }

  func start(_ run: Run) {
    AccessJob.start(run) {
      _ = try UserCommand.edit(file) { users in
        users.remove(name) ? nil : UserCommand.missing(name, in: users, file)
      }
      run.note("removed user \(name) from \(file)")
      return ""
    }
  }
}

struct UserListCommand: Command {
  let file: String
  let asJSON: Bool

  static let page = CommandPage(
    "sluice user list", summary: "list the users, and the cost of their password hashes",
    options: [UserCommand.file, CommandOption("json", help: "Print an object a line.")],
    examples: [
      "List all users.": "sluice user list --file /etc/sluice/users",
      "List only names.": "sluice user list --file /etc/sluice/users --json | jq -r .user",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    file = try UserCommand.file(arguments)
    asJSON = arguments.has("json")
  }

  func start(_ run: Run) {
    AccessJob.start(run) {
      let users = try UsersFile.read(file).users
      return asJSON ? users.map(Self.line).joined() : Self.table(users)
    }
  }

  private static func table(_ users: [(name: String, hash: PasswordHash)]) -> String {
    let rows = users.map { [$0.name, cost($0.hash), $0.hash.isWeak ? "weak" : ""] }
    return TextTable.render([["USER", "HASH", ""]] + rows, leftColumns: 3)
  }

  private static func line(_ user: (name: String, hash: PasswordHash)) -> String {
    let json: JSON = [
      "user": .text(user.name), "hash": .text(cost(user.hash)), "weak": .flag(user.hash.isWeak),
    ]
    return json.line
  }

  private static func cost(_ hash: PasswordHash) -> String {
    "scrypt ln=\(hash.cost.logN),r=\(hash.cost.r),p=\(hash.cost.p)"
  }
}
