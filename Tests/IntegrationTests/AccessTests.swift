import Foundation
import SluiceAccess
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

/// Authentication by the broker's process, from its files.
@Suite(.onItsOwnThread) struct AccessTests {
  private let directory: TemporaryDirectory
  private let keys: TemporaryDirectory
  private let secret = Array("0123456789abcdef0123456789abcdef".utf8)

  init() throws {
    directory = try TemporaryDirectory()
    keys = try TemporaryDirectory()
  }

  private func write(_ name: String, _ text: String) throws {
    let path = directory.file(name)
    try text.write(toFile: path, atomically: true, encoding: .utf8)
    chmod(path, 0o600)
  }

  private func hash(_ password: String) throws -> String {
    try #require(PasswordHash(of: password, cost: .init(logN: 4, r: 1, p: 1))).text
  }

  private func broker() throws -> BrokerProcess {
    try BrokerProcess(
      "--users", directory.file("users"), "--permissions", directory.file("permissions"), "--token-keys",
      keys.path)
  }

  private func hello(_ credentials: Credentials, to broker: BrokerProcess) throws -> RawClient {
    let client = try broker.connect()
    try client.send(
      Hello(versions: 1...1, maximumFrame: 1 << 20, keepalive: 0, name: "test", credentials: credentials),
      stream: 0)
    return client
  }

  private func identity(_ credentials: Credentials, at broker: BrokerProcess) throws -> String {
    try hello(credentials, to: broker).expect(Welcome.self, stream: 0).identity
  }

  private func refusal(_ credentials: Credentials, at broker: BrokerProcess) throws -> ErrorCode {
    try hello(credentials, to: broker).expect(Fault.self, stream: 0).code
  }

  private func token(for time: Int64, now: Int64) throws -> Credentials {
    .token(
      try NewToken(subject: "shop", keyID: "k", issued: now, expires: now + time).signed(
        with: .secret(secret)))
  }

  @Test func usersAndTokensAreLetInAndNobodyElse() throws {
    try write("users", "alice:\(hash("correct horse"))\n")
    try write("permissions", "alice all >\n")
    try "0123456789abcdef0123456789abcdef\n".write(
      toFile: keys.file("k.secret"), atomically: true, encoding: .utf8)
    let broker = try broker()
    #expect(try identity(.password("correct horse", user: "alice"), at: broker) == "alice")
    #expect(try refusal(.password("correct hose", user: "alice"), at: broker) == .authenticationFailed)
    #expect(try refusal(.none, at: broker) == .authenticationRequired)
    let now = Int64(Date().timeIntervalSince1970 * 1000)
    #expect(try identity(token(for: 3_600_000, now: now), at: broker) == "shop")
    #expect(try refusal(token(for: -3_600_000, now: now), at: broker) == .credentialsExpired)
  }

