import SluiceAccess
import SluiceCommand
import SluiceWire
import Testing

@testable import SluiceTool

@Suite("The commands for users and tokens")
struct AccessCommandTests {
  private func command(_ arguments: [String]) throws(UsageError) -> any Command {
    var name = ""
    guard case .run(let command, _) = try CommandLineChoice.read(arguments, naming: &name) else {
      throw UsageError("prints")
    }
    return command
  }

  @Test("the command user names an identity and a file")
  func users() throws {
    let add = try #require(
      try command(["user", "add", "alice", "--file", "u", "--password-file", "p"]) as? UserAddCommand)
    #expect(add.name == "alice" && add.file == "u")
    guard case .file("p") = add.password else {
      Issue.record("\(add.password)")
      return
    }
    let passwd = try #require(try command(["user", "passwd", "alice", "--file", "u"]) as? UserPasswdCommand)
    guard case .standardInput = passwd.password else {
      Issue.record("\(passwd.password)")
      return
    }
    #expect((try command(["user", "remove", "a b", "--file", "u"]) as? UserRemoveCommand)?.name == "a b")
    #expect((try command(["user", "list", "--file", "u", "--json"]) as? UserListCommand)?.asJSON == true)
    let can = try #require(
      try command(["user", "can", "a", "publish", "t.x", "--permissions", "p", "--client-id", "c"])
        as? UserCanCommand)
    #expect(can.subject == PermissionSubject(user: "a", clientID: "c") && can.right == .publish)
    let anonymous = try command(["user", "can", "g", "admin", "t", "--permissions", "p", "--anonymous"])
    #expect((anonymous as? UserCanCommand)?.subject.user == "")
  }

  @Test("commands that need no broker take nothing that is for reaching one")
  func withoutBroker() throws {
    for arguments in [
      ["user", "list", "--file", "u"], ["store", "stat", "d"], ["token", "key", "--output", "k"],
    ] {
      _ = try command(arguments)
      _ = try command(["--user", "alice", "--server", "x:1"] + arguments)
      for option in ["--server", "--token-file", "--user"] {
        #expect(throws: UsageError.self) { try command(arguments + [option, "x"]) }
      }
    }
  }

  @Test("a token is made of a key, a subject, a time and perhaps patterns")
  func make() throws {
    let usual = ["token", "make", "--key", "k", "--key-id", "2026", "--subject", "shop", "--for", "1h30m"]
    let plain = try #require(try command(usual) as? TokenMakeCommand)
    #expect(plain.key == "k" && plain.keyID == "2026" && plain.subject == "shop")
    #expect(plain.lifetime == .seconds(5400) && plain.permissions == nil && plain.output == nil)
    let full = try #require(
      try command(
        usual + [
          "--publish", "orders.>", "--publish", "a", "--subscribe", "b.*", "--create", "orders.>", "--admin",
          "c",
          "--output", "f",
        ]) as? TokenMakeCommand)
    #expect(full.output == "f")
    #expect(
      full.permissions?.rules == [
        .init(.publish, on: try TopicPattern("orders.>")), .init(.publish, on: try TopicPattern("a")),
        .init(.subscribe, on: try TopicPattern("b.*")), .init(.create, on: try TopicPattern("orders.>")),
        .init(.admin, on: try TopicPattern("c")),
      ])
  }

  @Test("a token to be shown comes from one place, and a key is of one kind")
  func showAndKey() throws {
    func source(_ arguments: String...) throws -> TokenShowCommand.Source? {
      (try command(["token", "show"] + arguments) as? TokenShowCommand)?.source
    }
    #expect(try source() == .standardInput)
    #expect(try source("-") == .standardInput)
    #expect(try source("a.b.c") == .text("a.b.c"))
    #expect(try source("--file", "f") == .file("f"))
    let key = try #require(try command(["token", "key", "--output", "k"]) as? TokenKeyCommand)
    #expect(key.algorithm == .eddsa && key.output == "k" && key.publicOutput == nil)
    let other =
      try command(["token", "key", "--output", "k", "--algorithm", "rs256", "--public", "p"])
      as? TokenKeyCommand
    #expect(other?.algorithm == .rs256 && other?.publicOutput == "p")
  }

  @Test(
    "what can't be is refused",
    arguments: [
      (["user", "add", "alice"], "--file is missing; name the file of users"),
      (["user", "add", "--file", "u"], "add needs NAME"),
      (["user", "add", "a:b", "--file", "u"], "'a:b' can't be a user's name: it has a colon"),
      (["user", "add", "*", "--file", "u"], "'*' can't be a user's name: * stands for all clients"),
      (["user", "add", "", "--file", "u"], "'' can't be a user's name: it is empty"),
      (["user", "add", "alice", "password", "--file", "u"], "'password' is one argument too many"),
      (
        ["user", "add", "alice", "--password", "p", "--file", "u"],
        "there is no option --password; did you mean --password-file?"
      ),
      (["user", "can", "a", "publish", "t"], "--permissions FILE is missing"),
      (["user", "can", "a", "publis", "t", "--permissions", "p"], "'publis' isn't an action"),
      (["user", "can", "a", "publish", "a..b", "--permissions", "p"], "\"a..b\" isn't"),
      (
        ["user", "can", "a", "publish", "t", "--permissions", "p", "--file", "u", "--anonymous"],
        "--file: an anonymous client isn't a user"
      ),
      (["user", "ad"], "there is no command 'ad'; did you mean sluice user add?"),
      (["token", "make", "--key", "k", "--key-id", "i", "--subject", "s"], "--for is missing"),
      (
        ["token", "make", "--key", "k", "--key-id", "../i", "--subject", "s", "--for", "1h"],
        "--key-id: '../i' can't be"
      ),
      (
        ["token", "make", "--key", "k", "--key-id", "i", "--subject", "", "--for", "1h"],
        "--subject: '' can't be"
      ),
      (
        ["token", "make", "--key", "k", "--key-id", "i", "--subject", "s", "--for", "0"],
        "--for is too short"
      ),
      (
        [
          "token", "make", "--key", "k", "--key-id", "i", "--subject", "s", "--for", "1h", "--publish",
          "a..b",
        ], "--publish: \"a..b\" isn't"
      ),
      (["token", "make"], "--key is missing"),
      (["token", "show", "a.b.c", "--file", "f"], "--file and TOKEN exclude each other"),
      (["token", "key"], "--output is missing"),
      (
        ["token", "key", "--output", "k", "--algorithm", "es256"],
        "--algorithm: there is no 'es256'; did you mean 'rs256'?"
      ),
      (
        ["token", "key", "--output", "k", "--algorithm", "hs256", "--public", "p"],
        "--public: a secret has no public key"
      ),
    ])
  func refusals(arguments: [String], beginning: String) {
    do {
      _ = try command(arguments)
      Issue.record("taken")
    } catch {
      #expect(error.description.hasPrefix(beginning), "\(error)")
    }
  }

  @Test(
    "a password has some length, and can be typed",
    arguments: [
      ("", "the password is empty"), ("1234567", "the password has 7 characters; use at least 8"),
      ("x", "the password has 1 character; use at least 8"),
      ("12345678\n9", "the password has more than one line"),
      ("12345678\u{7}", "the password has a control character"),
      (String(repeating: "x", count: 1025), "the password is longer than 1024 bytes"),
    ])
  func passwords(password: String, beginning: String) throws {
    do {
      _ = try PasswordInput.checked(password)
      Issue.record("taken")
    } catch {
      #expect(error.message.hasPrefix(beginning), "\(error)")
    }
    #expect(try PasswordInput.checked("größere ") == "größere ")
  }

  @Test("a token that says anything is shown, and steers no terminal")
  func hostileToken() throws {
    let header = #"{"alg":"\u001b[31m","kid":"\u0007k"}"#
    let claims = #"{"sub":"s","exp":9999999999999,"nbf":-9999999999999,"aud":["\n"],"x":"\u001b\u0085"}"#
    let token = try #require(
      NewToken.text(
        header: Array(header.utf8), claims: Array(claims.utf8), .secret(Array(repeating: 1, count: 32))))
    let inspection = try TokenInspection(token)
    for now in [Int64(0), 1_800_000_000_000, 9_007_199_254_740_991] {
      let table = TokenText.table(inspection, nil, now: now)
      #expect(!table.unicodeScalars.contains { $0 != "\n" && $0.properties.generalCategory == .control })
      #expect(TokenText.json(inspection, .wrong, now: now).unicodeScalars.count { $0 == "\n" } == 1)
    }
  }
}
