import Glibc
import TestSupport

/// A shell command that runs until the test releases it, and no longer than this object exists.
final class HeldCommand: Sendable {
  private let directory: TemporaryDirectory
  private var hold: String { directory.file("hold") }

  init() throws {
    directory = try TemporaryDirectory()
    try writeFile(hold, [])
  }

  /// The text for the shell.
  var text: String { "while [ -e '\(hold)' ]; do sleep 0.05; done" }

  func letGo() { unlink(hold) }
}
