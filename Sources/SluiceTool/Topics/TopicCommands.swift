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
    "sluice topic", summary: "list, inspect, create, change, trim, end and delete topics",
    operands: [Operand("COMMAND")],
    examples: [
      "All topics.": "sluice topic list",
      "The clients that are attached to one, and their progress.": "sluice topic show orders.eu",
      "A topic that keeps its last 100 records.": "sluice topic create prices --replay-records 100",
    ], commands: members.map { $0.page })

  static let json = CommandOption("json", help: "Print an object a line.")
  static let quiet = CommandOption("quiet", letter: "q", help: "Print nothing.")
  static let verbose = CommandOption(
    "verbose", letter: "v", help: "Print all of the topic, as sluice topic show, rather than a line.")
  static let keep = CommandOption(
    "keep", value: "TIME",
    help: "As --replay-age; with --storage durable the age alone decides, unless another limit is given.",
    choices: ["everything"])
}

struct TopicListCommand: Command {
  let asJSON: Bool
  let asNames: Bool
  let asSettings: Bool
  let prefix: String
  let limit: Int
  let showsHidden: Bool
  /// Nil for the client's own.
  let timeout: Duration?

  static let page = CommandPage(
    "sluice topic list", summary: "list all topics, or some",
    options: [
      CommandOption("prefix", value: "TEXT", help: "Only topics whose names begin so."),
      CommandOption("limit", value: "N", help: "Only the first of them, in the order of their names."),
      CommandOption("timeout", value: "TIME", help: "How long the broker may take."),
      CommandOption("names", help: "Print names alone, one a line."),
      CommandOption(
        "settings",
        help:
          "Print the topics with their settings, an object a line: what sluice topic create --file makes the same topics of."
      ), HiddenTopics.option, TopicCommand.json,
    ],
    examples: [
      "Those of one kind.": "sluice topic list --prefix orders. --names",
      "The topics without subscribers.": "sluice topic list --json | jq 'select(.subscribers == 0).topic'",
      "The same topics at another broker, without records.":
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

  /// - Parameter requested: topics that are requested from the broker, hidden ones among them.
  private func list(_ requested: Int, _ client: Client, _ run: Run) {
    client.topics(withPrefix: prefix, limit: requested) { result in
      guard case .success(let all) = result else { return run.report(result, text) }
      let shown = all.filter { showsHidden || !HiddenTopics.contains($0.topic) }.prefix(limit)
      // Hidden ones have taken the places of others.
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
        // It is gone since the topics were listed.
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
      Of subscribers and producers the first hundred are listed; the counts are of all.

      "held up by" names what stops the producers: the subscribers whose demand is used up, or whose records fill the buffer, and no others; or the storage, the \
      memory, or the missing connection. "for" says since when, pauses of up to a second included. The shares, in the columns 1 MIN and 5 MIN too, are of the time in \
      which a producer had no demand for that reason.

      BEHIND FOR is the age of the next record for a subscriber that is behind, and the last column says why it is: it doesn't ask for more; it asks, and the client doesn't read what it \
      was sent, so that its receive window is full; it asks, and its network doesn't acknowledge what was sent; or it reads, but more slowly than records come.
      """, examples: ["The attached clients, and their progress.": "sluice topic show orders.eu"])

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
      What isn't given is as the broker's defaults say. A topic that exists with the same settings is left as it is; with others it \
      is an error (sluice topic set changes them), unless the topic was created by its first use and has had no record: then it gets these settings.

      A topic in memory with --keep is still cut to the broker's default of --replay-bytes, since memory is short. One with \
      --storage durable and --keep isn't: it keeps everything of that time, as far as the disk has room.

      With --file nothing is created unless all of FILE can be read. Topics that the broker refuses, such as one that exists with other settings, are told, the others are created, \
      and the exit code is 1. FILE has no records, cursors and groups: those are in what sluice backup writes.
      """,
    examples: [
      "The last hundred records, none older than an hour.":
        "sluice topic create prices --replay-records 100 --replay-age 1h",
      "Jobs that wait for workers, one by one.":
        "sluice topic create jobs --flow lossless --buffer-records 0 --without-subscribers hold",
      "A source that runs only while it has subscribers.":
        "sluice topic create ticks --connect auto:1 --scope while-connected",
      "The same by a name, with the last two records for late subscribers.":
        "sluice topic create ticks --preset shared:2",
      "Readings that fail when their producer has been gone for 30 seconds.":
        "sluice topic create readings --when-producer-lost fail:30s",
      "The last price of everything.": "sluice topic create prices --compact",
      "The same on disk: the configuration of all devices.":
        "sluice topic create devices --compact --storage durable --sync always",
      "A day of orders that survives the broker, each on disk before it is acknowledged.":
        "sluice topic create orders --storage durable --sync always --keep 24h",
      "All topics of another broker, without their records.":
        "sluice --server other.example topic list --settings | sluice topic create --file -",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    answer = try TopicAnswer(arguments)
    let settings = try Self.settings(arguments)
    guard let path = arguments.path("file") else {
      guard let name = arguments.operands.first else {
        throw UsageError("sluice topic create needs TOPIC, or --file FILE with topics")
      }
      target = .topic(settings, TopicDisagreement(try TopicOperand.read(name), arguments, settings))
      return
    }
    guard arguments.operands.isEmpty, settings == TopicSettings() else {
      throw UsageError("--file has topics with their settings; leave TOPIC and settings out")
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
    // The broker's default of bytes is for memory. On disk it would cut the time that was asked for without a word.
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
            answer.text($0) { _ in "\(topic) is there\(answer.named(settings, " with "))" }
          }
        }
      }
    }
  }
}

/// A command that asks the broker for something, and confirms in a line on standard error that it is done.
protocol ConfirmedRequest: Command {
  var isQuiet: Bool { get }
  /// What is done, without a full stop.
  var confirmation: String { get }
  /// Asks the broker for it. Called on the client's loop, as is `completion`.
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

/// One about a topic alone.
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
  var confirmation: String { "completed \(topic)" }

