import SluiceClient
import SluiceCommand
import SluiceWire

struct CursorCommand: CommandGroup {
  static var members: [any Command.Type] {
    [CursorListCommand.self, CursorMoveCommand.self, CursorDeleteCommand.self]
  }

  static let page = CommandPage(
    "sluice cursor", summary: "list, move and delete durable cursors and groups",
    operands: [Operand("COMMAND")],
    details: """
      A durable cursor is a place in a topic that the broker remembers by name; sluice sub --cursor makes, uses and moves it. A group has one, too, \
      which its members share.
      """,
    examples: [
      "The cursors of a topic, and how far behind they are.": "sluice cursor list orders.eu",
      "Read the last hour once more.": "sluice cursor move orders.eu billing --to time:-1h",
    ], commands: members.map { $0.page })
}

struct CursorListCommand: Command {
  let topic: String
  let asJSON: Bool

  static let page = CommandPage(
    "sluice cursor list", summary: "list a topic's durable cursors and groups", operands: [Operand("TOPIC")],
    options: [TopicCommand.json],
    examples: [
      "Which are there, and how far behind.": "sluice cursor list orders.eu",
      "Those without members.": "sluice cursor list orders.eu --json | jq 'select(.members == 0).cursor'",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    asJSON = arguments.has("json")
  }

  func start(_ run: Run) {
    run.connect { client in
      client.cursors(of: topic) { result in
        run.report(result) { cursors in
          asJSON ? cursors.map(CursorTable.line).joined() : CursorTable.list(cursors)
        }
      }
    }
  }
}

struct CursorMoveCommand: QuietRequest {
  let topic: String
  let name: String
  let start: SubscriptionPlan.Start

  static let page = CommandPage(
    "sluice cursor move", summary: "put a durable cursor or a group elsewhere in its topic",
    operands: [Operand("TOPIC"), Operand("NAME")],
    options: [
      CommandOption(
        "to", value: "START",
        help: "Where to, as with sluice sub --from: earliest, new, last:N, offset:K, time:T.",
        choices: ["earliest", "new"])
    ],
    details:
      "Makes the cursor if there is none. Its subscribers end, and go on there when they subscribe again.",
    examples: [
      "Everything once more.": "sluice cursor move orders.eu billing --to earliest",
      "Leave out what has come so far.": "sluice cursor move orders.eu billing --to new",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    name = try CursorOptions.operand(arguments.operands[1])
    guard let start = try arguments.value("to", SubCommand.start) else {
      throw UsageError("where to? Say --to with earliest, new, last:N, offset:K or time:T")
    }
    self.start = start
  }

  func request(_ client: Client, _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    client.moveCursor(name, of: topic, to: start, completion: completion)
  }
}

struct CursorDeleteCommand: QuietRequest {
  let topic: String
  let name: String

  static let page = CommandPage(
    "sluice cursor delete", summary: "forget a durable cursor or a group",
    operands: [Operand("TOPIC"), Operand("NAME")], details: "Its subscribers are told, and end.",
    examples: ["It isn't needed any more.": "sluice cursor delete orders.eu billing"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    name = try CursorOptions.operand(arguments.operands[1])
  }

  func request(_ client: Client, _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    client.deleteCursor(name, of: topic, completion: completion)
  }
}

/// Durable cursors and groups, for people and as objects of JSON.
enum CursorTable {
  static func list(_ cursors: [CursorInfo]) -> String {
    guard !cursors.isEmpty else { return "" }
    return TextTable.render(
      [["CURSOR", "KIND", "NEXT", "BEHIND", "MEMBERS", "OUTSTANDING", "IDLE"]]
        + cursors.map { cursor in
          [
            cursor.name, kind(cursor), "\(cursor.nextOffset)", "\(behind(cursor))", "\(cursor.members)",
            cursor.kind == .group ? "\(cursor.outstanding)" : "",
            cursor.idle == 0 ? "" : TimeSpan.exact(.milliseconds(Int64(clamping: cursor.idle))),
          ]
        }, leftColumns: 2)
  }

  static func line(_ cursor: CursorInfo) -> String {
    let json: JSON = [
      "cursor": .text(cursor.name), "kind": .text(kind(cursor)),
      // A text, as a topic's.
      "epoch": .text(TopicTable.hexadecimal(cursor.epoch)), "next_offset": .number(cursor.nextOffset),
      "behind": .number(behind(cursor)), "members": .number(cursor.members),
      "outstanding": .number(cursor.outstanding), "idle_ms": .number(cursor.idle),
    ]
    return json.line
  }

  static func behind(_ cursor: CursorInfo) -> UInt64 {
    cursor.end - min(cursor.end, cursor.nextOffset)
  }

  private static func kind(_ cursor: CursorInfo) -> String {
    switch cursor.kind {
    case .cursor: "cursor"
    case .group: "group"
    }
  }
}
