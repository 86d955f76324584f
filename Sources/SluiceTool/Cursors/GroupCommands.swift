import SluiceClient
import SluiceCommand
import SluiceWire

struct GroupCommand: CommandGroup {
  static var members: [any Command.Type] { [GroupListCommand.self, GroupShowCommand.self] }

  static let page = CommandPage(
    "sluice group", summary: "list and show groups", operands: [Operand("COMMAND")],
    details:
      "A group shares the records of a topic among its members; sluice sub --group joins one. To move or delete a group, see sluice cursor.",
    examples: [
      "All groups, and their lag.": "sluice group list",
      "A group and its members.": "sluice group show jobs workers",
    ], commands: members.map { $0.page })
}

struct GroupListCommand: Command {
  let list: CursorList

  static let page = CommandPage(
    "sluice group list", summary: "list groups, of a topic or of all",
    operands: [Operand("TOPIC", .optional)],
    options: [HiddenTopics.option, TopicCommand.json], details: CursorList.columns,
    examples: [
      "Those of a topic.": "sluice group list jobs",
      "The group with the largest lag.": "sluice group list --json | jq -s 'max_by(.behind)'",
      "Groups whose next record is older than a minute.":
        "sluice group list --json | jq 'select(.behind_ms > 60000) | .cursor'",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    list = try CursorList(arguments, .group)
  }

  func start(_ run: Run) { list.start(run) }
}

struct GroupShowCommand: Command {
  let topic: String
  let name: String
  let asJSON: Bool

  static let page = CommandPage(
    "sluice group show", summary: "show a group", operands: [Operand("TOPIC"), Operand("GROUP")],
    options: [TopicCommand.json],
    details:
      "Lists members that are among the first hundred subscribers of the topic, and that the client may see.",
    examples: ["A group's lag and members.": "sluice group show jobs workers"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    name = try CursorOptions.operand(arguments.operands[1])
    asJSON = arguments.has("json")
  }

  func start(_ run: Run) {
    run.connect { client in
      client.cursors(of: topic) { result in
        if case .failure(let error) = result { return run.fail(error, unknown: topic, client) }
        let groups = (try? result.get())?.filter { $0.kind == .group } ?? []
        guard let group = groups.first(where: { $0.name == name }) else {
          let advice =
            Spelling.nearest(to: name, in: groups.map(\.name)).map { "; did you mean \($0)?" } ?? ""
          return run.finish(.failure, "topic \(topic) has no group \(name)\(advice)")
        }
        client.topicInfo(topic) { result in
          // A topic that can't be shown was deleted meanwhile.
          let subscriptions = (try? result.get())?.subscriptions ?? []
          let members = subscriptions.filter { $0.consumer == name }
          run.print(
            asJSON
              ? CursorTable.line(group, of: topic, members: members)
              : CursorTable.show(group, of: topic, members: members))
        }
      }
    }
  }
}
