import SluiceAccess
import SluiceCommand

/// `sluice user passwd`
struct UserPasswdCommand: Command {
  let name: String
  let file: String
  let password: PasswordInput

  static let page = CommandPage(
    "sluice user passwd", summary: "give a user another password", operands: [Operand("NAME")],
    options: [UserCommand.file, PasswordInput.option],
    details: [
      """
      As with sluice user add. When the broker reads the file again, connections that were made with the old password end.
      """
    ],
    examples: [.init("A password that is asked for.", "sluice user passwd alice --file /etc/sluice/users")])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = try UserCommand.name(arguments)
    file = try UserCommand.file(arguments)
    password = PasswordInput(arguments)
  }

  func start(_ run: Run) {
    AccessJob.start(run) { () throws(AccessJob.Failure) in
      let users = try UserCommand.read(file)
      guard users.hasUser(name) else { throw UserCommand.missing(name, in: users, file) }
      let hash = try UserCommand.hash(try password.read(for: name))
      _ = try UserCommand.edit(file) { users in
        guard users.hasUser(name) else { return UserCommand.missing(name, in: users, file) }
        users.set(hash, of: name)
        return nil
      }
      run.note("user \(name) has another password")
      return ""
    }
  }
}
