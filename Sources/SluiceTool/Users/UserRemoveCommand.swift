import SluiceAccess
import SluiceCommand

/// `sluice user remove`
struct UserRemoveCommand: Command {
  let name: String
  let file: String

  static let page = CommandPage(
    "sluice user remove", summary: "remove a user", operands: [Operand("NAME")], options: [UserCommand.file],
    details: [
      """
      When the broker reads the file again, the user's connections end. Permissions are elsewhere, and stay: a certificate or a token of the same \
      name still has them.
      """
    ],
    examples: [
      .init(
        "From the file, and from the broker.",
        "sluice user remove alice --file /etc/sluice/users && pkill -HUP sluiced")
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = try UserCommand.name(arguments)
    file = try UserCommand.file(arguments)
  }

  func start(_ run: Run) {
    AccessJob.start(run) { () throws(AccessJob.Failure) in
      _ = try UserCommand.edit(file) { users in
        users.remove(name) ? nil : UserCommand.missing(name, in: users, file)
      }
      run.note("removed user \(name) from \(file)")
      return ""
    }
  }
}
