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
      Completes commands, options, the words that their values can be, and names of files where files are meant. SHELL is bash, zsh or fish. \
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
    run.print(CompletionScript.render(Commands.page(), for: shell) { Commands.shared(by: $0) })
  }
}
