import SluiceCommand
import Testing

@testable import SluiceDaemon
@testable import SluiceTool

@Suite("The examples in the help")
struct HelpExampleTests {
  /// Both programs' pages, including commands and members of groups.
  private static var pages: [CommandPage] {
    func all(_ page: CommandPage) -> [CommandPage] { [page] + page.commands.flatMap(all) }
    return all(Commands.page()) + all(DaemonPage.page())
  }

  /// The words of a line as split by a shell. Separators of commands are separate words.
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

  /// The arguments of each call of this program in the line.
  private static func arguments(of program: String, in line: String) -> [[String]] {
    let dividers: Set<String> = ["|", "&&", "<", ">"]
    return words(line).split(whereSeparator: dividers.contains).compactMap { command in
      guard let start = command.firstIndex(of: program) else { return nil }
      // The last word of a list in parentheses includes the closing one.
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
      // The files with secrets of the example don't exist.
    } catch  where error.description.hasPrefix("there is no context ") {
      // Neither do its contexts.
    } catch {
      Issue.record("\(line): \(error)")
    }
  }
}
