import SluiceCommand

struct ContextCommand: CommandGroup {
  static let needsBroker = false

  static var members: [any Command.Type] {
    [
      ContextAddCommand.self, ContextUseCommand.self, ContextListCommand.self, ContextShowCommand.self,
      ContextRemoveCommand.self,
    ]
  }

  static let page = CommandPage(
    "sluice context", summary: "save servers and credentials under names", operands: [Operand("COMMAND")],
    details: """
      A context is a name for the options that connect to a broker. Commands without --server and SLUICE_SERVER use the context in use, or that of --context. \
      Contexts are stored in sluice/contexts.json in XDG_CONFIG_HOME, or in ~/.config; only the user can read the file.
      """,
    examples: [
      "Save a broker as prod, and use it by default.":
        "sluice context add prod --server tls://broker.example --user alice --password-file ~/.sluice-password --use",
      "Use another context once.": "sluice --context test topic list",
    ], commands: members.map { $0.page })
}

/// A command that works on the file of contexts.
protocol ContextFileCommand: Command {
  /// Whether it changes the file.
  static var changesFile: Bool { get }

  /// Changes or reads the file, and returns the text to print.
  func perform(on file: inout ContextFile) throws(UsageError) -> String
}

extension ContextFileCommand {
  static var needsBroker: Bool { false }
  static var changesFile: Bool { true }

  func start(_ run: Run) {
    do throws(UsageError) {
      guard Self.changesFile else {
        var file = try ContextFile.load()
        return run.print(try perform(on: &file))
      }
      run.print(try ContextFile.edit { file throws(UsageError) in try perform(on: &file) })
    } catch {
      run.finish(.failure, error.description)
    }
  }
}

struct ContextAddCommand: ContextFileCommand {
  let name: String
  let context: ContextFile.Context
  let isReplacing: Bool
  let isUsed: Bool

  static let page = CommandPage(
    "sluice context add", summary: "save servers and credentials under a name", operands: [Operand("NAME")],
    options: Commands.connecting.map { option in
      // Only commands that connect use the environment.
      var option = option
      option.environment = nil
      option.standard = nil
      return option
    } + [
      CommandOption(
        "store-secret",
        help:
          "Store the password or token itself, read from its file now. Otherwise the file is read each time."
      ),
      CommandOption("use", help: "Make it the context in use."),
      CommandOption(
        "replace", help: "Replace a context of that name. Otherwise an existing name is an error."),
    ],
    details: "The first context that is added becomes the one in use.",
    examples: [
      "A broker on this machine, on another port.": "sluice context add here --server 127.0.0.1:7500",
      "A broker that requires a token, which is stored in the context.":
        "sluice context add prod --server tls://broker.example --token-file token.txt --store-secret",
    ])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = try ContextName.read(arguments.operands[0])
    isReplacing = arguments.has("replace")
    isUsed = arguments.has("use")
    // Reports invalid options now instead of at the first use.
    _ = try ClientAccess([arguments])
    guard arguments.has("server") else { throw UsageError("no server is given; name one with --server HOST") }
    var context = ContextFile.Context()
    for option in Commands.connecting where arguments.has(option.name) {
      context[option.name] = arguments.texts(option.name).map { Self.whole($0, option) }
    }
    if arguments.has("store-secret") {
      for (option, secret) in [("password-file", "password"), ("token-file", "token")] {
        guard let path = arguments.text(option) else { continue }
        context[secret] = [try SecretFile.firstLine(of: path)]
        context[option] = nil
      }
      guard ContextFile.secrets.contains(where: { context[$0] != nil }) else {
        throw UsageError("--store-secret needs --password-file or --token-file")
      }
    }
    self.context = context
  }

  /// The absolute path of a file, since the context is also used in other directories.
  private static func whole(_ text: String, _ option: CommandOption) -> String {
    guard option.kind == .file, !text.hasPrefix("/"), let here = Environment.workingDirectory else {
      return text
    }
    return "\(here)/\(text)"
  }

  func perform(on file: inout ContextFile) throws(UsageError) -> String {
    let exists = file.contexts[name] != nil
    guard isReplacing || !exists else {
      throw UsageError("context \(name) exists; add --replace to replace it")
    }
    file.contexts[name] = context
    if isUsed || file.contexts.count == 1 { file.current = name }
    return
      "\(exists ? "Replaced" : "Created") context \(name)\(file.current == name ? ", the one in use" : "")\n"
  }
}

struct ContextUseCommand: ContextFileCommand {
  /// Nil for no context.
  let name: String?

