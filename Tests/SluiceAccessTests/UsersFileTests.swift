import Glibc
import SluiceTLS
import TestSupport
import Testing

@testable import SluiceAccess

@Suite("The file of users")
struct UsersFileTests {
  private static let hash =
    "$scrypt$ln=4,r=1,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
  private let directory: TemporaryDirectory
  private var path: String { directory.file("users") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func file(_ text: String) throws -> UsersFile { try UsersFile(Array(text.utf8), path: "users") }

  private func objection(_ text: [UInt8]) -> String? {
    do {
      _ = try UsersFile(text, path: "users")
      return nil
    } catch {
      return error.description
    }
  }

  @Test("users are read, and comments, empty lines and line breaks of two characters are no users")
  func reading() throws {
    let text =
      "\u{FEFF}# Users\n\nalice:\(Self.hash)\r\n  bob smith:\(Self.hash)\t\n#carol:\(Self.hash)\nZoë:\(Self.hash)"
    #expect(try file(text).users.map(\.name) == ["alice", "bob smith", "Zoë"])
    #expect(try file("").users.isEmpty)
  }

  @Test("what is read is written as it was, but for the marks of editors")
  func rewriting() throws {
    let text = "# Users\n\nalice:\(Self.hash)\n  # more \nbob:\(Self.hash)\n"
    #expect(try file(text).bytes == Array(text.utf8))
    #expect(try file(String(text.dropLast())).bytes == Array(text.utf8))
  }

  @Test("changes keep comments and order")
  func changes() throws {
    var users = try file("# Top\nalice:\(Self.hash)\n# Middle\nbob:\(Self.hash)\n# End\n")
    users.set(try PasswordHash(Self.hash.replacing("ln=4", with: "ln=5")), of: "alice")
    users.set(try PasswordHash(Self.hash), of: "carol")
    let removals = [users.remove("bob"), users.remove("bob"), users.remove("nobody")]
    #expect(removals == [true, false, false])
    #expect(users.hasUser("carol") && !users.hasUser("bob"))
    let expected =
      "# Top\nalice:\(Self.hash.replacing("ln=4", with: "ln=5"))\n# Middle\n# End\ncarol:\(Self.hash)\n"
    #expect(String(decoding: users.bytes, as: UTF8.self) == expected)
    _ = users.remove("carol")
    users.set(try PasswordHash(Self.hash), of: "alice")
    #expect(String(decoding: users.bytes, as: UTF8.self) == "# Top\nalice:\(Self.hash)\n# Middle\n# End\n")
  }

  @Test(
    "a line that can't be read is named, with what is wrong",
    arguments: [
      ("alice", "users, line 1: this isn't NAME:HASH"),
      ("\n\nalice secret", "users, line 3: this isn't NAME:HASH"),
      (":\(hash)", "users, line 1: '' can't be a user's name: it is empty"),
      ("*:\(hash)", "users, line 1: '*' can't be a user's name: * stands for all clients"),
      ("a\u{7}b:\(hash)", "users, line 1: 'a\\u0007b' can't be a user's name: it has a control character"),
      ("a :\(hash)", "users, line 1: 'a ' can't be a user's name: it begins or ends with white space"),
      ("\(String(repeating: "x", count: 256)):\(hash)", "users, line 1: 'xxxxxxxx"),
      ("a:\(hash)\nb:\(hash)\na:\(hash)", "users, line 3: there is a user 'a' already, in line 1"),
      ("alice:secret", "users, line 1: this isn't a hash of a password"),
      ("alice:", "users, line 1: this isn't a hash of a password"),
      ("alice:$2y$10$abcdefghijklmnopqrstuv", "users, line 1: this isn't a hash of a password"),
      (
        "alice:$argon2id$v=19$m=65536,t=3,p=4$c2FsdA$aGFzaA", "users, line 1: this isn't a hash of a password"
      ),
      (
        "a:$scrypt$ln=15,r=8$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "users, line 1: the hash's parameters aren't"
      ),
      (
        "a:$scrypt$r=8,ln=15,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "users, line 1: the hash's parameters aren't"
      ),
      (
        "a:$scrypt$ln=-1,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "users, line 1: the hash's parameters aren't"
      ),
      (
        "a:$scrypt$ln=99999999999999999999,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "users, line 1: the hash's parameters aren't"
      ),
      (
        "a:$scrypt$ln=25,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "users, line 1: the hash's parameters ln=25,r=8,p=1 ask for too much"
      ),
      (
        "a:$scrypt$ln=999999,r=999999,p=999999$AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAA",
        "users, line 1: the hash's parameters ln=999999"
      ),
      ("a:$scrypt$ln=15,r=8,p=1$AAAA$AAAAAAAAAAAAAAAAAAAAAA", "users, line 1: the hash's salt isn't"),
      (
        "a:$scrypt$ln=15,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAA",
        "users, line 1: the hash's salt isn't"
      ),
      ("a:$scrypt$ln=15,r=8,p=1$AAAAAAAAAAAAAAAAAAAAAA$AAAA", "users, line 1: the hash itself isn't"),
      ("a:\(hash)$", "users, line 1: this isn't a hash of a password"),
    ])
  func refusals(text: String, beginning: String) {
    let message = objection(Array(text.utf8))
    #expect(message?.hasPrefix(beginning) == true, "\(message ?? "taken")")
    #expect(message?.unicodeScalars.contains { $0.properties.generalCategory == .control } == false)
  }

  @Test("other encodings are refused, with the line")
  func encodings() {
    #expect(
      objection(Array("a:\(Self.hash)\n".utf8) + [0xFF, 0xFE])
        == "users, line 2: this isn't UTF-8; save the file as that")
  }

