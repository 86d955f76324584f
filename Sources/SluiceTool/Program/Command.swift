import SluiceCommand
import SluiceIO

/// A command of the program, with its parsed arguments.
protocol Command {
  static var page: CommandPage { get }
  /// Whether it connects to a broker, and therefore has the options of addresses and credentials.
  static var needsBroker: Bool { get }

  /// - Throws: `UsageError` for invalid arguments.
  init(_ arguments: ParsedArguments) throws(UsageError)

  /// Begins. Called on the loop of `run`, which runs until the command calls `run.finish`.
  func start(_ run: Run)
}

/// A command with subcommands: `sluice topic`.
protocol CommandGroup: Command {
  /// The subcommands. None needs a broker unless the group does.
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

/// All commands, and their shared options.
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

  /// Options of the broker's address and the client's credentials.
  static let connecting =
    [
      CommandOption(
        "server", letter: "s", value: "ADDR",
        help:
          "The broker's address: HOST, HOST:PORT or [V6]:PORT, with tls:// in front for TLS, or unix:PATH. Several addresses, separated by commas, are tried in order.",
        isRepeatable: true, environment: "SLUICE_SERVER", standard: "127.0.0.1:7420")
    ] + ClientAccess.tlsOptions + ClientAccess.options

  private static let help = CommandOption("help", letter: "h", help: "Print this help.")

  static let context = CommandOption(
    "context", value: "NAME", help: "Use the servers and credentials of this context; see sluice context.",
    environment: "SLUICE_CONTEXT")

  static let shared = [context] + connecting + [help]

  /// A sentence in each command's help about options that are explained elsewhere.
  static let elsewhere =
    "For options about the broker's address, TLS and credentials: see sluice help connecting."

  /// The page of `sluice help connecting`.
  static var connectingPage: CommandPage {
    CommandPage(
      "sluice help connecting", summary: "how commands connect to the broker and authenticate",
      options: [context] + connecting,
      details: """
        These options can stand before or after the command. The command line overrides the environment, and the environment overrides the context in use. \
        A context's credentials are sent only to its own servers. The default port is 7420.
        """,
      examples: [
        "Use another broker once.": "sluice --server broker.example topic list",
        "Connect over TLS, with a password.":
          "sluice topic list --server tls://broker.example --user alice --password-file password.txt",
        "Save an address and credentials under a name.":
          "sluice context add prod --server tls://broker.example --token-file token.txt --use",
      ])
  }

  /// The shared options of a command.
  static func shared(by kind: any Command.Type) -> [CommandOption] {
    kind.needsBroker ? shared : shared.suffix(1)
  }

  /// The same by the command's page, as the program or a group lists it; none for the program itself, which has them as its own options.
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
        For help with a command: sluice COMMAND --help. To start a broker: sluiced.

        The environment variable SLUICE_KEEPALIVE sets how long a broker may be silent before the connection counts as lost (default 15s). Connecting may take as \
        long, and at least 10s.

        Exit codes: 0 success; 1 failure, with the reason on standard error; 2 wrong usage; 3 the topic failed; 130 Ctrl-C; 143 SIGTERM.
        """,
      examples: [
        "Publish each line of a file as a record, and complete the topic.":
          "sluice pub words --complete < /usr/share/dict/words",
        "Print all records of a topic, from the oldest one until the topic ends.": "sluice sub words",
        "Show a topic's clients, and their progress.": "sluice topic show words",
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
    // `help` isn't in the list of commands, but can also be mistyped.
    let known = name == "sluice" ? words + ["help"] : words
    let all = "the commands are \(words.joined(separator: ", "))"
    let advice = Spelling.advice(for: word, in: known, otherwise: all) { "\(name) \($0)" }
    throw UsageError("there is no command '\(word)'\(advice)")
  }

  /// The shared options that the environment sets.
  static func environment() throws(UsageError) -> ParsedArguments {
    try ArgumentParser(CommandPage("sluice", summary: ""), shared: shared)
      .parse([], environment: Environment.value)
  }
}
