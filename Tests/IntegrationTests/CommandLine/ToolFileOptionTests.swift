import Glibc
import TestSupport
import Testing

/// Options of commands that work on files, without a broker.
@Suite(.onItsOwnThread) struct ToolFileOptionTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func start(_ arguments: [String], input: ChildProcess.Input = .nothing) throws -> ChildProcess {
    // None of these commands connects to this server.
    try ChildProcess(
      BuiltProduct.path("sluice"), arguments, environment: ["SLUICE_SERVER": "nowhere"], input: input)
  }

  @discardableResult
  private func run(
    _ arguments: String..., input: ChildProcess.Input = .nothing, code: Int32 = 0,
    at location: SourceLocation = #_sourceLocation
  ) throws -> ChildProcess {
    let process = try start(arguments, input: input)
    let exit = try process.waitForExit()
    #expect(exit == .code(code), "\(arguments): \(process.messages)", sourceLocation: location)
    return process
  }

  // MARK: Users

  @Test func thePasswordIsTheOneOfTheFile() throws {
    let users = directory.file("users")
    for (name, password) in [("first", "correct horse"), ("second", "battery staple\r\nand more")] {
      try writeFile(directory.file(name), Array("\(password)\n".utf8))
    }
    try run("user", "add", "alice", "--file", users, "--password-file", directory.file("first"))
    try writeFile(directory.file("permissions"), Array("* all >\n".utf8))
    let broker = try BrokerProcess("--users", users, "--permissions", directory.file("permissions"))
    func list(_ password: String, code: Int32) throws {
      try broker.run(
        "topic", "list", "--user", "alice", "--password-file", directory.file(password), code: code)
    }
    try list("first", code: 0)
    // A password is a single line.
    try run("user", "passwd", "alice", "--file", users, "--password-file", directory.file("second"), code: 1)
    try writeFile(directory.file("second"), Array("battery staple".utf8))
    try run("user", "passwd", "alice", "--file", users, "--password-file", directory.file("second"))
    broker.process.signal(SIGHUP)
    try eventually("the file is read again") {
      broker.process.standardError.text.contains("users, keys and permissions were read again")
    }
    try list("first", code: 1)
    try list("second", code: 0)
    try run("user", "remove", "alice", "--file", users)
    #expect(try run("user", "list", "--file", users, "--json").standardOutput.text == "")
  }

  // MARK: Tokens

  /// A token made with these additional options.
  private func token(_ options: String...) throws -> [String: Any] {
    let made = try start(
      ["token", "make", "--key", directory.file("k.pem"), "--key-id", "k", "--subject", "shop"] + options)
    #expect(try made.waitForExit() == .code(0), "\(made.messages)")
    return try object(
      try run("token", "show", "--json", made.standardOutput.text.filter { $0 != "\n" }).standardOutput.text)
  }

  @Test func keysLieWhereTheyAreWanted() throws {
    try run("token", "key", "--output", directory.file("a"))
    try run("token", "key", "--output", directory.file("b"), "--public", directory.file("c"))
    for file in ["a", "a.pub", "b", "c"] { #expect(access(directory.file(file), R_OK) == 0, "\(file)") }
    #expect(access(directory.file("b.pub"), F_OK) != 0)
    try run("token", "key", "--algorithm", "hs256", "--output", directory.file("d"))
    #expect(access(directory.file("d.pub"), F_OK) != 0)
    for wrong in [[], ["--output", ""], ["--output", "x", "--algorithm", "hs256", "--public", "y"]] {
      let process = try start(["token", "key"] + wrong)
      #expect(try process.waitForExit() == .code(2), "\(wrong)")
    }
  }

  @Test func aTokenSaysWhatItWasToldAndNoMore() throws {
    try run("token", "key", "--output", directory.file("k.pem"))
    let plain = try token("--for", "1h")
    #expect(plain["subject"] as? String == "shop" && plain["expired"] as? Bool == false, "\(plain)")
    for right in ["publish", "subscribe", "create", "admin"] {
      let limited = try token("--for", "1h", "--\(right)", "a.>", "--\(right)", "b")
      let claims = try #require(limited["claims"] as? [String: Any], "\(limited)")
      #expect(claims["sluice"] as? [String: [String]] == [right: ["a.>", "b"]], "\(claims)")
    }
    #expect((plain["claims"] as? [String: Any])?["sluice"] == nil, "\(plain)")
    for option in ["--key", "--key-id", "--subject", "--for"] {
      var arguments = ["--key", "k", "--key-id", "k", "--subject", "s", "--for", "1h"]
      arguments.removeSubrange(arguments.firstIndex(of: option)!...arguments.firstIndex(of: option)! + 1)
      let process = try start(["token", "make"] + arguments)
      #expect(try process.waitForExit() == .code(2), "\(option)")
      #expect(process.standardError.text.hasPrefix("sluice: \(option) "), "\(process.messages)")
    }
  }

  @Test func aTokenEndsWhenItWasToldTo() throws {
    try run("token", "key", "--output", directory.file("k.pem"))
    func shown(_ file: String) throws -> ChildProcess {
      let process = try start(
        ["token", "show", "--file", directory.file(file), "--key", directory.file("k.pem.pub")])
      try process.waitForExit()
      return process
    }
    for (file, time) in [("long", "1h"), ("short", "1s")] {
      try run(
        "token", "make", "--key", directory.file("k.pem"), "--key-id", "k", "--subject", "s", "--for", time,
        "--output", directory.file(file))
    }
    try eventually("the short one ends", every: 0.1) { try shown("short").currentExit == .code(1) }
    let over = try shown("short")
    let rows = over.standardOutput.lines
    #expect(rows.contains { $0.hasPrefix("signature ") && $0.hasSuffix(" right") }, "\(rows)")
    #expect(rows.contains { $0.hasPrefix("expires ") && $0.hasSuffix(" ago") }, "\(rows)")
    #expect(over.standardError.text.contains("a broker with this key would refuse the token"))
    #expect(try shown("long").currentExit == .code(0))
  }

  // MARK: Stores

  @Test func workThatTakesLongSaysHowFarItIs() throws {
    let data = directory.file("data")
    defer { for store in [data, data + ".copy"] { removeStore(store) } }
    let broker = try BrokerProcess("--data", data)
    try broker.run("topic", "create", "t", "--storage", "durable")
    // The first one is less than a pipe's buffer.
    for size in [20_000, 100_000, 100_000] {
      try broker.run(
        "pub", "t", "--ack", "durable", "--quiet", "--delimiter", "none",
        input: .bytes([UInt8](repeating: 0x61, count: size)))
    }
    #expect(try broker.terminate() == .code(0))
    #expect(try run("store", "compact", data, "--quiet").standardError.text == "")
    let topic = try object(try run("store", "stat", data, "t", "--json").standardOutput.text)
    #expect(topic["topic"] as? String == "t" && topic["records"] as? Int == 3, "\(topic)")
    let export = try run("store", "export", data, "--quiet")
    #expect(export.standardError.text == "")
    let bytes = export.standardOutput.bytes

    // The export's reader starts late.
    let reader = try HeldCommand()
    let sluice = try BuiltProduct.path("sluice")
    let pipe = try ChildProcess(
      "/bin/sh",
      ["-c", "'\(sluice)' store export '\(data)' --progress --quiet | { \(reader.text); cat; }"])
    let far = try pipe.standardError.line(startingWith: "sluice: ")
    #expect(far.contains(" of about "), "\(far)")
    reader.letGo()
    #expect(try pipe.waitForExit() == .code(0))
    #expect(pipe.standardOutput.bytes == bytes)

    let process = try start(["store", "import", data + ".copy", "--progress", "--quiet"], input: .open)
    try process.write(Array(bytes.dropLast(50)))
    // The rest of the input arrives late.
    let line = try process.standardError.line(startingWith: "sluice: ")
    #expect(line.hasSuffix(" KiB"), "\(line)")
    try process.write(Array(bytes.suffix(50)))
    process.closeInput()
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    #expect(process.standardError.lines.allSatisfy { $0.hasSuffix(" KiB") }, "\(process.messages)")
    // An import starts its own epoch; only that differs.
    let verified = try [data, data + ".copy"].map { try run("store", "verify", $0).standardOutput.text }
    #expect(verified[0] == verified[1] && verified[0].contains("no damage"))
  }
}
