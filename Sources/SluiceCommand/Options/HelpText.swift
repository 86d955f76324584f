/// Generates a command's help from its page.
public enum HelpText {
  private static let width = 88
  private static let column = 26

  /// The whole help, with a line break at the end.
  ///
  /// - Parameters:
  ///   - shared: options that every command of the program takes.
  ///   - elsewhere: a sentence that refers to the explanation of the shared options; nil to list them here.
  public static func render(
    _ page: CommandPage, shared: [CommandOption] = [], elsewhere: String? = nil
  ) -> String {
    var text = "\(page.name): \(page.summary)\n\n"
    text += "Usage: \(usage(of: page))\n"
    for paragraph in page.details { text += "\n" + wrapped(paragraph, indent: 0) }
    if !page.commands.isEmpty {
      text += "\nCommands:\n"
      for command in page.commands {
        text += entry(title(of: command), command.summary)
      }
    }
    text += list(page.options, under: page.commands.isEmpty ? "Options" : "Options of \(page.name)")
    if let elsewhere {
      text += "\n" + wrapped(elsewhere, indent: 0)
    } else {
      text += list(shared, under: page.options.isEmpty ? "Options" : "Options of every command")
    }
    if !page.examples.isEmpty {
      text += "\nExamples:\n"
      for (index, example) in page.examples.enumerated() {
        if index > 0 { text += "\n" }
        text += wrapped(example.purpose, indent: 2, prefix: "# ")
        text += "  \(example.line)\n"
      }
    }
    return text
  }

  /// The command with its operands: "sluice pub [OPTION]... TOPIC [MESSAGE]...".
  public static func usage(of page: CommandPage) -> String {
    page.commands.isEmpty
      ? ([page.name, "[OPTION]..."] + page.operands.map(\.notation)).joined(separator: " ")
      : "\(page.name) [OPTION]... COMMAND"
  }

  private static func title(of command: CommandPage) -> String {
    ([command.word] + command.operands.map(\.notation)).joined(separator: " ")
  }

  private static func list(_ options: [CommandOption], under heading: String) -> String {
    let shown = options.filter { $0.unavailable == nil }
    guard !shown.isEmpty else { return "" }
    return "\n\(heading):\n" + shown.map { entry($0.notation, $0.explanation) }.joined()
  }

  /// A title on the left, and its text on the right, or below a long title.
  private static func entry(_ title: String, _ text: String) -> String {
    let lines = wrap(text, to: width - column)
    let left = "  \(title)"
    var result = ""
    var rest = lines[...]
    if left.count + 2 <= column {
      result += left + String(repeating: " ", count: column - left.count) + (rest.popFirst() ?? "") + "\n"
    } else {
      result += left + "\n"
    }
    for line in rest { result += String(repeating: " ", count: column) + line + "\n" }
    return result
  }

  private static func wrapped(_ text: String, indent: Int, prefix: String = "") -> String {
    let margin = String(repeating: " ", count: indent) + prefix
    return wrap(text, to: width - margin.count).map { margin + $0 + "\n" }.joined()
  }

  private static func wrap(_ text: String, to width: Int) -> [String] {
    var lines: [String] = []
    var line = ""
    for word in text.split(separator: " ") {
      if !line.isEmpty, line.count + 1 + word.count > width {
        lines.append(line)
        line = ""
      }
      line += line.isEmpty ? word : " " + word
    }
    if !line.isEmpty { lines.append(line) }
    return lines
  }
}

extension Operand {
  /// "TOPIC", "[MESSAGE]", "[MESSAGE]...".
  var notation: String {
    switch arity {
    case .required: name
    case .optional: "[\(name)]"
    case .repeated: "[\(name)]..."
    }
  }
}

extension CommandOption {
  /// "--listen ADDR", "--compact[=BOOL]".
  var notation: String {
    let letter = letter.map { "-\($0), " } ?? ""
    guard let value else { return "\(letter)--\(name)" }
    return bare == nil ? "\(letter)--\(name) \(value)" : "\(letter)--\(name)[=\(value)]"
  }

  /// The help, with the default and the environment variable.
  var explanation: String {
    var notes: [String] = []
    if isRepeatable { notes.append("may be repeated") }
    if let standard { notes.append("default \(standard)") }
    if let environment { notes.append(environment) }
    return notes.isEmpty ? help : "\(help) (\(notes.joined(separator: "; ")))"
  }
}
