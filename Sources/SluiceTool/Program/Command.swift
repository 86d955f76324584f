import SluiceCommand
import SluiceIO

/// One of the program's commands, with its arguments read.
protocol Command {
  static var page: CommandPage { get }
  /// Whether it talks to a broker, and so takes the options of addresses and credentials.
  static var needsBroker: Bool { get }

  /// - Throws: `UsageError` for arguments that can't be used.
  init(_ arguments: ParsedArguments) throws(UsageError)

  /// Begins. Called on the loop of `run`, which goes on until the command calls `run.finish`.
  func start(_ run: Run)
}

/// A command that is only the first word of others: `sluice topic`.
protocol CommandGroup: Command {
  /// Of which none needs a broker unless the group does.
  static var members: [any Command.Type] { get }
}

extension Command {
  static var needsBroker: Bool { true }
}

extension CommandGroup {
  init(_ arguments: ParsedArguments) throws(UsageError) {
    throw UsageError("\(Self.page.name) needs a command")
  }

  func start(_ run: Run) {}
}

/// The commands, and what all of them take.
enum Commands {
  static var all: [any Command.Type] {
    [
      PubCommand.self, SubCommand.self, RequestCommand.self, ReplyCommand.self, TopicCommand.self,
      CursorCommand.self, GroupCommand.self, ConnectionCommand.self, ClusterCommand.self, StatusCommand.self,
      WhyCommand.self, TopCommand.self, ContextCommand.self, StoreCommand.self, BackupCommand.self,
      RestoreCommand.self,
      UserCommand.self,
      TokenCommand.self,
      PingCommand.self,
      BenchCommand.self, CompletionsCommand.self, ManualCommand.self,
    ]
  }

  /// Where the broker is, and the client's credentials.
  static let connecting =
    [
      CommandOption(
        "server", letter: "s", value: "ADDR",
        help:
          "The broker: HOST or HOST:PORT, [V6]:PORT, either behind tls://, or unix:PATH. Several, with commas between them, are tried in their order.",
        isRepeatable: true, environment: "SLUICE_SERVER", standard: "127.0.0.1:7420")
    ] + ClientAccess.tlsOptions + ClientAccess.options

  private static let help = CommandOption("help", letter: "h", help: "Explain the command.")

  static let context = CommandOption(
    "context", value: "NAME", help: "Take servers and credentials from this context; see sluice context.",
    environment: "SLUICE_CONTEXT")

  static let shared = [context] + connecting + [help]

  /// Where a command's help refers to.
  static let elsewhere =
    "Every command takes options for the broker's address, TLS and credentials: see sluice help connecting."

  /// What `sluice help connecting` explains.
  static var connectingPage: CommandPage {
    CommandPage(
      "sluice help connecting", summary: "how commands find the broker, and prove who uses them",
      options: [context] + connecting,
      details: """
        These options stand in front of a command or behind it. What is on the command line counts more than the environment, and that more than the context that is \
        in use; a context's credentials are sent to no other server than its own. A server without a port means 7420.
        """,
      examples: [
        "Another broker, for once.": "sluice --server broker.example topic list",
        "Over TLS, with a password.":
          "sluice topic list --server tls://broker.example --user alice --password-file password.txt",
        "By a name.": "sluice context add prod --server tls://broker.example --token-file token.txt --use",
      ])
  }

  /// The shared options that a command takes.
  static func shared(by kind: any Command.Type) -> [CommandOption] {
    kind.needsBroker ? shared : shared.suffix(1)
  }

  /// The same by the command's page, as the program or a group lists it; none for the program itself, which has them as its own.
  static func shared(by page: CommandPage) -> [CommandOption] {
    let words = page.name.split(separator: " ")
    guard words.count > 1, let kind = all.first(where: { $0.page.word == words[1] }) else { return [] }
    return shared(by: kind)
  }

  static func page() -> CommandPage {
    CommandPage(
      "sluice", summary: "publishes to and subscribes to topics of a Sluice broker",
      options: shared.dropLast() + [CommandOption("version", help: "Print the version.")] + shared.suffix(1),
      details: """
        Every command explains itself: sluice COMMAND --help. Start a broker with sluiced.

        SLUICE_KEEPALIVE in the environment says after what silence a broker is given up, 15s unless told; connecting \
        may take as long, and 10s at least.

        Exit codes: 0 done, the topic has finished; 1 failed, as said on standard error; 2 wrong usage; \
        3 the topic ended with a failure; 130 ended by Ctrl-C, 143 by SIGTERM.
        """,
      examples: [
        "Publish each line of a file as a record, and end the topic.":
          "sluice pub words --complete < /usr/share/dict/words",
        "Print every record of a topic, from the first that is kept to its end.": "sluice sub words",
        "See which clients are attached to a topic, and their progress.": "sluice topic show words",
      ],
      commands: all.map { $0.page })
  }

  static func find(
    _ word: String, in kinds: [any Command.Type], of name: String
  ) throws(UsageError) -> any Command.Type {
    if let kind = kinds.first(where: { $0.page.word == word }) { return kind }
    let words = kinds.map { $0.page.word }
    if let advice = Synonyms.advice(name, word) {
      throw UsageError("there is no command '\(word)'; use \(advice)")
    }
    if let meant = Synonyms.command(meantBy: word, among: words),
      let kind = kinds.first(where: { $0.page.word == meant })
    {
      return kind
    }
    // `help` isn't in the list of commands, and can be mistyped, too.
    let known = name == "sluice" ? words + ["help"] : words
    let all = "it can be \(words.joined(separator: ", "))"
    let advice = Spelling.advice(for: word, in: known, otherwise: all) { "\(name) \($0)" }
    throw UsageError("there is no command '\(word)'\(advice)")
  }

  /// The shared options that the environment sets.
  static func environment() throws(UsageError) -> ParsedArguments {
    try ArgumentParser(CommandPage("sluice", summary: ""), shared: shared)
      .parse([], environment: Environment.value)
  }
}
