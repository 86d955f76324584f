import SluiceCommand
import Testing

@testable import SluiceDaemon
@testable import SluiceTool

/// Completions offer the values that commands accept.
@Suite("Words that values can be")
struct ChoiceTests {
  /// A command's error for these arguments; nil if it accepts them.
  private func complaint(_ page: CommandPage, _ arguments: [String]) -> String? {
    do throws(UsageError) {
      if page.name == "sluiced" {
        _ = try DaemonSettings(ArgumentParser(page).parse(arguments))
      } else {
        var name = ""
        _ = try CommandLineChoice.read(
          page.name.split(separator: " ").dropFirst().map(String.init) + arguments, naming: &name)
      }
      return nil
    } catch {
      return error.description
    }
  }

  private static let pages =
    [DaemonPage.page()] + Commands.all.flatMap { $0.page.commands.isEmpty ? [$0.page] : $0.page.commands }

  /// The additional arguments without which a command doesn't check its options.
  private func needed(_ page: CommandPage) -> [String] {
    let operands = page.operands.filter { $0.arity == .required }.map { $0.choices.first ?? "x" }
    return page.name == "sluice sub" ? operands + ["--group", "g"] : operands
  }

  @Test("a value that is no word is answered with the words that are offered, in their order")
  func words() {
    for page in Self.pages {
      let operands = needed(page)
      for option in page.options
      where option.value != nil && !["manual", "completions"].contains(option.name) {
        guard let said = complaint(page, operands + ["--\(option.name)=§§§§§§"]) else { continue }
        guard said.hasPrefix("--\(option.name): "), said.contains("; it can be ") else { continue }
        for word in option.words { #expect(said.contains(word), "\(page.name) --\(option.name): \(said)") }
        #expect(!option.words.isEmpty, "\(page.name) --\(option.name): \(said)")
      }
    }
  }

  @Test("a word that is nearly right is answered with the one that is")
  func suggestions() {
    for page in Self.pages {
      let operands = needed(page)
      for option in page.options {
        guard let word = option.words.first(where: { $0.count >= 4 }), option.kind == .choice else {
          continue
        }
        if ["manual", "completions"].contains(option.name) { continue }
        let said = complaint(page, operands + ["--\(option.name)=\(word)x"])
        #expect(
          said?.contains("did you mean '\(word)'?") == true,
          "\(page.name) --\(option.name): \(said ?? "taken")")
      }
    }
  }

  @Test("every word that is offered is taken")
  func offers() {
    for page in Self.pages {
      let operands = needed(page)
      for option in page.options
      where option.value != nil && !["manual", "completions"].contains(option.name) {
        for word in option.words {
          // It may need other options.
          let said = complaint(page, operands + ["--\(option.name)=\(word)"]) ?? ""
          #expect(
            !said.contains("there is no '") && !said.contains("isn't a"),
            "\(page.name) --\(option.name)=\(word): \(said)")
        }
      }
    }
  }

  @Test("a command and an option that are nearly right are answered with the right one")
  func names() {
    for page in Self.pages where page.name != "sluiced" {
      let words = page.name.split(separator: " ").dropFirst().map(String.init)
      // One letter too many.
      var wrong = words
      wrong[wrong.count - 1] += "x"
      var name = ""
      let error = #expect(throws: UsageError.self) { try CommandLineChoice.read(wrong, naming: &name) }
      #expect(
        error?.description.contains("did you mean sluice \(words.joined(separator: " "))?") == true,
        "\(page.name)")
    }
    for page in Self.pages {
      for option in page.options where option.name.count > 3 && option.unavailable == nil {
        let said = complaint(page, ["--\(option.name)x"]) ?? ""
        #expect(said.contains("did you mean --\(option.name)?"), "\(page.name): \(said)")
      }
    }
  }
}
