/// Writes a command's manual page from the same source as its help.
public enum ManualPage {
  /// - Parameters:
  ///   - section: of the manual.
  ///   - shared: options that every command of the program takes.
  ///   - seeAlso: other pages, with their sections: `sluice(1)`.
  public static func render(
    _ page: CommandPage, section: Int = 1, shared: [CommandOption] = [], seeAlso: [String] = []
  ) -> String {
    var text = ManualText(name(of: page), section: section, summary: page.summary)
    text.section("SYNOPSIS")
    text.usage(HelpText.usage(of: page))
    for member in page.commands where !member.commands.isEmpty || isGroup(page) {
      text.usage(HelpText.usage(of: member))
    }
    if !page.details.isEmpty {
      text.section("DESCRIPTION")
      for paragraph in page.details { text.paragraph(paragraph) }
    }
    if !page.commands.isEmpty {
      text.section("COMMANDS")
      for member in page.commands {
        if isGroup(page) { explain(member, in: &text) } else { text.entry(member.word, member.summary + ".") }
      }
    }
    list(page.options, under: "OPTIONS", in: &text)
    list(shared, under: page.options.isEmpty ? "OPTIONS" : "OPTIONS OF EVERY COMMAND", in: &text)
    if !page.examples.isEmpty {
      text.section("EXAMPLES")
      for example in page.examples { text.example(example.purpose, example.line) }
    }
    if !seeAlso.isEmpty {
      text.section("SEE ALSO")
      text.paragraph(seeAlso.joined(separator: ", "))
    }
    return text.text
  }

  /// `sluice-topic` for `sluice topic`.
  public static func name(of page: CommandPage) -> String {
    page.name.split(separator: " ").joined(separator: "-")
  }

  /// The page of a command includes its subcommands; a program's commands have pages of their own.
  private static func isGroup(_ page: CommandPage) -> Bool { page.name.contains(" ") }

  private static func explain(_ member: CommandPage, in text: inout ManualText) {
    text.subsection(HelpText.usage(of: member))
    text.paragraph(sentence(member.summary))
    for paragraph in member.details { text.paragraph(paragraph) }
    for option in member.options where option.unavailable == nil {
      text.entry(option.notation, option.explanation)
    }
    for example in member.examples { text.example(example.purpose, example.line) }
  }

  private static func sentence(_ summary: String) -> String {
    summary.prefix(1).uppercased() + summary.dropFirst() + "."
  }

  private static func list(_ options: [CommandOption], under heading: String, in text: inout ManualText) {
    let shown = options.filter { $0.unavailable == nil }
    guard !shown.isEmpty else { return }
    text.section(heading)
    for option in shown { text.entry(option.notation, option.explanation) }
  }
}

/// Builds a page for `man`, in roff, from plain text.
public struct ManualText {
  public private(set) var text: String
  /// Whether a heading has no text under it yet.
  private var isFresh = true

  /// - Parameters:
  ///   - name: the name of the page: `sluice-pub`.
  ///   - section: the section of the manual: 1 for commands, 5 for files, 8 for daemons.
  ///   - summary: a summary of half a line.
  public init(_ name: String, section: Int, summary: String) {
    text =
      ".TH \"\(Self.escaped(name.uppercased()))\" \"\(section)\" \"\" \"\(Self.escaped("sluice \(Version.text)"))\" \"Sluice\"\n"
    // Turns off hyphenation, which would change commands and options, and gaps between words.
    text += ".nh\n.ad l\n"
    self.section("NAME")
    paragraph("\(name) - \(summary)")
  }

  public mutating func section(_ heading: String) {
    text += ".SH \"\(Self.escaped(heading))\"\n"
    isFresh = true
  }

  public mutating func subsection(_ heading: String) {
    text += ".SS \"\(Self.escaped(heading))\"\n"
    isFresh = true
  }

  public mutating func paragraph(_ paragraph: String) {
    separate()
    text += "\(Self.line(paragraph))\n"
  }

  /// Adds a line of usage.
  public mutating func usage(_ usage: String) {
    separate()
    text += ".B \(Self.line(usage))\n"
  }

  /// Adds a term and, indented, its explanation.
  public mutating func entry(_ term: String, _ explanation: String) {
    isFresh = false
    text += ".TP\n.B \(Self.line(term))\n\(Self.line(explanation))\n"
  }

  /// Adds example lines, and their purpose.
  public mutating func example(_ purpose: String, _ lines: String) {
    paragraph(purpose)
    text += ".PP\n.RS 4\n.nf\n"
    for line in lines.split(separator: "\n", omittingEmptySubsequences: false) {
      text += (line.isEmpty ? "\\&" : Self.line(String(line))) + "\n"
    }
    text += ".fi\n.RE\n"
  }

  private mutating func separate() {
    if !isFresh { text += ".PP\n" }
    isFresh = false
  }

  /// The text as a line that isn't a roff request.
  private static func line(_ text: String) -> String {
    let escaped = escaped(text)
    return escaped.hasPrefix(".") ? "\\&" + escaped : escaped
  }

  /// Escapes of special characters: quotes and dashes stay ASCII, so that examples can be copied.
  static func escaped(_ text: String) -> String {
    var result = ""
    for character in text {
      switch character {
      case "\\": result += "\\e"
      case "-": result += "\\-"
      case "'": result += "\\(aq"
      case "\"": result += "\\(dq"
      case "`": result += "\\(ga"
      case "^": result += "\\(ha"
      case "~": result += "\\(ti"
      default: result.append(character)
      }
    }
    return result
  }
}
