import ReactiveCore
import SluiceClient
import SluiceCommand
import SluiceWire

struct TopicCommand: CommandGroup {
  static var members: [any Command.Type] {
    [
      TopicListCommand.self, TopicShowCommand.self, TopicCreateCommand.self, TopicSetCommand.self,
      TopicTrimCommand.self, TopicPurgeCommand.self, TopicCompleteCommand.self, TopicFailCommand.self,
      TopicDeleteCommand.self, TopicConnectCommand.self, TopicDisconnectCommand.self,
    ]
  }

  static let page = CommandPage(
    "sluice topic", summary: "list, show, create, change, trim, end and delete topics",
    operands: [Operand("COMMAND")],
    examples: [
      "All topics.": "sluice topic list",
      "The clients of a topic, and their progress.": "sluice topic show orders.eu",
      "A topic that keeps its last 100 records.": "sluice topic create prices --replay-records 100",
    ], commands: members.map { $0.page })

  static let json = CommandOption("json", help: "Print an object a line.")
  static let quiet = CommandOption("quiet", letter: "q", help: "Print nothing.")
  static let verbose = CommandOption(
    "verbose", letter: "v",
    help: "Print everything about the topic, like sluice topic show, instead of a line.")
  static let keep = CommandOption(
    "keep", value: "TIME",
    help: "Same as --replay-age; with --storage durable there is no other limit, unless one is given.",
    choices: ["everything"])
}

struct TopicListCommand: Command {
  let asJSON: Bool
  let asNames: Bool
  let asSettings: Bool
  let prefix: String
  let limit: Int
  let showsHidden: Bool
  /// Nil for the client's default.
  let timeout: Duration?

  static let page = CommandPage(
    "sluice topic list", summary: "list all topics, or some",
    options: [
      CommandOption("prefix", value: "TEXT", help: "Only topics whose names begin with TEXT."),
      CommandOption("limit", value: "N", help: "Only the first N topics, sorted by name."),
      CommandOption("timeout", value: "TIME", help: "Fail if the broker doesn't answer within TIME."),
      CommandOption("names", help: "Print only names, one a line."),
      CommandOption(
        "settings",
        help:
          "Print topics with their settings as JSON, an object a line, for sluice topic create --file."
      ), HiddenTopics.option, TopicCommand.json,
    ],
    examples: [
      "The names of topics below orders.": "sluice topic list --prefix orders. --names",
      "The topics without subscribers.": "sluice topic list --json | jq 'select(.subscribers == 0).topic'",
      "Create the same topics on another broker, without records.":
        "sluice topic list --settings | sluice --server other.example topic create --file -",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    asJSON = arguments.has("json")
    asNames = arguments.has("names")
    asSettings = arguments.has("settings")
    try arguments.allowOne(of: "names", "json", "settings")
    prefix = arguments.text("prefix") ?? ""
    showsHidden = arguments.has("all") || HiddenTopics.isNamed(by: prefix)
    limit = Int(clamping: try arguments.value("limit", Values.count(in: 1...UInt64.max)) ?? .max)
    timeout = try arguments.value("timeout", TimeSpan.parse)
  }

  func start(_ run: Run) {
    if let timeout {
      _ = run.loop.schedule(after: timeout) {
        run.finish(.failure, "\(run.server) didn't answer within \(TimeSpan.exact(timeout))")
      }
    }
    run.connect { client in list(limit, client, run) }
  }

  /// - Parameter requested: the number of topics to request from the broker, including hidden ones.
  private func list(_ requested: Int, _ client: Client, _ run: Run) {
    client.topics(withPrefix: prefix, limit: requested) { result in
      guard case .success(let all) = result else { return run.report(result, text) }
      let shown = all.filter { showsHidden || !HiddenTopics.contains($0.topic) }.prefix(limit)
      // Hidden topics have used up the limit.
      if shown.count < limit, all.count >= requested, requested < .max { return list(.max, client, run) }
      guard asSettings else { return run.report(.success(Array(shown)), text) }
      printSettings(of: shown.map(\.topic), client, run)
    }
  }

  private func printSettings(of topics: [String], _ client: Client, _ run: Run) {
    TopicGathering<TopicSettings>(of: topics) { topic, completion in
      client.topicInfo(topic) { result in
        switch result {
        case .success(let info): completion(.success(info.settings))
        // The topic was deleted after the topics were listed.
        case .failure(let error) where error.code == .unknownTopic: completion(.success(nil))
        case .failure(let error): completion(.failure(error))
        }
      }
    } completion: { result in
      run.report(result) { found in
        found.map { TopicDefinition(topic: $0.topic, settings: $0.value).line }.joined()
      }
    }.begin()
  }

  private func text(_ topics: [TopicSummary]) -> String {
    if asNames { return topics.map { ShownText.line($0.topic) + "\n" }.joined() }
    return asJSON ? topics.map { TopicJSON.line($0) }.joined() : TopicTable.list(topics)
  }
}

struct TopicShowCommand: Command {
  let topic: String
  let asJSON: Bool

