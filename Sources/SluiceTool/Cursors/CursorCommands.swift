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
      A durable cursor is a position in a topic that the broker stores under a name; sluice sub --cursor creates and commits it. A group has a cursor as well, \
      which its members share.
      """,
    examples: [
      "The cursors of all topics, and their lag.": "sluice cursor list",
      "Replay the last hour.": "sluice cursor move orders.eu billing --to time:-1h",
    ], commands: members.map { $0.page })
}

struct CursorListCommand: Command {
  let list: CursorList

  static let page = CommandPage(
    "sluice cursor list", summary: "list durable cursors and groups, of a topic or of all",
    operands: [Operand("TOPIC", .optional)], options: [HiddenTopics.option, TopicCommand.json],
    details: CursorList.columns,
    examples: [
      "All cursors and groups, and their lag.": "sluice cursor list",
      "Those of a topic.": "sluice cursor list orders.eu",
      "Those that no client uses.": "sluice cursor list orders.eu --json | jq 'select(.members == 0).cursor'",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    list = try CursorList(arguments)
  }

  func start(_ run: Run) { list.start(run) }
}

/// Prints the cursors, or the groups, of a topic or of all topics.
struct CursorList {
  static let columns = """
    BEHIND is the number of records from the cursor to the end of the topic, BYTES their size, and BEHIND FOR the age of the oldest; ? until the broker has found \
    it on its disk. UNACKED counts records that a group's members haven't acknowledged, and DELAYED those that wait for their retry. REDELIVERED counts repeated \
    deliveries, and DEAD LETTERS the records that the group published to its dead-letter topic: both since the broker's start, or since the group was moved.
    """

  /// Nil for all.
  private let topic: String?
  private let asJSON: Bool
  private let showsHidden: Bool
  /// Nil for both.
  private let kind: CursorInfo.Kind?

  typealias Entry = (topic: String, cursor: CursorInfo)

  init(_ arguments: ParsedArguments, _ kind: CursorInfo.Kind? = nil) throws(UsageError) {
    topic = try arguments.operands.first.map { text throws(UsageError) in try TopicOperand.read(text) }
    asJSON = arguments.has("json")
    showsHidden = arguments.has("all")
    self.kind = kind
  }

  func start(_ run: Run) {
    run.connect { client in
      if let topic {
        client.cursors(of: topic) { result in
          run.report(result, of: topic, client) { text($0.map { (topic, $0) }) }
        }
        return
      }
      client.topics { result in
        switch result {
        case .failure(let error): run.fail(error)
        case .success(let topics):
          gather(
            topics.map(\.topic).filter { showsHidden || !HiddenTopics.contains($0) }, client, run)
        }
      }
    }
  }

  /// Leaves out topics that were deleted meanwhile, or that the client may not read.
  private func gather(_ topics: [String], _ client: Client, _ run: Run) {
    TopicGathering<[CursorInfo]>(of: topics) { topic, completion in
      client.cursors(of: topic) { result in
        switch result {
        case .success(let cursors): completion(.success(cursors))
        case .failure(let error) where [.unknownTopic, .permissionDenied].contains(error.code):
          completion(.success(nil))
        case .failure(let error): completion(.failure(error))
        }
      }
    } completion: { result in
      switch result {
      case .failure(let error): run.fail(error)
      case .success(let found):
        run.print(text(found.flatMap { topic, cursors in cursors.map { (topic, $0) } }))
      }
    }.begin()
  }

  private func text(_ entries: [Entry]) -> String {
    let shown = entries.filter { kind == nil || $0.cursor.kind == kind }
    if asJSON { return shown.map { CursorTable.line($0.cursor, of: topic == nil ? $0.topic : nil) }.joined() }
    return topic == nil ? CursorTable.list(shown) : CursorTable.list(shown.map(\.cursor))
  }
}

struct CursorMoveCommand: ConfirmedRequest {
  let topic: String
  let isQuiet: Bool
  let name: String
  let start: SubscriptionPlan.Start
  private let destination: String
  var confirmation: String { "moved \(name) of topic \(topic) to \(destination)" }

  static let page = CommandPage(
    "sluice cursor move", summary: "move a durable cursor or a group to another position",
    operands: [Operand("TOPIC"), Operand("NAME")],
    options: [
      CommandOption(
        "to", value: "START",
        help: "The new position, as in sluice sub --from: earliest, new, last:N, offset:K, time:T.",
        choices: ["earliest", "new"]), TopicCommand.quiet,
    ],
    details:
      "Creates the cursor if it doesn't exist. Its subscribers end; when they subscribe again, they continue at the new position.",
    examples: [
      "Replay everything.": "sluice cursor move orders.eu billing --to earliest",
      "Skip the backlog.": "sluice cursor move orders.eu billing --to new",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    name = try CursorOptions.operand(arguments.operands[1])
    guard let start = try arguments.value("to", SubCommand.start) else {
      throw UsageError("no position is given; add --to with earliest, new, last:N, offset:K or time:T")
    }
    self.start = start
    destination = arguments.text("to") ?? ""
    isQuiet = arguments.has("quiet")
  }

  func request(_ client: Client, _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    client.moveCursor(name, of: topic, to: start, completion: completion)
  }
}

struct CursorDeleteCommand: ConfirmedRequest {
  let topic: String
  let name: String
  let isQuiet: Bool
  var confirmation: String { "deleted \(name) of topic \(topic)" }

  static let page = CommandPage(
    "sluice cursor delete", summary: "delete a durable cursor or a group",
    operands: [Operand("TOPIC"), Operand("NAME")], options: [TopicCommand.quiet],
    details: "Its subscribers end with an error.",
    examples: ["Delete the cursor billing.": "sluice cursor delete orders.eu billing"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    name = try CursorOptions.operand(arguments.operands[1])
    isQuiet = arguments.has("quiet")
  }

  func request(_ client: Client, _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    client.deleteCursor(name, of: topic, completion: completion)
  }
}

/// Durable cursors and groups, for people and as objects of JSON.
enum CursorTable {
  /// The headings of the columns with numbers, the same as in sluice topic show.
  private static let head = [
    "NEXT", "BEHIND", "BYTES", "BEHIND FOR", "MEMBERS", "UNACKED", "DELAYED", "REDELIVERED",
    "DEAD LETTERS", "IDLE",
  ]

  static func list(_ cursors: [CursorInfo]) -> String {
    guard !cursors.isEmpty else { return "" }
    return TextTable.render(
      [["CURSOR", "KIND"] + head] + cursors.map(row), leftColumns: 2)
  }

  /// The same for several topics.
  static func list(_ entries: [CursorList.Entry]) -> String {
    guard !entries.isEmpty else { return "" }
    return TextTable.render(
      [["TOPIC", "CURSOR", "KIND"] + head]
        + entries.map { [$0.topic] + row($0.cursor) }, leftColumns: 3)
  }

  /// One cursor or group, a property a line.
  ///
  /// - Parameter members: the members of a group that are known.
  static func show(_ cursor: CursorInfo, of topic: String, members: [TopicInfo.Subscription] = []) -> String {
    let idle = cursor.idle == 0 ? "in use" : HoldText.time(cursor.idle)
    return TextTable.render(
      [
        [kind(cursor), cursor.name], ["topic", topic], ["next offset", "\(cursor.nextOffset)"],
        ["behind", backlog(cursor)], ["members", "\(cursor.members)"],
        ["unacknowledged", HoldText.records(cursor.outstanding)],
        ["redeliveries", Magnitude.grouped(cursor.redeliveries)],
        ["dead letters", HoldText.records(cursor.deadLetters)],
      ] + retries(cursor) + rest(cursor) + [["idle", idle]] + members.map { ["member", member($0)] },
      leftColumns: 2)
  }

  /// "3 records, 120 B, for 5 min 12 s".
  private static func backlog(_ cursor: CursorInfo) -> String {
    let records = HoldText.records(behind(cursor))
    guard behind(cursor) > 0, cursor.bytes != CursorInfo.unknown else { return records }
    return "\(records), \(ByteSize.rounded(cursor.bytes)), for \(age(cursor))"
  }

  /// The records that wait for their retry, if any.
  private static func retries(_ cursor: CursorInfo) -> [[String]] {
    guard cursor.delayed > 0 else { return [] }
    return [
      [
        "delayed",
        "\(HoldText.records(cursor.delayed)), the next retry in \(HoldText.time(cursor.nextRetry))",
      ]
    ]
  }

  /// Rows for records that the group gave up or missed, if there are any.
  private static func rest(_ cursor: CursorInfo) -> [[String]] {
    [("given up", cursor.abandoned), ("missed", cursor.missed)].filter { $0.1 > 0 }
      .map { [$0.0, HoldText.records($0.1)] }
  }

  /// The age of the oldest record in its backlog; empty without a backlog.
  private static func age(_ cursor: CursorInfo) -> String {
    switch cursor.age {
    case CursorInfo.unknown: "?"
    case _ where behind(cursor) == 0: ""
    default: HoldText.time(cursor.age)
    }
  }

  private static func member(_ member: TopicInfo.Subscription) -> String {
    let name = member.client.isEmpty ? "no name" : ShownText.line(member.client)
    let demand =
      member.granted == .max
      ? "unlimited demand" : "demand for \(member.granted - min(member.granted, member.sent)) more"
    return "\(name) on \(member.place), received \(HoldText.records(member.sent)), \(demand)"
  }

  /// A count that only groups have; empty for a cursor.
  private static func group(_ cursor: CursorInfo, _ count: UInt64) -> String {
    cursor.kind == .group ? "\(count)" : ""
  }

  private static func row(_ cursor: CursorInfo) -> [String] {
    [
      cursor.name, kind(cursor), "\(cursor.nextOffset)", "\(behind(cursor))",
      cursor.bytes == CursorInfo.unknown ? "?" : ByteSize.rounded(cursor.bytes), age(cursor),
      "\(cursor.members)", group(cursor, cursor.outstanding), group(cursor, cursor.delayed),
      group(cursor, cursor.redeliveries), group(cursor, cursor.deadLetters),
      cursor.idle == 0 ? "" : HoldText.time(cursor.idle),
    ]
  }

  /// - Parameters:
  ///   - topic: nil to leave it out.
  ///   - members: the members of a group that are known; nil to leave them out.
  static func line(
    _ cursor: CursorInfo, of topic: String? = nil, members: [TopicInfo.Subscription]? = nil
  ) -> String {
    let json: JSON = [
      "topic": topic.map { .text($0) },
      "cursor": .text(cursor.name), "kind": .text(kind(cursor)),
      // A text, as a topic's.
      "epoch": .text(TopicTable.hexadecimal(cursor.epoch)), "next_offset": .number(cursor.nextOffset),
      "behind": .number(behind(cursor)), "behind_bytes": .limit(cursor.bytes),
      "behind_ms": .limit(cursor.age), "members": .number(cursor.members),
      "outstanding": .number(cursor.outstanding), "idle_ms": .number(cursor.idle),
      "redeliveries": .number(cursor.redeliveries), "dead_letters": .number(cursor.deadLetters),
      "abandoned": .number(cursor.abandoned), "missed": .number(cursor.missed),
      "delayed": .number(cursor.delayed), "next_retry_ms": .number(cursor.nextRetry),
      "member_list": members.map { members in
        .array(
          members.map { member in
            [
              "client": .text(member.client), "connection": .number(member.connection),
              "node": .textUnlessEmpty(member.node),
              "stream": .number(member.stream),
              "sent": .number(member.sent),
              "granted": member.granted == .max ? .null : .number(member.granted),
            ]
          })
      },
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
