import SluiceClient
import SluiceCommand
import SluiceWire

struct TopicSetCommand: Command {
  let topic: String
  let changes: TopicSettings
  let answer: TopicAnswer

  static let page = CommandPage(
    "sluice topic set", summary: "change a topic's settings while it is in use", operands: [Operand("TOPIC")],
    options: TopicOption.all.map(\.option) + [
      CommandOption("keep", value: "TIME", help: "As --replay-age.", choices: ["everything"])
    ] + TopicAnswer.options,
    details: """
      Settings that aren't given stay unchanged. Producers and subscribers stay attached. Smaller limits drop records at once; larger ones don't bring them back. \
      The new settings of a durable topic are on disk when the command ends.

      --scope, --compact, --storage and --sync can't be changed while the topic exists, since they decide how its records are kept.
      """,
    examples: [
      "Keep records for two days.": "sluice topic set orders.eu --keep 48h",
      "Let producers wait for the slowest subscriber.":
        "sluice topic set orders.eu --flow lossless --buffer-records 1000",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    var changes = try TopicOption.settings(arguments)
    if let age = try TopicAnswer.keptAge(arguments) { changes.replayAge = age }
    guard changes != TopicSettings() else {
      throw UsageError("no setting is given; name at least one, like --keep 48h")
    }
    self.changes = changes
    answer = try TopicAnswer(arguments)
  }

  func start(_ run: Run) {
    run.connect { client in
      client.setTopic(topic, to: changes) { result in
        run.report(result, of: topic, client) {
          answer.text($0) { _ in "Changed topic \(topic)\(answer.named(changes))" }
        }
      }
    }
  }
}

struct TopicTrimCommand: Command {
  private enum Limit {
    case before(UInt64)
    case last(UInt64)
  }

  let topic: String
  private let limit: Limit
  let answer: TopicAnswer

  static let page = CommandPage(
    "sluice topic trim", summary: "drop a topic's oldest records", operands: [Operand("TOPIC")],
    options: [
      CommandOption("before", value: "OFFSET", help: "Drop records before this offset."),
      CommandOption("keep-last", value: "N", help: "Drop all but the newest N records."),
    ] + TopicAnswer.options,
    details: """
      The other records keep their offsets. Subscribers, cursors and groups that hadn't received the dropped records skip them or fail, by their lag policy; \
      records that were already being sent may still arrive. In a lossless topic, an attached subscriber or a group still gets the records of its backlog; \
      later subscribers don't.
      """,
    examples: [
      "Drop everything that was published before offset 120000.":
        "sluice topic trim orders.eu --before 120000",
      "Only the last thousand.": "sluice topic trim orders.eu --keep-last 1000",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    try arguments.allowOne(of: "before", "keep-last")
    let offset = try arguments.value("before", Values.count())
    let count = try arguments.value("keep-last", Values.count())
    switch (offset, count) {
    case (let offset?, _): limit = .before(offset)
    case (_, let count?): limit = .last(count)
    default: throw UsageError("no limit is given; add --before OFFSET or --keep-last N")
    }
    answer = try TopicAnswer(arguments)
  }

  func start(_ run: Run) {
    run.connect { client in
      let report: @Sendable (Result<TopicInfo, ClientError>) -> Void = { result in
        run.report(result, of: topic, client) { answer.text($0) { TopicText.rest($0, "Trimmed") } }
      }
      switch limit {
      case .before(let offset): client.trimTopic(topic, before: offset, completion: report)
      case .last(let count): client.trimTopic(topic, keepingLast: count, completion: report)
      }
    }
  }
}

struct TopicPurgeCommand: Command {
  let topic: String
  let answer: TopicAnswer
  let question: Question

