import Glibc
import SluiceCommand
import SluiceIO
import SluiceWire

/// A question before what can't be undone: asked on a terminal, and otherwise answered by a line of standard input. `--yes` answers it.
struct Question {
  static let option = CommandOption("yes", help: "Don't ask.")

  private let isAnswered: Bool

  init(_ arguments: ParsedArguments) {
    isAnswered = arguments.has("yes")
  }

  /// Whether ``ask(_:_:_:)`` waits for an answer, and doesn't call its body at once.
  var isAsked: Bool { !isAnswered }

  /// Calls `body` at once, or when the answer is yes; ends the run otherwise. On the loop; `body` is called there.
  func ask(_ run: Run, _ text: String, _ body: @escaping () -> Void) {
    guard isAsked else { return body() }
    if isatty(STDIN_FILENO) == 1 {
      Descriptor.write("\(ShownText.line(text)) [y/N] ", to: STDERR_FILENO)
    } else {
      run.note("\(text) Answer y or n on standard input, or add --yes")
    }
    nonisolated(unsafe) let body = body  // Called on the loop, from which it came.
    Threads.start {
      let line = (try? FileBytes.read(STDIN_FILENO, limit: 1024, until: UInt8(ascii: "\n"))) ?? []
      run.loop.execute {
        switch Self.answer(line) {
        case true?: unsafe body()
        case false?: run.finish(.failure, "nothing was changed")
        case nil:
          run.finish(.usage, "nothing was changed: standard input has no answer; answer y or n, or add --yes")
        }
      }
    }
  }

  /// Whether a line says yes; nil where there is no line.
  static func answer(_ line: [UInt8]) -> Bool? {
    guard !line.isEmpty else { return nil }
    let word = String(decoding: line.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self).lowercased()
      .filter { !$0.isWhitespace }
    return word == "y" || word == "yes"
  }
}