  static let page = CommandPage(
    "sluice topic show", summary: "show a topic's state and attached clients", operands: [Operand("TOPIC")],
    options: [TopicCommand.json],
    details: """
      Lists up to a hundred subscribers and a hundred producers; the counts include all.

      The rows "blocked by" name what blocks producers: subscribers without demand, subscribers whose unread records fill the buffer, the storage, the memory, or a \
      topic that isn't connected. The time after "for" includes pauses of up to a second. The percentages, and the columns 1 MIN and 5 MIN, are the share of that \
      time in which a producer had no demand for this reason.

      BEHIND FOR is the age of the next record for a subscriber with a backlog. CAUSE is why it has one: it has requested nothing; its client doesn't read, so \
      that the receive window is full; its network doesn't acknowledge data; or it reads more slowly than records come.
      """, examples: ["The topic's clients, and their progress.": "sluice topic show orders.eu"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    asJSON = arguments.has("json")
  }

  func start(_ run: Run) {
    run.connect { client in
      client.topicInfo(topic) { result in
        run.report(result, of: topic, client) { asJSON ? TopicJSON.line($0) : TopicTable.show($0) }
      }
    }
  }
}

struct TopicCreateCommand: Command {
  enum Target {
    case topic(TopicSettings, TopicDisagreement)
    case file(TopicFile)
  }

  let target: Target
  let answer: TopicAnswer

  static let page = CommandPage(
    "sluice topic create", summary: "create a topic with settings of its own, or those of a file",
    operands: [Operand("TOPIC", .optional)],
    options: TopicOption.ofTopics.map(\.option) + [TopicCommand.keep, TopicFile.option] + TopicAnswer.options,
    details: """
      Settings that aren't given are the broker's defaults. A topic that exists with the same settings is left unchanged. One with other settings is an error \
      (change it with sluice topic set), unless it was created by its first use and never had a record: then it gets these settings.

      With --keep, a topic in memory is also limited by the broker's default of --replay-bytes. A durable topic has no such limit: it keeps everything of that \
      time, as long as the disk has room.

      With --file, nothing is created unless all of FILE is valid. If the broker refuses a topic, the command prints why, creates the others, and ends with 1. \
      FILE doesn't contain records, cursors or groups: for those, see sluice backup.
      """,
    examples: [
      "Keep the last hundred records, none older than an hour.":
        "sluice topic create prices --replay-records 100 --replay-age 1h",
      "Jobs that wait for workers, one by one.":
        "sluice topic create jobs --flow lossless --buffer-records 0 --without-subscribers hold",
      "Request records from producers only while there is a subscriber.":
        "sluice topic create ticks --connect auto:1 --scope while-connected",
      "The same by its preset, with the last two records for late subscribers.":
        "sluice topic create ticks --preset shared:2",
      "Fail the topic when its producer has been gone for 30 seconds.":
        "sluice topic create readings --when-producer-lost fail:30s",
      "Keep the newest record of each key.": "sluice topic create prices --compact",
      "The same on disk.":
        "sluice topic create devices --compact --storage durable --sync always",
      "Keep a day of orders on disk, each written before it is acknowledged.":
        "sluice topic create orders --storage durable --sync always --keep 24h",
      "Create all topics of another broker, without their records.":
        "sluice --server other.example topic list --settings | sluice topic create --file -",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    answer = try TopicAnswer(arguments)
    let settings = try Self.settings(arguments)
    guard let path = arguments.path("file") else {
      guard let name = arguments.operands.first else {
        throw UsageError("TOPIC is missing; name a topic, or a file of topics with --file FILE")
      }
      target = .topic(settings, TopicDisagreement(try TopicOperand.read(name), arguments, settings))
      return
    }
    guard arguments.operands.isEmpty, settings == TopicSettings() else {
      throw UsageError("--file FILE names topics and their settings; leave out TOPIC and other settings")
    }
    for option in ["json", "verbose"] where arguments.has(option) {
      throw UsageError("--file and --\(option) exclude each other; give one of them")
    }
    target = .file(try TopicFile(path))
  }

  private static func settings(_ arguments: ParsedArguments) throws(UsageError) -> TopicSettings {
    var settings = try TopicOption.settings(arguments)
    guard let age = try TopicAnswer.keptAge(arguments) else { return settings }
    settings.replayAge = age
    // The broker's default limit in bytes is for memory. On disk it would silently drop records that --keep retains.
    if settings.storage == .durable {
      settings.replayRecords = settings.replayRecords ?? TopicSettings.unlimited
      settings.replayBytes = settings.replayBytes ?? TopicSettings.unlimited
    }
    return settings
  }

  func start(_ run: Run) {
    run.connect { client in
      switch target {
      case .file(let file): file.create(client, run, isQuiet: answer.isQuiet)
      case .topic(let settings, let disagreement):
        let topic = disagreement.topic
        client.createTopic(topic, settings: settings) { result in
          if case .failure(let error) = result, error.code == .topicExists {
            return disagreement.fail(run, client, error, asked: settings)
          }
          run.report(result) {
            answer.text($0) { info in
              // The broker doesn't report whether the topic existed with these settings; one that was used did.
              let summary = info.summary
              let isNew = summary.nextOffset == 0 && summary.subscriptions == 0 && summary.publications == 0
              return "\(isNew ? "Created topic \(topic)" : "Topic \(topic) exists")\(answer.named(settings))"
            }
          }
        }
      }
    }
  }
}

/// A command that sends a request to the broker, and confirms its success in a line on standard error.
protocol ConfirmedRequest: Command {
  var isQuiet: Bool { get }
  /// The confirmation, without a full stop.
  var confirmation: String { get }
  /// Sends the request. Called on the client's loop, as is `completion`.
  func request(_ client: Client, _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void)
}

extension ConfirmedRequest {
  func start(_ run: Run) {
    let confirmation = isQuiet ? nil : confirmation
    run.connect { client in
      request(client) { result in
        if case .success = result, let confirmation { run.note(confirmation) }
        run.report(result) { "" }
      }
    }
  }
}

/// A confirmed request whose only operand is a topic.
protocol TopicRequest: ConfirmedRequest {
  init(topic: String, isQuiet: Bool)
}

extension TopicRequest {
  init(_ arguments: ParsedArguments) throws(UsageError) {
    self.init(topic: try TopicOperand.read(arguments.operands[0]), isQuiet: arguments.has("quiet"))
  }
}

struct TopicCompleteCommand: TopicRequest {
  let topic: String
  let isQuiet: Bool
  var confirmation: String { "completed topic \(topic)" }

