import SluiceWire
import Testing

@testable import SluiceAccess

@Suite("The file of permissions")
struct PermissionsFileTests {
  private func file(_ text: String) throws -> PermissionsFile {
    try PermissionsFile(Array(text.utf8), path: "permissions")
  }

  @Test("lines add up, for an identity and for everybody")
  func reading() throws {
    let file = try file(
      """
      # Who may do what
      * subscribe public.>
      alice publish,create orders.> invoices.*
      alice\tsubscribe   orders.eu\r
      "Alice Smith" all smith.>  "#odd"
      "*" admin stars
      "a\\"b\\\\c" publish x

      *  subscribe news
      """)
    let alice = try #require(file.permissions["alice"])
    #expect(alice.rights(on: "orders.eu") == [.publish, .create, .subscribe])
    #expect(alice.rights(on: "orders.us") == [.publish, .create])
    #expect(alice.rights(on: "invoices.7") == [.publish, .create])
    #expect(alice.rights(on: "public.a").isEmpty)
    #expect(
      file.commonPermissions.rights(on: "public.a") == .subscribe
        && file.commonPermissions.rights(on: "news") == .subscribe)
    #expect(file.commonPermissions.rights(on: "stars").isEmpty)
    #expect(file.permissions["Alice Smith"]?.rights(on: "smith.x") == .all)
    #expect(file.permissions["Alice Smith"]?.rights(on: "#odd") == .all)
    #expect(file.permissions["*"]?.rights(on: "stars") == .admin)
    #expect(file.permissions["a\"b\\c"]?.rights(on: "x") == .publish)
    #expect(file.permissions.count == 4)
  }

  @Test("nothing is allowed by an empty file")
  func empty() throws {
    for text in ["", "\n\n", "# alice all >\n"] {
      let file = try file(text)
      #expect(file.permissions.isEmpty && file.commonPermissions == .nothing)
    }
  }

  @Test("identities that Unicode calls equivalent are two")
  func equivalence() throws {
    let file = try file("\u{212A}arl all >\n")
    #expect(file.permissions["Karl"] == nil && file.permissions["\u{212A}arl"] != nil)
  }

  @Test(
    "a line that can't be read is named, with what is wrong and what to do",
    arguments: [
      ("alice", "line 1: there are no rights behind 'alice'; write IDENTITY RIGHTS PATTERN..."),
      ("alice publish", "line 1: there is no pattern of topics behind the rights; > stands for all topics"),
      ("\n# x\nalice publsh >", "line 3: there is no right 'publsh', did you mean 'publish'?"),
      ("alice read >", "line 1: there is no right 'read', did you mean 'subscribe'?"),
      ("alice * >", "line 1: there is no right '*', did you mean 'all'?"),
      ("alice publish, create >", "line 1: there is no right ''; rights are"),
      ("alice PUBLISH >", "line 1: there is no right 'PUBLISH', did you mean 'publish'?"),
      (
        "alice xyz >", "line 1: there is no right 'xyz'; rights are publish, subscribe, create, admin and all"
      ),
      ("alice all a..b", "line 1: \"a..b\" isn't a topic name"),
      ("alice all >.a", "line 1: \">.a\" isn't a pattern: > can only be its last token"),
      ("alice all orders.> # comment", "line 1: a comment has a line of its own"),
      ("alice all orders.> #comment", "line 1: a comment has a line of its own"),
      ("\"alice all >", "line 1: the closing quotation mark is missing"),
      ("\"alice\"all >", "line 1: there is no space behind the closing quotation mark"),
      ("ali\"ce all >", "line 1: a quotation mark in the middle of a word"),
      ("\"a\\n\" all >", "line 1: a backslash can only be before"),
      ("\"a\\", "line 1: a backslash can only be before"),
      ("\"\" all >", "line 1: '' can't be an identity: it is empty"),
      ("a\u{1B}[31m all >", "line 1: 'a\\u001b[31m' can't be an identity: it has a control character"),
      ("a all >\n\(String(repeating: "x", count: 256)) all >", "line 2: 'xxxx"),
      ("alice all \(String(repeating: "x", count: 256))", "line 1: \"xxxx"),
    ])
  func refusals(text: String, beginning: String) {
    do {
      _ = try file(text)
      Issue.record("taken")
    } catch {
      let message = "\(error)"
      #expect(message.hasPrefix("permissions, \(beginning)"), "\(message)")
      #expect(!message.unicodeScalars.contains { $0.properties.generalCategory == .control })
    }
  }

  @Test("one identity can't have any number of patterns")
  func limit() throws {
    let patterns = (0..<1_000).map { "t\($0)" }.joined(separator: " ")
    _ = try file("alice all \(patterns)\nbob all \(patterns)\n* all \(patterns)")
    for subject in ["alice", "*"] {
      #expect(throws: AccessFileError.self) {
        try file("\(subject) all \(patterns)\n\(subject) all one.more")
      }
    }
  }
}
