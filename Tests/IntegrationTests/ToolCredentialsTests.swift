import Foundation
import SluiceAccess
import SluiceTLS
import TestSupport
import Testing

/// The tool with a broker that requires authentication.
@Suite(.onItsOwnThread) struct ToolCredentialsTests {
  private let directory: TemporaryDirectory
  private let keys: TemporaryDirectory
  private let broker: BrokerProcess
  private static let secret = "0123456789abcdef0123456789abcdef"

  init() throws {
    directory = try TemporaryDirectory()
    keys = try TemporaryDirectory()
    var users = ""
    for name in ["alice", "bob"] {
      users += try
        "\(name):\(#require(PasswordHash(of: "\(name)'s", cost: .init(logN: 4, r: 1, p: 1))).text)\n"
      try Self.write(directory.file("\(name).password"), "\(name)'s\n")
    }
    try Self.write(directory.file("users"), users)
    try Self.write(directory.file("permissions"), "alice all >\nbob subscribe news.>\n")
    try Self.write(keys.file("k.secret"), "\(Self.secret)\n")
    broker = try BrokerProcess(
      "--users", directory.file("users"), "--permissions", directory.file("permissions"), "--token-keys",
      keys.path)
  }

  private static func write(_ path: String, _ text: String) throws {
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    chmod(path, 0o600)
  }

  private func options(_ name: String) -> [String] {
    ["--user", name, "--password-file", directory.file("\(name).password")]
  }

  private func start(_ name: String?, _ arguments: [String], environment: [String: String] = [:]) throws
    -> ChildProcess
  {
    try ChildProcess(
      BuiltProduct.path("sluice"), arguments + (name.map { options($0) } ?? []),
      environment: ChildProcess.environment(server: broker.address).merging(environment) { $1 })
  }

  private func run(
    _ name: String?, _ arguments: String..., environment: [String: String] = [:]
  ) throws -> (code: ChildProcess.Exit, output: String, errors: String) {
    let process = try start(name, arguments, environment: environment)
    let code = try process.waitForExit()
    return (code, process.standardOutput.text, process.standardError.text)
  }

  @Test func whoIsKnownIsServed() throws {
    #expect(try run("alice", "pub", "news.eu", "hello", "--quiet").code == .code(0))
    #expect(try run("bob", "sub", "news.eu", "--until-live").output == "hello\n")
    let environment = ["SLUICE_USER": "bob", "SLUICE_PASSWORD_FILE": directory.file("bob.password")]
    #expect(try run(nil, "sub", "news.eu", "--until-live", environment: environment).output == "hello\n")
    // Credentials on the command line replace those in the environment.
    #expect(try run("alice", "topic", "list", environment: ["SLUICE_TOKEN_FILE": "/none"]).code == .code(0))
  }

  @Test func whoIsntIsToldSo() throws {
    let nobody = try run(nil, "topic", "list")
    #expect(nobody.code == .code(1) && nobody.errors.contains("requires credentials"))
    try Self.write(directory.file("bob.password"), "alice's\n")
    for arguments in [["topic", "list"], ["pub", "news.eu", "x"], ["sub", "news.eu", "--reconnect"]] {
      let process = try start("bob", arguments)
      #expect(try process.waitForExit() == .code(1))
      #expect(
        process.standardError.lines.count == 1 && process.standardError.text.contains("the client is refused")
      )
    }
  }

  @Test func whatIsntAllowedFails() throws {
    #expect(try run("alice", "pub", "news.eu", "a", "--quiet").code == .code(0))
    #expect(try run("alice", "pub", "orders", "b", "--quiet").code == .code(0))
    for topic in ["orders", "missing"] {
      for command in [
        ["pub", topic, "x"], ["sub", topic], ["topic", "show", topic], ["topic", "delete", topic, "--yes"],
      ] {
        let process = try start("bob", command)
        #expect(try process.waitForExit() == .code(1), "\(command)")
        #expect(process.standardError.text.contains("topic \(topic)"), "\(command)")
      }
    }
    let list = try run("bob", "topic", "list", "--json").output
    #expect(list.contains("news.eu") && !list.contains("orders"))
    #expect(try run("bob", "sub", ">", "--until-live", "--format", "{topic}").output == "news.eu\n")
  }

  @Test func whatIsTakenAwayEndsAtOnce() throws {
    #expect(try run("alice", "pub", "news.eu", "a", "--quiet").code == .code(0))
    let subscriber = try start("bob", ["sub", "news.eu"])
    _ = try subscriber.standardOutput.line(startingWith: "a")
    try Self.write(directory.file("permissions"), "alice all >\n")
    broker.process.signal(SIGHUP)
    #expect(try subscriber.waitForExit() == .code(1))
    #expect(subscriber.standardError.text.contains("may not subscribe to topic news.eu"))
  }

  @Test func theFileOfATokenIsReadAgainBeforeItExpires() throws {
    func issue(for time: Int64) throws {
      let now = Int64(Date().timeIntervalSince1970 * 1000)
      let token = try NewToken(subject: "alice", keyID: "k", issued: now, expires: now + time)
        .signed(with: .secret(Array(Self.secret.utf8)))
      try Self.write(directory.file("token"), "\(token)\n")
    }
    try issue(for: 4_000)
    #expect(try run("alice", "topic", "create", "news.eu").code == .code(0))
    let subscriber = try start(nil, ["sub", "news.eu", "--token-file", directory.file("token")])
    try eventually("a subscription") {
      try run("alice", "topic", "list", "--json").output.contains(#""subscribers":1"#)
    }
    try issue(for: 3_600_000)
    sleep(5)
    #expect(try run("alice", "pub", "news.eu", "later", "--quiet").code == .code(0))
    _ = try subscriber.standardOutput.line(startingWith: "later")
    subscriber.signal(SIGINT)
    #expect(try subscriber.waitForExit() == .code(130))
  }

  @Test(arguments: [
    (["--user", "alice"], "--user needs --password-file"),
    (["--password-file", "/none"], "--password-file needs --user"),
    (["--user", "alice", "--password-file", "/none"], "/none can't be read: No such file or directory"),
    (["--token-file", "/dev/null"], "the first line of /dev/null is empty"),
    (["--token-file", "/dev/null", "--user", "alice"], "exclude each other"),
  ])
  func whatCantBeUsedIsWrongUsage(options: [String], message: String) throws {
    let process = try start(nil, ["topic", "list"] + options)
    #expect(try process.waitForExit() == .code(2))
    #expect(process.standardError.text.contains(message))
  }
}
