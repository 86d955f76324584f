/// Writes the script by which a shell completes a program's command line, from the same pages as its help.
public enum CompletionScript {
  public enum Shell: String, CaseIterable, Sendable {
    case bash, zsh, fish
  }

  /// The function that offers the names of topics, in each of the shells.
  static let topicsFunction = "_sluice_topics"

  /// The command that prints the names of topics, one a line, for completion.
  public struct TopicSource: Sendable {
    /// The command and its options, up to the beginning that names must have, which the shell adds.
    public var command: String
    /// Options that it takes over from the line that is being written: the broker's address and the client's identity.
    public var options: [CommandOption]

    public init(_ command: String, taking options: [CommandOption]) {
      self.command = command
      self.options = options
    }

    /// For bash and zsh: sets `given` to those of the options that stand in the line.
    ///
    /// - Parameter words: the words of the line, as the shell has them.
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
  ///   - page: of the program.
  ///   - topics: the source of topics' names; nil to complete none.
  ///   - shared: what each command takes besides its own options.
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

  /// A command, flattened for scripts of shells.
  struct Command {
    /// `sluice topic create`
    var name: String
    var summary: String
    var options: [CommandOption]
    var operands: [Operand]
    /// The words of its commands, and what they do.
    var members: [(word: String, summary: String)]

    /// `sluice`
    var program: Substring { name.prefix { $0 != " " } }
    /// `topic create`
    var path: Substring { name.dropFirst(program.count + 1) }
  }

  /// The program and all commands below it, each before those that it has.
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

  /// A name as functions of shells can have it.
  static func identifier(_ name: some StringProtocol) -> String {
    String(name.map { $0 == " " || $0 == "-" ? "_" : $0 })
  }
}

extension CompletionScript.TopicSource {
  /// Those of the options whose values are words of their own, as `--server`.
  var valued: [String] { options.filter(\.takesWord).map { "--\($0.name)" } }

  /// Those that are one word with their values, or have none, as patterns of shells.
  var single: [String] {
    valued.map { "\($0)=*" } + options.filter { $0.value == nil }.map { "--\($0.name)" }
  }
}