  static let page = CommandPage(
    "sluice topic purge", summary: "drop all of a topic's records", operands: [Operand("TOPIC")],
    options: [Question.option] + TopicAnswer.options,
    details: """
      The topic keeps its settings, producers and subscribers, and offsets continue. Same as sluice topic trim --keep-last 0, but it asks first: without a terminal \
      it reads the answer, y or n, from standard input. Without standard input it needs --yes.
      """,
    examples: ["Drop all records, and keep the topic.": "sluice topic purge orders.eu --yes"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    answer = try TopicAnswer(arguments)
    question = Question(arguments)
  }

  func start(_ run: Run) {
    run.connect { client in
      guard question.isAsked else { return purge(client, run) }
      // The question has the number of records.
      client.topicInfo(topic) { result in
        guard case .success(let info) = result else {
          if case .failure(let error) = result { run.fail(error, unknown: topic, client) }
          return
        }
        let what = "Drop all \(HoldText.records(info.summary.records)) of \(topic)?"
        question.ask(run, what) { purge(client, run) }
      }
    }
  }

  private func purge(_ client: Client, _ run: Run) {
    client.trimTopic(topic, keepingLast: 0) { result in
      run.report(result, of: topic, client) { answer.text($0) { TopicText.rest($0, "Purged") } }
    }
  }
}

struct TopicDeleteCommand: Command {
  let topic: String
  /// Nil for a name.
  let pattern: TopicPattern?
  let question: Question
  let isQuiet: Bool

  static let page = CommandPage(
    "sluice topic delete", summary: "delete topics and their records", operands: [Operand("TOPIC")],
    options: [Question.option, TopicCommand.quiet],
    details: """
      TOPIC may be a pattern: it selects all topics that match when the command runs. Quote it for the shell. Subscribers and producers of a deleted topic fail.

      It asks first: without a terminal it reads the answer, y or n, from standard input. Without standard input it needs --yes.
      """,
    examples: [
      "One topic.": "sluice topic delete orders.eu --yes",
      "All topics that begin with test.": "sluice topic delete 'test.>' --yes",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    let (text, isPattern) = try TopicOperand.readPattern(arguments.operands[0])
    topic = text
    pattern = isPattern ? try UsageError.wrapping { () throws(WireError) in try TopicPattern(text) } : nil
    question = Question(arguments)
    isQuiet = arguments.has("quiet")
  }

  func start(_ run: Run) {
    run.connect { client in
      guard let pattern else { return ask(run, client, [topic]) }
      client.topics { result in
        switch result {
        case .failure(let error): run.fail(error)
        case .success(let topics):
          let names = topics.map(\.topic).filter { pattern.selects($0) }
          guard !names.isEmpty else { return run.finish(.failure, "no topic matches \(topic)") }
          ask(run, client, names)
        }
      }
    }
  }

  private func ask(_ run: Run, _ client: Client, _ names: [String]) {
    let shown = names.prefix(Self.shown).joined(separator: ", ")
    let rest = names.count > Self.shown ? " and \(names.count - Self.shown) more" : ""
    let what =
      pattern == nil
      ? "Delete \(topic) and its records?"
      : "Delete \(names.count) topics and their records: \(shown)\(rest)?"
    question.ask(run, what) { delete(names[...], 0, client, run) }
  }

  /// The most names in a question.
  private static let shown = 10

  /// Deletes one after the other.
  private func delete(_ names: ArraySlice<String>, _ deleted: Int, _ client: Client, _ run: Run) {
    guard let name = names.first else { return report(deleted, run) }
    client.deleteTopic(name) { result in
      switch result {
      case .success: delete(names.dropFirst(), deleted + 1, client, run)
      // Another client has deleted it first.
      case .failure(let error) where error.code == .unknownTopic && pattern != nil:
        delete(names.dropFirst(), deleted, client, run)
      case .failure(let error) where pattern == nil: run.fail(error, unknown: topic, client)
      case .failure(let error):
        let before =
          deleted == 0
          ? ""
          : "; \(StoreTable.counted(UInt64(deleted), "topic")) before it \(deleted == 1 ? "is" : "are") deleted"
        run.finish(.failure, "cannot delete topic \(name): \(error)\(before)")
      }
    }
  }

  private func report(_ deleted: Int, _ run: Run) {
    if isQuiet { return run.finish(.success) }
    let what = pattern == nil ? "topic \(topic)" : "\(deleted) topic\(deleted == 1 ? "" : "s")"
    run.note("deleted \(what)")
    run.finish(.success)
  }
}

/// Sentences about a topic's records.
enum TopicText {
  /// "Trimmed topic orders: 15 records left, from offset 5".
  static func rest(_ info: TopicInfo, _ done: String) -> String {
    let summary = info.summary
    let start = "\(done) topic \(summary.topic):"
    guard summary.records > 0 else {
      return "\(start) no records left, the next gets offset \(summary.nextOffset)"
    }
    return "\(start) \(HoldText.records(summary.records)) left, from offset \(summary.firstOffset)"
  }
}