  static let page = CommandPage(
    "sluice topic complete", summary: "complete a topic: no record follows", operands: [Operand("TOPIC")],
    options: [TopicCommand.quiet],
    details: "Each subscriber completes after it has received all records.",
    examples: ["There are no more orders.": "sluice topic complete orders.eu"])

  func request(_ client: Client, _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    TopicEnding.end(topic, with: .finished, client, completion)
  }
}

struct TopicFailCommand: ConfirmedRequest {
  let topic: String
  let isQuiet: Bool
  var confirmation: String { "failed topic \(topic)" }
  let message: String

  static let page = CommandPage(
    "sluice topic fail", summary: "end a topic with a failure",
    operands: [Operand("TOPIC"), Operand("MESSAGE")], options: [TopicCommand.quiet],
    details: "Each subscriber fails with MESSAGE after it has received all records.",
    examples: ["End a topic with an error.": "sluice topic fail orders.eu 'the warehouse is closed'"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    topic = try TopicOperand.read(arguments.operands[0])
    message = arguments.operands[1]
    isQuiet = arguments.has("quiet")
  }

  func request(_ client: Client, _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    TopicEnding.end(topic, with: .failure(.topicFailure(message)), client, completion)
  }
}

/// Ends a topic without publishing to it.
enum TopicEnding {
  static func end(
    _ topic: String, with ending: Subscribers.Completion<ClientError>, _ client: Client,
    _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void
  ) {
    // Asked first: opening a publication would create a topic whose name was mistyped.
    client.topicInfo(topic) { result in
      if case .failure(let error) = result { return completion(.failure(error)) }
      let subject = client.subject(topic)
      subject.complete(ending) { result in withExtendedLifetime(subject) { completion(result) } }
    }
  }
}

struct TopicConnectCommand: TopicRequest {
  let topic: String
  let isQuiet: Bool
  var confirmation: String { "connected topic \(topic)" }

  static let page = CommandPage(
    "sluice topic connect", summary: "request records from a topic's producers", operands: [Operand("TOPIC")],
    options: [TopicCommand.quiet],
    details:
      "For topics that were created with --connect manual. The topic stays connected until sluice topic disconnect.",
    examples: ["Start the producers when all subscribers are attached.": "sluice topic connect race"])

  func request(_ client: Client, _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    client.connectTopic(topic, completion: completion)
  }
}

struct TopicDisconnectCommand: TopicRequest {
  let topic: String
  let isQuiet: Bool
  var confirmation: String { "disconnected topic \(topic)" }

  static let page = CommandPage(
    "sluice topic disconnect", summary: "request no more records from a topic's producers",
    operands: [Operand("TOPIC")], options: [TopicCommand.quiet],
    details: "Subscribers stay attached; nothing is reported to them.",
    examples: ["Pause the producers.": "sluice topic disconnect race"])

  func request(_ client: Client, _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    client.disconnectTopic(topic, completion: completion)
  }
}
