import SluiceAccess
import SluiceCommand
import SluiceTLS

/// `sluice user list`
struct UserListCommand: Command {
  let file: String
  let asJSON: Bool

  static let page = CommandPage(
    "sluice user list", summary: "list the users, and how hard their passwords are to guess",
    options: [UserCommand.file, CommandOption("json", help: "Print an object a line.")],
    examples: [
      .init("Who there is.", "sluice user list --file /etc/sluice/users"),
      .init("Names alone.", "sluice user list --file /etc/sluice/users --json | jq -r .user"),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    file = try UserCommand.file(arguments)
    asJSON = arguments.has("json")
  }

  func start(_ run: Run) {
    AccessJob.start(run) { () throws(AccessJob.Failure) in
      let users = try UserCommand.read(file).users
      return asJSON ? users.map(Self.line).joined() : Self.table(users)
    }
  }

  private static func table(_ users: [(name: String, hash: PasswordHash)]) -> String {
    let rows = users.map { [$0.name, cost($0.hash), $0.hash.isWeak ? "weak" : ""] }
    return TextTable.render([["USER", "HASH", ""]] + rows, leftColumns: 3)
  }

  private static func line(_ user: (name: String, hash: PasswordHash)) -> String {
    var object = JSONObject()
    object.add("user", user.name)
    object.add("hash", cost(user.hash))
    object.add("weak", user.hash.isWeak)
    return object.text + "\n"
  }

  private static func cost(_ hash: PasswordHash) -> String {
    "scrypt ln=\(hash.cost.logN),r=\(hash.cost.r),p=\(hash.cost.p)"
  }
}
