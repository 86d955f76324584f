import SluiceAccess
import SluiceCommand

/// `sluice user add`
struct UserAddCommand: Command {
  let name: String
  let file: String
  let password: PasswordInput

  static let page = CommandPage(
    "sluice user add", summary: "add a user with a password", operands: [Operand("NAME")],
    options: [UserCommand.file, PasswordInput.option],
    details: [
      """
      The password is asked for twice on a terminal, which doesn't show it; else it is read from standard input or --password-file. It has \
      \(PasswordInput.minimumLength) characters at least. A file that isn't there is made, for its owner alone.
      """
    ],
    examples: [
      .init("A user, whose password is asked for.", "sluice user add alice --file /etc/sluice/users"),
      .init(
        "With a password from a file.",
        "sluice user add alice --file /etc/sluice/users --password-file /run/secrets/alice"),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = try UserCommand.name(arguments)
    file = try UserCommand.file(arguments)
    password = PasswordInput(arguments)
  }

  func start(_ run: Run) {
    AccessJob.start(run) { () throws(AccessJob.Failure) in
      let there = AccessJob.Failure(
        "there is a user \(name) in \(file) already; sluice user passwd gives them another password")
      // Before anybody types a password in vain.
      if let users = try? UserCommand.read(file), users.hasUser(name) { throw there }
      let hash = try UserCommand.hash(try password.read(for: name))
      let isNew = try UserCommand.edit(file, making: true) { users in
        if users.hasUser(name) { return there }
        users.set(hash, of: name)
        return nil
      }
      run.note(isNew ? "made \(file) with user \(name)" : "added user \(name) to \(file)")
      return ""
    }
  }
}
