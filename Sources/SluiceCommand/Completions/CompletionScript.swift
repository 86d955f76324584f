/// Writes the script by which a shell completes a program's command line, from the same pages as its help.
public enum CompletionScript {
  public enum Shell: String, CaseIterable, Sendable {
    case bash, zsh, fish
  }

  /// The name of the scripts' function that offers topic names.
  static let topicsFunction = "_sluice_topics"

  /// The command that prints the names of topics, one a line, for completion.
  public struct TopicSource: Sendable {
    /// The command and its options, up to the prefix of topic names, which the shell appends.
    public var command: String
    /// The options copied from the present command line: the broker's address and the client's identity.
    public var options: [CommandOption]

    public init(_ command: String, taking options: [CommandOption]) {
      self.command = command
      self.options = options
    }

    /// A fragment for bash and zsh that sets `given` to these options as they are in the command line.
    ///
    /// - Parameter words: the words of the line, as a shell expression.
    func gathering(from words: String) -> String {
      """
        local word option=
        local -a given=()
        for word in \(words); do
          if [[ -n $option ]]; then
            given+=("$option" "$word")
            option=
            continue
          fi
          case $word in
            \(valued.joined(separator: " | "))) option=$word ;;
            \(single.joined(separator: " | "))) given+=("$word") ;;
          esac
        done
      """
    }
  }

  /// - Parameters:
  ///   - page: the program's page.
  ///   - topics: the source of topics' names; nil to complete none.
  ///   - shared: returns the shared options of a command.
  public static func render(
    _ page: CommandPage, for shell: Shell, topics: TopicSource? = nil,
    shared: (CommandPage) -> [CommandOption] = { _ in [] }
  ) -> String {
    let commands = commands(of: page, shared)
    return switch shell {
    case .bash: BashCompletion.render(commands, topics)
    case .zsh: ZshCompletion.render(commands, topics)
    case .fish: FishCompletion.render(commands, topics)
    }
  }

  /// A command, flattened for shell scripts.
  struct Command {
    /// `sluice topic create`
    var name: String
    var summary: String
    var options: [CommandOption]
    var operands: [Operand]
    /// The words of its subcommands, and their summaries.
    var members: [(word: String, summary: String)]

    /// `sluice`
    var program: Substring { name.prefix { $0 != " " } }
    /// `topic create`
    var path: Substring { name.dropFirst(program.count + 1) }
  }

  /// The program and all its commands, each before its subcommands.
  private static func commands(
    of page: CommandPage, _ shared: (CommandPage) -> [CommandOption]
  ) -> [Command] {
    var options = (page.options + shared(page)).filter { $0.unavailable == nil }
    if !options.contains(where: { $0.name == "help" }) {
      options.append(CommandOption("help", help: "Explain the command."))
    }
    let command = Command(
      name: page.name, summary: page.summary, options: options,
      operands: page.commands.isEmpty ? page.operands : [],
      members: page.commands.map { ($0.word, $0.summary) })
    return [command] + page.commands.flatMap { commands(of: $0, shared) }
  }

  /// The completions of a value.
  enum Completion: Hashable {
    case nothing
    case files
    case directories
    case topics
    case words([String])

    init(_ kind: ValueKind?, _ words: [String]) {
      switch kind {
      case .file: self = .files
      case .directory: self = .directories
      case .topic: self = .topics
      default: self = words.isEmpty ? .nothing : .words(words)
      }
    }

    init(_ option: CommandOption) { self.init(option.kind, option.words) }

    init(_ operand: Operand) { self.init(operand.kind, operand.choices) }
  }

  /// A name with the characters that names of shell functions allow.
  static func identifier(_ name: some StringProtocol) -> String {
    String(name.map { $0 == " " || $0 == "-" ? "_" : $0 })
  }
}

extension CompletionScript.TopicSource {
  /// The options whose value is a separate word, like `--server`.
  var valued: [String] { options.filter(\.takesWord).map { "--\($0.name)" } }

  /// Shell patterns of the options that are one word with their value, or have no value.
  var single: [String] {
    valued.map { "\($0)=*" } + options.filter { $0.value == nil }.map { "--\($0.name)" }
  }
}