  @Test("names that Unicode calls equivalent are two users")
  func equivalence() throws {
    let users = Users(try file("\u{E9}:\(Self.hash)\ne\u{301}:\(Self.hash)\n").users)
    #expect(users.count == 2)
  }

  // MARK: Passwords

  @Test("a hash is of its password and no other")
  func hashes() throws {
    let hash = try PasswordHash.cheap("pass\u{0}wörd")
    #expect(hash.matches("pass\u{0}wörd"))
    for other in ["", "pass", "pass\u{0}word", "pass\u{0}wo\u{308}rd", "pass\u{0}wörd "] {
      #expect(!hash.matches(other))
    }
    #expect(try PasswordHash(hash.text) == hash)
    #expect(try PasswordHash.cheap("a").text != PasswordHash.cheap("a").text)
    let long = String(repeating: "x", count: 8_000)
    #expect(try PasswordHash.cheap(long).matches(long))
    #expect(try !PasswordHash.cheap(long).matches(long + "x"))
  }

  @Test("a hash that others have made is understood: the third example of RFC 7914")
  func foreignHash() throws {
    let salt = Base64Text.standard.encode("SodiumChloride".utf8)
    let key = [UInt8](
      hex:
        "7023bdcb3afd7348461c06cd81fd38eb fda8fbba904f8e3ea9b543f6545da1f2 d5432955613f0fcf62d49705242a9af9 e61e85dc0d651e40dfcf017b45575887"
    )
    let hash = try PasswordHash("$scrypt$ln=14,r=8,p=1$\(salt)$\(Base64Text.standard.encode(key))")
    #expect(hash.matches("pleaseletmein") && !hash.matches("pleaseletmeout"))
  }

  @Test("who isn't there is compared at the cost that most have")
  func usualCost() throws {
    var users: Users = ["a": try .cheap("a"), "b": try .cheap("b")]
    #expect(users.usualCost == .init(logN: 4, r: 1, p: 1))
    for name in ["c", "d", "e"] { users[name] = try PasswordHash(Self.hash.replacing("ln=4", with: "ln=5")) }
    #expect(users.usualCost == .init(logN: 5, r: 1, p: 1))
    for name in ["a", "b", "c", "d", "e"] { users[name] = nil }
    #expect(users.usualCost == nil && users.isEmpty)
  }

  // MARK: Editing

  private func contents() throws -> String {
    String(decoding: try AccessFile(path).contents(), as: UTF8.self)
  }

  private func mode(_ path: String) -> mode_t {
    var status = stat()
    return stat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
  }

