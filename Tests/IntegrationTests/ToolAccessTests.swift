import Foundation
import TestSupport
import Testing

/// Users, keys and tokens from the command line, with real processes.
@Suite(.onItsOwnThread) struct ToolAccessTests {
  private let directory: TemporaryDirectory
  private var users: String { directory.file("users") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func start(_ arguments: [String], input: ChildProcess.Input = .nothing) throws -> ChildProcess {
    try ChildProcess(BuiltProduct.path("sluice"), arguments, input: input)
  }

  private func run(
    _ arguments: String..., input: String? = nil, code: Int32 = 0,
    at location: SourceLocation = #_sourceLocation
  ) throws -> (output: String, errors: String) {
    let process = try start(arguments, input: input.map { .bytes(Array($0.utf8)) } ?? .nothing)
    let exit = try process.waitForExit()
    #expect(exit == .code(code), "\(arguments): \(process.messages)", sourceLocation: location)
    return (process.standardOutput.text, process.standardError.text)
  }

  private func text(_ name: String) throws -> String {
    try String(contentsOfFile: directory.file(name), encoding: .utf8)
  }

  private func mode(_ name: String) throws -> Int {
    var status = stat()
    #expect(stat(directory.file(name), &status) == 0)
    return Int(status.st_mode & 0o777)
  }

  @Test func theRuleThatDecidesIsNamed() throws {
    let permissions = directory.file("permissions")
    try writeFile(
      permissions,
      Array("# Devices\n* publish devices.%u.%c.>\nalice subscribe orders.>\nguest subscribe news\n".utf8))
    _ = try run("user", "add", "alice", "--file", users, input: "secret words\n")
    func can(_ arguments: String..., code: Int32) throws -> String {
      let process = try start(["user", "can"] + arguments + ["--permissions", permissions])
      #expect(try process.waitForExit() == .code(code), "\(process.messages)")
      return process.standardOutput.text
    }
    #expect(
      try can("alice", "publish", "devices.alice.d1.x", "--client-id", "d1", code: 0)
        == "yes: alice as client d1 may publish to devices.alice.d1.x, by line 2 of \(permissions): * publish devices.%u.%c.>, which is devices.alice.d1.> here\n"
    )
    #expect(
      try can("alice", "publish", "orders.x", code: 1)
        == "no: alice may not publish to orders.x, as no rule in \(permissions) allows it\n"
        + "line 3 of \(permissions): alice subscribe orders.> selects the topic, but doesn't allow to publish\n"
        + "line 2 of \(permissions): * publish devices.%u.%c.> allows nothing here: %c is the client's identifier; state one with --client-id\n"
    )
    #expect(try can("alice", "subscribe", "orders.x", "--file", users, code: 0).hasPrefix("yes: "))
    #expect(try can("bob", "publish", "x", "--file", users, code: 1).contains("there is no user bob"))
    #expect(
      try can("guest", "subscribe", "news", "--anonymous", code: 0).hasPrefix("yes: an anonymous client"))
  }

  // MARK: Users

  @Test func usersComeAndGo() throws {
    let made = try run("user", "add", "alice", "--file", users, input: "correct horse\n")
    #expect(made.output == "" && made.errors == "sluice: created \(users) with user alice\n")
    #expect(try mode("users") == 0o600)
    let first = try text("users")
    #expect(first.hasPrefix("alice:$scrypt$ln=15,r=8,p=1$") && !first.contains("horse"))
    try "battery staple\r\n".write(toFile: directory.file("password"), atomically: true, encoding: .utf8)
    _ = try run("user", "add", "bob", "--file", users, "--password-file", directory.file("password"))
    #expect(
      try run("user", "list", "--file", users).output
        == "USER   HASH\nalice  scrypt ln=15,r=8,p=1\nbob    scrypt ln=15,r=8,p=1\n")
    let object = "{\"user\":\"alice\",\"hash\":\"scrypt ln=15,r=8,p=1\",\"weak\":false}\n"
    #expect(try run("user", "list", "--file", users, "--json").output.hasPrefix(object))

    let twice = try run("user", "add", "alice", "--file", users, input: "correct horse\n", code: 1)
    #expect(twice.errors.contains("user alice exists in \(users)"))
    _ = try run("user", "passwd", "alice", "--file", users, input: "correct horse")
    #expect(try text("users").hasPrefix("alice:$scrypt$") && !text("users").hasPrefix(first.dropLast()))
    #expect(
      try run("user", "passwd", "alic", "--file", users, code: 1).errors.contains("did you mean alice?"))
    _ = try run("user", "remove", "alice", "--file", users)
    #expect(
      try run("user", "remove", "alice", "--file", users, code: 1).errors.contains(
        "there is no user alice in"))
    #expect(try text("users").hasPrefix("bob:"))
  }

  @Test func passwordsThatAreNoneChangeNothing() throws {
    for (password, message) in [
      ("", "is empty"), ("\n", "is empty"), ("short\n", "has 5 characters"),
      ("two lines\nof it\n", "more than one line"),
    ] {
      #expect(
        try run("user", "add", "alice", "--file", users, input: password, code: 1).errors.contains(message))
    }
    let long = String(repeating: "x", count: 100_000)
    #expect(
      try run("user", "add", "alice", "--file", users, input: long, code: 1).errors.contains(
        "longer than 1024"))
    #expect(access(users, F_OK) != 0)
    #expect(try run("user", "list", "--file", users, code: 1).errors.contains("No such file or directory"))
    #expect(
      try run("user", "add", "a:b", "--file", users, input: "correct horse", code: 2).errors.contains(
        "a colon"))
  }

  @Test func aTerminalIsAskedTwiceAndShowsNothing() throws {
    let sluice = try BuiltProduct.path("sluice")
    let terminal = try ChildProcess(
      "/usr/bin/script", ["-qec", "\(sluice) user add alice --file \(users)", "/dev/null"], input: .open)
    func answer(_ question: String, _ text: String) throws {
      try eventually(question) { terminal.standardOutput.text.contains(question) }
      try terminal.write(Array("\(text)\n".utf8))
    }
    try answer("Password for alice: ", "correct horse")
    try answer("Repeat the password: ", "correct horse")
    #expect(try terminal.waitForExit() == .code(0))
    #expect(!terminal.standardOutput.text.contains("horse"))
    #expect(try text("users").hasPrefix("alice:$scrypt$"))
  }

  @Test func manyAtOnceLoseNothing() throws {
    let processes = try (0..<6).map {
      try start(["user", "add", "user-\($0)", "--file", users], input: .bytes(Array("correct horse".utf8)))
    }
    for process in processes { #expect(try process.waitForExit() == .code(0), "\(process.messages)") }
    #expect(try text("users").split(separator: "\n").count == 6)
  }

  // MARK: Tokens

  private func openssl(_ arguments: String...) throws -> ChildProcess.Exit {
    try ChildProcess("/usr/bin/openssl", arguments).waitForExit()
  }

  /// Verifies a token with `openssl`.
  private func verify(_ token: String, with key: String) throws -> ChildProcess.Exit {
    let dot = try #require(token.lastIndex(of: "."))
    var signature = String(token[token.index(after: dot)...]).replacingOccurrences(of: "-", with: "+")
      .replacingOccurrences(of: "_", with: "/")
    while signature.count % 4 != 0 { signature += "=" }
    try #require(Data(base64Encoded: signature)).write(to: URL(filePath: directory.file("signature")))
    try Data(token[..<dot].utf8).write(to: URL(filePath: directory.file("signed")))
    let files = ["-sigfile", directory.file("signature"), "-in", directory.file("signed")]
    let isRSA = try text("pair").contains("RSA") || text("pair").count > 500
    return try ChildProcess(
      "/usr/bin/openssl",
      ["pkeyutl", "-verify", "-pubin", "-inkey", key, "-rawin"] + (isRSA ? ["-digest", "sha256"] : []) + files
    ).waitForExit()
  }

  @Test(arguments: ["ed25519", "rs256"]) func tokensAreWhatOpenSSLVerifies(algorithm: String) throws {
    let (key, publicKey) = (directory.file("pair"), directory.file("pair.pub"))
    _ = try run("token", "key", "--algorithm", algorithm, "--output", key)
    #expect(try mode("pair") == 0o600)
    #expect(try text("pair.pub").hasPrefix("-----BEGIN PUBLIC KEY-----"))
    #expect(try openssl("pkey", "-in", key, "-noout") == .code(0))
    let made = try run(
      "token", "make", "--key", key, "--key-id", "k", "--subject", "shop", "--for", "1h", "--publish",
      "orders.>")
    #expect(made.errors == "" && made.output.last == "\n")
    let token = String(made.output.dropLast())
    #expect(token.split(separator: ".").count == 3)
    #expect(try verify(token, with: publicKey) == .code(0))
    let other =
      String(token.prefix(20)) + (token.dropFirst(20).first == "A" ? "B" : "A") + token.dropFirst(21)
    #expect(try verify(other, with: publicKey) != .code(0))
    for each in [key, publicKey] {
      let shown = try run("token", "show", token, "--key", each).output
      #expect(
        shown.contains("signature  right") && shown.contains("subject    shop")
          && shown.contains("publish    orders.>"))
    }
    let again = try run("token", "key", "--algorithm", algorithm, "--output", key, code: 1)
    #expect(again.errors.contains("\(key): exists already"))
  }

  @Test func aSecretSignsAndVerifies() throws {
    let key = directory.file("secret")
    _ = try run("token", "key", "--algorithm", "hs256", "--output", key)
    #expect(try mode("secret") == 0o600)
    let token = directory.file("token")
    _ = try run(
      "token", "make", "--key", key, "--key-id", "k", "--subject", "shop", "--for", "1h", "--output", token)
    #expect(try mode("token") == 0o600)
    let shown = try run("token", "show", "--file", token, "--key", key, "--json").output
    #expect(
      shown.contains("\"verified\":true") && shown.contains("\"expired\":false")
        && shown.contains("\"alg\":\"HS256\""))
    #expect(try !shown.contains(text("secret").dropLast()))
    #expect(try run("token", "show", input: text("token")).output.contains("not verified"))

    // Computed by another program, as the standard requires.
    let parts = try text("token").dropLast().split(separator: ".")
    let mac = try ChildProcess(
      "/usr/bin/openssl",
      ["dgst", "-sha256", "-mac", "HMAC", "-macopt", "key:\(try text("secret").dropLast())", "-binary"],
      input: .bytes(Array("\(parts[0]).\(parts[1])".utf8)))
    #expect(try mac.waitForExit() == .code(0))
    let signature = Data(mac.standardOutput.bytes).base64EncodedString().replacingOccurrences(
      of: "+", with: "-"
    )
    .replacingOccurrences(of: "/", with: "_").replacingOccurrences(of: "=", with: "")
    #expect(signature == parts[2])

    let other = directory.file("other")
    _ = try run("token", "key", "--algorithm", "hs256", "--output", other)
    let wrong = try run("token", "show", "--file", token, "--key", other, code: 1)
    #expect(
      wrong.output.contains("WRONG") && wrong.errors.contains("the signature isn't the key's"))
    chmod(key, 0o644)
    let warned = try run("token", "make", "--key", key, "--key-id", "k", "--subject", "s", "--for", "1h")
    #expect(warned.errors.contains("every user of this machine can read \(key)"))
    chmod(key, 0o666)
    let refused = try run(
      "token", "make", "--key", key, "--key-id", "k", "--subject", "s", "--for", "1h", code: 1)
    #expect(refused.errors.contains("every user of this machine may change it"))
  }

  @Test func whatIsNoTokenIsSaid() throws {
    #expect(try run("token", "show", "a.b", code: 1).errors.contains("isn't three parts"))
    #expect(
      try run("token", "show", input: String(repeating: "x", count: 70_000), code: 1).errors.contains(
        "the limit is 4096"))
    #expect(
      try run("token", "show", "--file", directory.file("none"), code: 1).errors.contains("cannot open"))
  }
}
