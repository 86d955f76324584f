/// Writes what has a shell complete a program's command line, from the same source as its help.
public enum CompletionScript {
  public enum Shell: String, CaseIterable, Sendable {
    case bash, zsh, fish
  }

  /// - Parameters:
  ///   - page: of the program.
  ///   - shared: what each command takes besides its own options.
  public static func render(
    _ page: CommandPage, for shell: Shell, shared: (CommandPage) -> [CommandOption] = { _ in [] }
  ) -> String {
    let commands = commands(of: page, shared)
    return switch shell {
    case .bash: BashCompletion.render(commands)
    case .zsh: ZshCompletion.render(commands)
    case .fish: FishCompletion.render(commands)
    }
  }

  /// A command as shells see it.
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

  /// What can stand for a value.
  enum Completion: Hashable {
    case nothing
    case files
    case directories
    case words([String])

    init(_ kind: ValueKind?, _ words: [String]) {
      switch kind {
      case .file: self = .files
      case .directory: self = .directories
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