  static let page = CommandPage(
    "sluice topic complete", summary: "finish a topic", operands: [Operand("TOPIC")],
    options: [TopicCommand.quiet],
    details: "Subscribers are told when they have every record before the end.",
    examples: ["That was the last order.": "sluice topic complete orders.eu"])

  func request(_ client: Client, _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    TopicEnding.end(topic, with: .finished, client, completion)
  }
}

struct TopicFailCommand: ConfirmedRequest {
  let topic: String
  let isQuiet: Bool
  var confirmation: String { "failed \(topic)" }
  let message: String

  static let page = CommandPage(
    "sluice topic fail", summary: "end a topic with a failure",
    operands: [Operand("TOPIC"), Operand("MESSAGE")], options: [TopicCommand.quiet],
    details: "Subscribers are told the message when they have every record before the end.",
    examples: ["Give up.": "sluice topic fail orders.eu 'the warehouse is closed'"])

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
  var confirmation: String { "connected \(topic)" }

  static let page = CommandPage(
    "sluice topic connect", summary: "ask a topic's producers for records", operands: [Operand("TOPIC")],
    options: [TopicCommand.quiet],
    details:
      "For topics that were created with --connect manual. Stays in force until sluice topic disconnect.",
    examples: ["All subscribers are in place: go.": "sluice topic connect race"])

  func request(_ client: Client, _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    client.connectTopic(topic, completion: completion)
  }
}

struct TopicDisconnectCommand: TopicRequest {
  let topic: String
  let isQuiet: Bool
  var confirmation: String { "disconnected \(topic)" }

  static let page = CommandPage(
    "sluice topic disconnect", summary: "ask a topic's producers for no more records",
    operands: [Operand("TOPIC")], options: [TopicCommand.quiet],
    details: "Its subscribers aren't told.",
    examples: ["A pause.": "sluice topic disconnect race"])

  func request(_ client: Client, _ completion: @escaping @Sendable (Result<Void, ClientError>) -> Void) {
    client.disconnectTopic(topic, completion: completion)
  }
}