  @Test func theToolProvesWhoItIsAndMayDoWhatTheFilesSay() throws {
    let tool = try BuiltProduct.path("sluice")
    func run(_ arguments: String..., input: String = "") throws -> ChildProcess {
      let process = try ChildProcess(tool, arguments, input: .bytes(Array(input.utf8)))
      _ = try process.waitForExit()
      return process
    }
    try write("password", "correct horse\n")
    let users = directory.file("users")
    #expect(
      try run("user", "add", "alice", "--file", users, "--password-file", directory.file("password"))
        .currentExit
        == .code(0))
    let (pair, token) = (directory.file("pair"), directory.file("token"))
    #expect(
      try run("token", "key", "--output", pair, "--public", keys.file("2026.pem")).currentExit == .code(0))
    let make = [
      "token", "make", "--key", pair, "--key-id", "2026", "--subject", "shop", "--for", "1h", "--output",
      token,
    ]
    let made = try ChildProcess(tool, make + ["--publish", "orders.>", "--create", "orders.>"])
    #expect(try made.waitForExit() == .code(0), "\(made.messages)")
    try write("permissions", "alice subscribe,create orders.>\n")
    let broker = try broker()

    func sluice(_ arguments: String..., proof: [String]) throws -> ChildProcess {
      let process = try ChildProcess.sluice(arguments + proof, server: broker.address)
      _ = try process.waitForExit()
      return process
    }
    let alice = ["--user", "alice", "--password-file", directory.file("password")]
    let shop = ["--token-file", token]
    let published = try sluice("pub", "orders.eu", "one", "two", "--complete", proof: shop)
    #expect(published.currentExit == .code(0), "\(published.messages)")
    let received = try sluice("sub", "orders.eu", proof: alice)
    #expect(
      received.currentExit == .code(0) && received.standardOutput.text == "one\ntwo\n", "\(received.messages)"
    )
    for process in [
      try sluice("pub", "orders.us", "x", proof: alice), try sluice("pub", "other", "x", proof: shop),
      try sluice("sub", "orders.eu", proof: shop),
      try sluice("topic", "delete", "orders.eu", "--yes", proof: alice),
    ] {
      #expect(
        process.currentExit == .code(1) && process.standardError.text.contains("may not"),
        "\(process.messages)")
    }
    #expect(try sluice("ping", "--count", "1", proof: []).currentExit == .code(1))
  }

  @Test func filesAreReadAgainOnHangUp() throws {
    try write("users", "alice:\(hash("correct horse"))\nbob:\(hash("battery staple"))\n")
    try write("permissions", "* all >\n")
    let broker = try broker()
    let bob = try hello(.password("battery staple", user: "bob"), to: broker)
    #expect(try bob.expect(Welcome.self, stream: 0).identity == "bob")
    func log(_ text: String) throws {
      try eventually(text) { broker.process.standardError.text.contains(text) }
    }
    // An invalid file changes nothing.
    try write("users", "carol\n")
    broker.process.signal(SIGHUP)
    try log("users, keys and permissions stay unchanged")
    try log("line 1: this isn't NAME:HASH")
    #expect(try identity(.password("correct horse", user: "alice"), at: broker) == "alice")

    try write("users", "alice:\(hash("correct horse"))\ncarol:\(hash("the third one"))\n")
    broker.process.signal(SIGHUP)
    try log("users, keys and permissions were read again")
    #expect(try bob.expect(Fault.self, stream: 0).code == .accessRevoked)
    #expect(try identity(.password("the third one", user: "carol"), at: broker) == "carol")
    #expect(try refusal(.password("battery staple", user: "bob"), at: broker) == .authenticationFailed)
    try broker.requireRunning()
  }

  @Test func anotherPasswordOrKeyEndsWhatTheOldOneOpened() throws {
    try write("users", "alice:\(hash("correct horse"))\nbob:\(hash("battery staple"))\n")
    try write("permissions", "* all >\n")
    let key = keys.file("k.secret")
    try "0123456789abcdef0123456789abcdef".write(toFile: key, atomically: true, encoding: .utf8)
    let broker = try broker()
    let now = Int64(Date().timeIntervalSince1970 * 1000)
    let alice = try hello(.password("correct horse", user: "alice"), to: broker)
    let bob = try hello(.password("battery staple", user: "bob"), to: broker)
    let shop = try hello(token(for: 3_600_000, now: now), to: broker)
    for client in [alice, bob, shop] { _ = try client.expect(Welcome.self, stream: 0) }

    let users = try String(contentsOfFile: directory.file("users"), encoding: .utf8)
    try write("users", "alice:\(hash("correct horse"))\n" + users.split(separator: "\n")[1] + "\n")
    try "fedcba9876543210fedcba9876543210".write(toFile: key, atomically: true, encoding: .utf8)
    broker.process.signal(SIGHUP)
    for client in [alice, shop] { #expect(try client.expect(Fault.self, stream: 0).code == .accessRevoked) }
    try bob.roundTrip()
    #expect(try refusal(token(for: 3_600_000, now: now), at: broker) == .authenticationFailed)
  }

  @Test func whatIsWrongWithAFileKeepsItFromStarting() throws {
    try write("users", "alice:\(hash("correct horse"))\n\nbob:secret\n")
    let users = directory.file("users")
    func refusal(_ arguments: String...) throws -> String {
      let process = try ChildProcess(
        BuiltProduct.path("sluiced"), ["--listen", "127.0.0.1:0", "--admin", "off"] + arguments)
      #expect(try process.waitForExit() == .code(2))
      #expect(process.standardOutput.text == "" && process.standardError.lines.count == 1)
      return process.standardError.text
    }
    #expect(try refusal("--users", users).contains("\(users), line 3: this isn't a hash of a password"))
    #expect(try refusal("--users", directory.file("none")).contains("none: cannot be opened: No such file"))
    try write("users", "")
    chmod(users, 0o666)
    #expect(try refusal("--users", users).contains("every user of this machine may change it"))
  }

  @Test func withoutAskingWhoTheyAreOnlyThisMachineIsServed() throws {
    let arguments = ["--listen", "0.0.0.0:0", "--admin", "off"]
    let process = try ChildProcess(BuiltProduct.path("sluiced"), arguments)
    #expect(try process.waitForExit() == .code(2))
    #expect(process.standardOutput.text == "")
    let message = process.standardError.text
    #expect(
      message.contains("0.0.0.0:0") && message.contains("--users FILE")
        && message.contains("--allow-unauthenticated"))
    let open = try ChildProcess(BuiltProduct.path("sluiced"), arguments + ["--allow-unauthenticated"])
    _ = try open.standardOutput.line(startingWith: "sluiced ready")
    try eventually("a warning") { open.standardError.text.contains("clients don't authenticate") }
    open.signal(SIGTERM)
    #expect(try open.waitForExit() == .code(0))
  }
}
