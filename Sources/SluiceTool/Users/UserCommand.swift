import SluiceAccess
import SluiceCommand

/// `sluice user`
struct UserCommand: CommandGroup {
  static var needsBroker: Bool { false }

  static var members: [any Command.Type] {
    [UserAddCommand.self, UserPasswdCommand.self, UserRemoveCommand.self, UserListCommand.self]
  }

  static let page = CommandPage(
    "sluice user", summary: "look after the file of a broker's users and their passwords",
    operands: [Operand("COMMAND")],
    details: [
      """
      FILE is the one that sluiced is told with --users. The commands work on it directly, without a broker; one that runs reads it again on \
      SIGHUP. It has hashes of passwords (scrypt), not passwords, and should still be its owner's alone. Comments and the order of lines stay.
      """
    ],
    examples: [
      .init("A user, whose password is asked for.", "sluice user add alice --file /etc/sluice/users"),
      .init(
        "The same in a script.",
        "openssl rand -base64 18 | tee alice.password | sluice user add alice --file /etc/sluice/users"),
      .init("Who there is.", "sluice user list --file /etc/sluice/users"),
    ], commands: members.map { $0.page })

  static let file = CommandOption("file", value: "FILE", help: "The file of users.")

  /// The file that was named.
  static func file(_ arguments: ParsedArguments) throws(UsageError) -> String {
    guard let path = arguments.text("file"), !path.isEmpty else {
      throw UsageError("--file FILE says which file of users it is about")
    }
    return path
  }

  /// The user that was named.
  static func name(_ arguments: ParsedArguments) throws(UsageError) -> String {
    let name = arguments.operands[0]
    if let objection = IdentityRules.objection(toUser: name) {
      throw UsageError("'\(name)' can't be a user's name: \(objection)")
    }
    return name
  }

  /// Who may have been meant.
  static func missing(_ name: String, in file: UsersFile, _ path: String) -> AccessJob.Failure {
    let nearest = Spelling.nearest(to: name, in: file.users.map(\.name))
    return .init("there is no user \(name) in \(path)\(nearest.map { "; did you mean \($0)?" } ?? "")")
  }

  static func hash(_ password: String) throws(AccessJob.Failure) -> PasswordHash {
    guard let hash = PasswordHash(of: password) else {
      throw .init("there isn't enough memory to hash the password, which takes 32 MiB")
    }
    return hash
  }

  static func read(_ path: String) throws(AccessJob.Failure) -> UsersFile {
    do {
      return try UsersFile.read(path)
    } catch {
      throw .init(error)
    }
  }

  /// Changes the file; what `change` returns is why it can't be.
  static func edit(
    _ path: String, making: Bool = false, _ change: (inout UsersFile) -> AccessJob.Failure?
  ) throws(AccessJob.Failure) -> Bool {
    var failure: AccessJob.Failure?
    do {
      return try UsersFile.edit(path, making: making) { users throws(AccessFileError) in
        failure = change(&users)
        if failure != nil { throw AccessFileError(path, "was left as it was") }
      }
    } catch {
      throw failure ?? .init(error)
    }
  }
}
