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

  /// A command that is the first word of others has them on its page; a program's commands have pages of their own.
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
