import Glibc
import SluiceCommand
import SluiceIO
import SluiceWire

/// A confirmation before an action that can't be undone: on a terminal, otherwise by a line of standard input. `--yes` skips it.
struct Question {
  static let option = CommandOption("yes", help: "Don't ask.")

  private let isAnswered: Bool

  init(_ arguments: ParsedArguments) {
    isAnswered = arguments.has("yes")
  }

  /// Whether ``ask(_:_:_:)`` waits for an answer before it calls its body.
  var isAsked: Bool { !isAnswered }

  /// Calls `body` on the loop: at once, or after the answer yes. Ends the run after any other answer. On the loop.
  func ask(_ run: Run, _ text: String, _ body: @escaping () -> Void) {
    guard isAsked else { return body() }
    if isatty(STDIN_FILENO) == 1 {
      Descriptor.write("\(ShownText.line(text)) [y/N] ", to: STDERR_FILENO)
    } else {
      run.note("\(text) Answer y or n on standard input, or add --yes")
    }
    nonisolated(unsafe) let body = body  // Passed in and called on the loop.
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

  /// Whether a line is "y" or "yes"; nil without a line.
  static func answer(_ line: [UInt8]) -> Bool? {
    guard !line.isEmpty else { return nil }
    let word = String(decoding: line.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self).lowercased()
      .filter { !$0.isWhitespace }
    return word == "y" || word == "yes"
  }
}
