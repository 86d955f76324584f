import Glibc
import TestSupport

/// A command of the shell that takes as long as the test wants it to, and ends with this object at the latest.
final class HeldCommand: Sendable {
  private let directory: TemporaryDirectory
  private var hold: String { directory.file("hold") }

  init() throws {
    directory = try TemporaryDirectory()
    try writeFile(hold, [])
  }

  /// To be run by a shell.
  var text: String { "while [ -e '\(hold)' ]; do sleep 0.05; done" }

  func letGo() { unlink(hold) }
}
