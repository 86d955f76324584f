import Glibc
import SluiceCommand

struct CompletionsCommand: Command {
  let shell: CompletionScript.Shell

  static let needsBroker = false

  static let page = CommandPage(
    "sluice completions", summary: "print a shell's completion script",
    operands: [Operand("SHELL", choices: CompletionScript.Shell.allCases.map(\.rawValue))],
    details: """
      Completes commands, options, their values, file names and topic names. Topic names come from the broker of --server in the line, or of the environment. \
      SHELL is bash, zsh or fish. For the options of sluiced, see sluiced --completions.
      """,
    examples: [
      "For this bash.": "source <(sluice completions bash)",
      "For every bash, with bash-completion installed.":
        "sluice completions bash > ~/.local/share/bash-completion/completions/sluice",
      "For every zsh, from a directory in its fpath.": "sluice completions zsh > ~/.zfunc/_sluice",
      "For every fish.": "sluice completions fish > ~/.config/fish/completions/sluice.fish",
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
    // Completion must be fast if no broker answers, and short with thousands of topics.
    let topics = CompletionScript.TopicSource(
      "sluice topic list --names --limit 300 --timeout 1s --prefix", taking: Commands.shared.dropLast())
    return CompletionScript.render(Commands.page(), for: shell, topics: topics) { Commands.shared(by: $0) }
  }
}

struct ManualCommand: Command {
  /// The command to explain; nil for the program.
  let word: String?
  /// The directory for all pages; nil to print one page.
  let directory: FilePath?

  static let needsBroker = false

  static let page = CommandPage(
    "sluice manual", summary: "print the manual, or write its pages to a directory",
    operands: [Operand("COMMAND", .optional, choices: commands)],
    options: [
      CommandOption(
        "directory", value: "DIR",
        help:
          "Write a page for each command into DIR, which is created if needed: sluice.1, sluice-pub.1 and so on.",
        takesBytes: true)
    ],
    details: """
      Without --directory, prints the page of sluice, or of one of its commands, in the format of man. It has the same text as --help. For the broker's pages, \
      see sluiced --manual.
      """,
    examples: [
      "Read about sluice pub.": "sluice manual pub | man -l -",
      "Install all pages.": "sluice manual --directory /usr/local/share/man/man1",
      "Install the broker's page.": "sluiced --manual > /usr/local/share/man/man8/sluiced.8",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    word = arguments.operands.first
    directory = arguments.path("directory")
    guard let word else { return }
    if directory != nil { throw UsageError("--directory is for all pages; leave COMMAND out") }
    _ = try Commands.find(word, in: Commands.all, of: "sluice manual")
  }

  /// The commands with pages. Names this command by a literal, because its own page is initialized with this list.
  private static var commands: [String] {
    Commands.all.map { $0 == Self.self ? "manual" : $0.page.word }
  }

  private static let elsewhere =
    "The options for the broker's address, TLS and credentials, which every command takes, are explained in sluice(1)."

  /// The pages, with the names of their files.
  static var pages: [(file: String, text: String)] {
    let program = Commands.page()
    let commands = program.commands.map { page in
      var page = page
      let shared = Commands.shared(by: page)
      // The program's page explains the shared options.
      if shared.count > 1 { page.details.append(elsewhere) }
      let text = ManualPage.render(page, shared: shared.suffix(1), seeAlso: ["sluice(1)", "sluiced(8)"])
      return ("\(ManualPage.name(of: page)).1", text)
    }
    let others = program.commands.map { "\(ManualPage.name(of: $0))(1)" }
    let text = ManualPage.render(program, seeAlso: others + ["sluiced(8)", "sluiced.toml(5)"])
    return [("sluice.1", text)] + commands
  }

  func start(_ run: Run) {
    let pages = Self.pages
    guard let directory else {
      let file = word.map { "sluice-\($0).1" } ?? "sluice.1"
      return run.print(pages.first { $0.file == file }?.text ?? "")
    }
    if let reason = directory.makeDirectory() {
      return run.finish(.failure, "--directory: cannot create \(directory): \(reason)")
    }
    for (file, text) in pages {
      let path = directory.appending(file)
      if let reason = Self.write(text, to: path) {
        return run.finish(.failure, "--directory: cannot write \(path): \(reason)")
      }
    }
    run.finish(.success)
  }

  /// - Returns: the system's reason for a failure; nil on success.
  private static func write(_ text: String, to path: FilePath) -> String? {
    let descriptor = path.open(O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode: 0o644)
    guard descriptor >= 0 else { return Descriptor.reason() }
    let code = Descriptor.write(text, to: descriptor)
    let isClosed = close(descriptor) == 0
    if code != 0 { return Descriptor.reason(code) }
    return isClosed ? nil : Descriptor.reason()
  }
}