  private func write(_ text: String, mode: mode_t = 0o600) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    try #require(descriptor >= 0)
    let bytes = Array(text.utf8)
    #expect(Glibc.write(descriptor, bytes, bytes.count) == bytes.count)
    fchmod(descriptor, mode)
    close(descriptor)
  }

  private func files() throws -> [String] {
    let stream = try #require(opendir(directory.path))
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: entry.pointee.d_name) {
        String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self)
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names.sorted()
  }

  @Test("a file is made for its owner alone, and keeps its mode")
  func making() throws {
    let hash = try PasswordHash(Self.hash)
    #expect(try UsersFile.edit(path, making: true) { $0.set(hash, of: "alice") })
    #expect(try contents() == "alice:\(Self.hash)\n")
    #expect(mode(path) == 0o600)
    chmod(path, 0o640)
    #expect(try !UsersFile.edit(path, making: true) { $0.set(hash, of: "bob") })
    #expect(try contents() == "alice:\(Self.hash)\nbob:\(Self.hash)\n")
    #expect(mode(path) == 0o640)
    #expect(try files() == ["users"])
  }

  @Test("what can't be changed stays as it was, and leaves nothing behind")
  func failing() throws {
    let hash = try PasswordHash(Self.hash)
    #expect(throws: AccessFileError.self) { try UsersFile.edit(path) { $0.set(hash, of: "alice") } }
    #expect(throws: AccessFileError(path, "no")) {
      try UsersFile.edit(path, making: true) { _ throws(AccessFileError) in throw AccessFileError(path, "no")
      }
    }
    #expect(try files() == [])
    for text in ["", "# nobody yet\n"] {
      try write(text)
      #expect(throws: AccessFileError(path, "no")) {
        try UsersFile.edit(path, making: true) { _ throws(AccessFileError) in
          throw AccessFileError(path, "no")
        }
      }
      #expect(try contents() == text)
    }
    try write("broken\n")
    #expect(throws: AccessFileError.self) {
      try UsersFile.edit(path, making: true) { $0.set(hash, of: "alice") }
    }
    #expect(try contents() == "broken\n")
    try write("", mode: 0o666)
    #expect(throws: AccessFileError.self) {
      try UsersFile.edit(path, making: true) { $0.set(hash, of: "alice") }
    }
    #expect(try files() == ["users"])
  }

  @Test("a link stays one: what it leads to is changed")
  func links() throws {
    try write("")
    let link = directory.file("link")
    #expect(symlink("users", link) == 0)
    let hash = try PasswordHash(Self.hash)
    try UsersFile.edit(link, making: true) { $0.set(hash, of: "alice") }
    #expect(try contents() == "alice:\(Self.hash)\n")
    var status = stat()
    #expect(lstat(link, &status) == 0 && status.st_mode & S_IFMT == S_IFLNK)
    let broken = directory.file("broken")
    #expect(symlink("nowhere", broken) == 0)
    #expect(throws: AccessFileError.self) {
      try UsersFile.edit(broken, making: true) { $0.set(hash, of: "a") }
    }
    #expect(throws: AccessFileError.self) {
      try UsersFile.edit(directory.path, making: true) { $0.set(hash, of: "a") }
    }
    #expect(try files() == ["broken", "link", "users"])
  }

  @Test("several may begin the same file at once")
  func beginnings() throws {
    let hash = try PasswordHash(Self.hash)
    for round in 0..<50 {
      let path = directory.file("users-\(round)")
      try concurrently(
        (0..<3).map { thread in
          { try UsersFile.edit(path, making: true) { $0.set(hash, of: "user-\(thread)") } }
        })
      #expect(try UsersFile.read(path).users.count == 3)
    }
  }

  @Test("many who change it at once lose nothing of each other's")
  func together() throws {
    let hash = try PasswordHash(Self.hash)
    let path = path
    try concurrently(
      (0..<4).map { thread in
        {
          for index in 0..<10 {
            try UsersFile.edit(path, making: true) { $0.set(hash, of: "user-\(thread)-\(index)") }
          }
        }
      })
    let users = try UsersFile(try AccessFile(path).contents(), path: path)
    #expect(users.users.count == 40)
    #expect(try files() == ["users"])
  }
}
