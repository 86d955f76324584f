import SluiceAccess
import SluiceTLS
import TestSupport
import Testing

/// The files of a broker with authentication: alice, whose password is "correct horse", has all permissions.
struct AliceFiles {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    let hash = try #require(PasswordHash(of: "correct horse", cost: .init(logN: 4, r: 1, p: 1)))
    try writeFile(directory.file("users"), Array("alice:\(hash.text)\n".utf8))
    try writeFile(directory.file("permissions"), Array("alice all >\n".utf8))
  }

  /// The broker's options.
  var options: [String] {
    ["--users", directory.file("users"), "--permissions", directory.file("permissions")]
  }
}
