import SluiceCommand
import Testing

@testable import SluiceDaemon
@testable import SluiceTool

@Suite("The examples in the help")
struct HelpExampleTests {
  /// Both programs' pages, those of commands and of groups' members included.
  private static var pages: [CommandPage] {
    func all(_ page: CommandPage) -> [CommandPage] { [page] + page.commands.flatMap(all) }
    return all(Commands.page()) + all(DaemonPage.page())
  }

  /// The words of a line as a shell has them. What divides commands is a word of its own.
  private static func words(_ line: String) -> [String] {
    var words: [String] = []
    var word: String?
    var isQuoted = false
    for letter in line.replacing("<(", with: "| ") {
      switch letter {
      case "'":
        isQuoted.toggle()
        word = word ?? ""
      case " " where !isQuoted:
        if let word { words.append(word) }
        word = nil
      default: word = (word ?? "") + String(letter)
      }
    }
    return words + (word.map { [$0] } ?? [])
  }

  /// What the line's commands give this program, each.
  private static func arguments(of program: String, in line: String) -> [[String]] {
    let dividers: Set<String> = ["|", "&&", "<", ">"]
    return words(line).split(whereSeparator: dividers.contains).compactMap { command in
      guard let start = command.firstIndex(of: program) else { return nil }
      // Of a list in brackets the last word has the one that closes it.
      return command[(start + 1)...].map { $0.contains("(") ? $0 : $0.filter { $0 != ")" } }
    }
  }

  @Test("are taken by the programs that they are for, values included")
  func taken() throws {
    var count = 0
    for page in Self.pages {
      #expect(!page.examples.isEmpty, "\(page.name)")
      for example in page.examples {
        let (tool, daemon) = (
          Self.arguments(of: "sluice", in: example.line), Self.arguments(of: "sluiced", in: example.line)
        )
        #expect(!tool.isEmpty || !daemon.isEmpty, "\(page.name): \(example.line)")
        for arguments in tool { try expectTaken(arguments, example.line) }
        for arguments in daemon {
          #expect(throws: Never.self, "\(example.line)") {
            try DaemonSettings(ArgumentParser(DaemonPage.page()).parse(arguments))
          }
        }
        count += tool.count + daemon.count
      }
    }
    #expect(count > 80)
  }

  private func expectTaken(_ arguments: [String], _ line: String) throws {
    var name = ""
    do throws(UsageError) {
      _ = try CommandLineChoice.read(arguments, naming: &name)
    } catch  where error.description.hasPrefix("an export can't be printed on a terminal") {
      // The user that runs the tests has one.
    } catch  where error.description.contains("can't be read: No such file") && line.contains("context add") {
      // The files with secrets of the example aren't there.
    } catch  where error.description.hasPrefix("there is no context ") {
      // Nor are its contexts.
    } catch {
      Issue.record("\(line): \(error)")
    }
  }
}