  static let page = CommandPage(
    "sluice context use", summary: "choose the context that commands use", operands: [Operand("NAME")],
    details: "With - as NAME, no context is in use.",
    examples: ["Use the context prod.": "sluice context use prod", "Use no context.": "sluice context use -"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    let text = arguments.operands[0]
    name = text == "-" ? nil : try ContextName.read(text)
  }

  func perform(on file: inout ContextFile) throws(UsageError) -> String {
    if let name { _ = try file.find(name) }
    file.current = name
    return name.map { "Context \($0) is in use\n" } ?? "No context is in use\n"
  }
}

struct ContextListCommand: ContextFileCommand {
  static let changesFile = false

  let asJSON: Bool

  static let page = CommandPage(
    "sluice context list", summary: "list contexts", options: [TopicCommand.json],
    examples: ["All contexts, with a star at the one in use.": "sluice context list"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    asJSON = arguments.has("json")
  }

  func perform(on file: inout ContextFile) throws(UsageError) -> String {
    let contexts = file.contexts.sorted { $0.key < $1.key }
    if asJSON {
      let lines = contexts.map { name, context in
        ContextText.object(name, context, isCurrent: name == file.current).line
      }
      return lines.joined()
    }
    if contexts.isEmpty { return "" }
    let rows = contexts.map { name, context in
      [
        name == file.current ? "*" : "", name, context["server", default: []].joined(separator: ","),
        ContextText.identity(context),
      ]
    }
    return TextTable.render([["", "CONTEXT", "SERVER", "AS"]] + rows, leftColumns: 4)
  }
}

struct ContextShowCommand: ContextFileCommand {
  static let changesFile = false

  /// Nil for the context in use.
  let name: String?
  let asJSON: Bool

  static let page = CommandPage(
    "sluice context show", summary: "show a context's options", operands: [Operand("NAME", .optional)],
    options: [TopicCommand.json], details: "Without NAME, shows the context in use. Secrets aren't printed.",
    examples: ["Which broker do commands use?": "sluice context show"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = try arguments.operands.first.map { text throws(UsageError) in try ContextName.read(text) }
    asJSON = arguments.has("json")
  }

  func perform(on file: inout ContextFile) throws(UsageError) -> String {
    guard let name = name ?? file.current else { throw UsageError("no context is in use; name one") }
    let context = try file.find(name)
    if asJSON {
      return ContextText.object(name, context, isCurrent: name == file.current).line
    }
    let rows = ContextText.shown(context).map { [$0.option, $0.text] }
    return TextTable.render([["context", name]] + rows, leftColumns: 2)
  }
}

struct ContextRemoveCommand: ContextFileCommand {
  let name: String

  static let page = CommandPage(
    "sluice context remove", summary: "remove a context", operands: [Operand("NAME")],
    examples: ["Remove the context test.": "sluice context remove test"])

  init(_ arguments: ParsedArguments) throws(UsageError) {
    name = try ContextName.read(arguments.operands[0])
  }

  func perform(on file: inout ContextFile) throws(UsageError) -> String {
    _ = try file.find(name)
    file.contexts[name] = nil
    let wasUsed = file.current == name
    if wasUsed { file.current = nil }
    return "Removed context \(name)\(wasUsed ? "; no context is in use" : "")\n"
  }
}

enum ContextName {
  /// - Throws: `UsageError` when no context can have that name.
  static func read(_ text: String) throws(UsageError) -> String {
    let isPlain = text.utf8.allSatisfy { byte in
      Character(Unicode.Scalar(byte)).isLetter || Character(Unicode.Scalar(byte)).isNumber
        || [UInt8(ascii: "."), UInt8(ascii: "-"), UInt8(ascii: "_")].contains(byte)
    }
    guard isPlain, !text.isEmpty, !text.hasPrefix("-"), text.utf8.count <= 64 else {
      throw UsageError(
        "'\(text)' can't be the name of a context: use at most 64 letters, digits, dots, dashes and underscores"
      )
    }
    return text
  }
}

/// Contexts as they are shown: without secrets.
private enum ContextText {
  static func shown(_ context: ContextFile.Context) -> [(option: String, text: String)] {
    context.sorted { $0.key < $1.key }.map { option, values in
      (option, ContextFile.secrets.contains(option) ? "(stored, not shown)" : values.joined(separator: ","))
    }
  }

  static func identity(_ context: ContextFile.Context) -> String {
    if let user = context["user"]?.last { return user }
    return context["token-file"] != nil || context["token"] != nil ? "(a token)" : ""
  }

  static func object(_ name: String, _ context: ContextFile.Context, isCurrent: Bool) -> JSON {
    let options = shown(context).map { ($0.option, JSON.text($0.text) as JSON?) }
    return ["context": .text(name), "current": .flag(isCurrent)] + .object(options)
  }
}
