import Glibc
import SluiceCommand

/// `sluice completions`
struct CompletionsCommand: Command {
  let shell: CompletionScript.Shell

  static let needsBroker = false

  static let page = CommandPage(
    "sluice completions", summary: "print what has a shell complete commands and options",
    operands: [Operand("SHELL", choices: CompletionScript.Shell.allCases.map(\.rawValue))],
    details: [
      """
      Completes commands, options, the words that their values can be, names of files where files are meant, and those of topics, which the \
      broker is asked for: the one of --server in the line, or of the environment. SHELL is bash, zsh or fish. \
      For the broker's options, sluiced --completions does the same.
      """
    ],
    examples: [
      .init("In this shell.", "source <(sluice completions bash)"),
      .init(
        "In every bash, where bash-completion is installed.",
        "sluice completions bash > ~/.local/share/bash-completion/completions/sluice"),
      .init("In every zsh, from a directory in its fpath.", "sluice completions zsh > ~/.zfunc/_sluice"),
      .init("In every fish.", "sluice completions fish > ~/.config/fish/completions/sluice.fish"),
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    do {
      shell = try Values.choice(CompletionScript.Shell.self)(arguments.operands[0])
    } catch {
      throw UsageError("SHELL: \(error)")
    }
  }

  func start(_ run: Run) {
    run.print(Self.script(for: shell))
  }

  static func script(for shell: CompletionScript.Shell) -> String {
    // Nobody waits for long for a broker that isn't there, nor reads through thousands of names.
    let topics = CompletionScript.TopicSource(
      "sluice topic list --names --limit 300 --timeout 1s --prefix", taking: Commands.shared.dropLast())
    return CompletionScript.render(Commands.page(), for: shell, topics: topics) { Commands.shared(by: $0) }
  }
}
