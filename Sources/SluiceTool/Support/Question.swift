import Glibc
import SluiceCommand
import SluiceIO
import SluiceWire

/// A question before what can't be undone. It is asked on a terminal only, and `--yes` answers it.
struct Question {
  static let option = CommandOption("yes", help: "Don't ask.")

  private let isAnswered: Bool

  init(_ arguments: ParsedArguments) {
    isAnswered = arguments.has("yes")
  }

  private static var hasTerminal: Bool { isatty(STDIN_FILENO) == 1 && isatty(STDERR_FILENO) == 1 }

  /// Whether there is an answer, or a terminal to ask.
  var canBeAnswered: Bool { isAnswered || Self.hasTerminal }

  /// Whether ``ask(_:_:_:)`` asks, and doesn't go on at once.
  var isAsked: Bool { !isAnswered && Self.hasTerminal }

  /// Goes on with `body` at once, or when the answer on the terminal is yes; ends the run otherwise. On the loop; `body` is called there.
  func ask(_ run: Run, _ text: String, _ body: @escaping () -> Void) {
    guard isAsked else { return body() }
    Descriptor.write("\(ShownText.line(text)) [y/N] ", to: STDERR_FILENO)
    nonisolated(unsafe) let body = body  // Called on the loop, from which it came.
    Threads.start {
      let line = (try? FileBytes.read(STDIN_FILENO, limit: 1024, until: UInt8(ascii: "\n"))) ?? []
      let isYes = Self.isYes(line)
      run.loop.execute {
        if isYes { unsafe body() } else { run.finish(.failure, "nothing was changed") }
      }
    }
  }

  /// Whether a line says yes.
  static func isYes(_ line: [UInt8]) -> Bool {
    let word = String(decoding: line, as: UTF8.self).lowercased().filter { !$0.isWhitespace }
    return word == "y" || word == "yes"
  }
}
