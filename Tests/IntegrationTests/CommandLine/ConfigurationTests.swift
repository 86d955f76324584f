import Glibc
import SluiceWire
import TestSupport
import Testing

/// `sluiced` and its configuration file.
@Suite(.onItsOwnThread) struct ConfigurationTests {
  private let directory: TemporaryDirectory
  private var file: String { directory.file("sluiced.toml") }

  init() throws {
    directory = try TemporaryDirectory()
  }

  private func write(_ text: String) throws {
    try writeFile(file, Array(text.utf8))
  }

  private func sluiced(_ arguments: [String], environment: [String: String] = [:]) throws -> ChildProcess {
    try ChildProcess(BuiltProduct.path("sluiced"), arguments, environment: environment)
  }

  /// The addresses on which a broker listens, as printed with its ready line.
  private func addresses(of process: ChildProcess) throws -> [String] {
    _ = try process.standardOutput.line(startingWith: "sluiced ready")
    let listening = "sluiced listening on "
    return process.standardOutput.lines.filter { $0.hasPrefix(listening) }.map {
      String($0.dropFirst(listening.count))
    }
  }

  private func waitForLog(_ text: String, of broker: BrokerProcess, count: Int = 1) throws {
    try eventually("'\(text)' in the log: \(broker.process.messages)") {
      broker.process.standardError.lines.count { $0.contains(text) } == count
    }
  }

  // MARK: Checking

  @Test func aFileThatIsInOrderIsSaidToBe() throws {
    try write("listen = [\"127.0.0.1:0\"]\n[limits]\nmax-topics = 5\n")
    let process = try sluiced(["--check-config", file])
    #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    #expect(process.standardOutput.text == "\(file): nothing is wrong\n")
    #expect(process.standardError.text == "")
  }

  @Test func everyMistakeIsALineWithItsPlace() throws {
    try write("lisen = 1\n[limits]\nmax-topics = \"many\"\n[log]\nlevel = \"wrning\"\n")
    for arguments in [["--check-config", file], ["--config", file]] {
      let process = try sluiced(arguments)
      #expect(try process.waitForExit() == .code(2))
      #expect(process.standardOutput.text == "")
      #expect(
        process.standardError.lines == [
          "sluiced: \(file):1:1: lisen: there is no such key; did you mean listen?",
          "sluiced: \(file):3:1: limits.max-topics: is a text, and must be a whole number, like 100000",
          "sluiced: \(file):5:1: log.level: there is no 'wrning'; did you mean 'warning'?",
        ])
    }
  }

  @Test func filesThatItNamesAreLookedAtAsWell() throws {
    try write("[access]\nusers = \"users\"\n")
    let process = try sluiced(["--check-config", file])
    #expect(try process.waitForExit() == .code(2))
    #expect(process.standardError.lines.count == 1)
    #expect(
      process.standardError.text.hasPrefix(
        "sluiced: \(file):2:1: access.users: \(directory.file("users")): "), "\(process.messages)")
    try writeFile(directory.file("users"), [])
    chmod(directory.file("users"), 0o600)
    #expect(try sluiced(["--check-config", file]).waitForExit() == .code(0))
  }

  @Test func whatIsNoFileIsToldInALine() throws {
    for arguments in [["--check-config", file], ["--config", file], ["--config", directory.path]] {
      let process = try sluiced(arguments)
      #expect(try process.waitForExit() == .code(2))
      #expect(process.standardOutput.text == "" && process.standardError.lines.count == 1)
      #expect(
        process.standardError.text.hasPrefix("sluiced: \(arguments[1]): cannot be "), "\(process.messages)")
    }
    let process = try sluiced(["--config", file, "--check-config", file])
    #expect(try process.waitForExit() == .code(2))
    #expect(process.standardError.text.contains("exclude each other"))
  }

  // MARK: Starting

  @Test func optionsStandBeforeTheEnvironmentAndThatBeforeTheFile() throws {
    try write(
      """
      listen = ["127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"]
      [topics]
      replay-records = 1
      buffer-records = 1
      buffer-bytes = "1MiB"
      """)
    let environment = [
      "SLUICED_CONFIG": file, "SLUICED_REPLAY_RECORDS": "2", "SLUICED_BUFFER_RECORDS": "2",
    ]
    let process = try sluiced(["--replay-records", "3", "--admin", "off"], environment: environment)
    let addresses = try addresses(of: process)
    #expect(addresses.count == 3)
    let client = try RawClient(addresses[0])
    try client.shakeHands()
    try client.create("t")
    let settings = try client.show("t").settings
    #expect(settings.replayRecords == 3)
    #expect(settings.bufferRecords == 2)
    #expect(settings.bufferBytes == 1 << 20)
    process.signal(SIGTERM)
    #expect(try process.waitForExit() == .code(0))
  }

  @Test func namesInItAreRelativeToIt() throws {
    try write("listen = [\"unix:broker.sock\"]\n")
    let process = try sluiced(["--config", file, "--admin", "off"])
    #expect(try addresses(of: process) == ["unix:\(directory.file("broker.sock"))"])
    process.signal(SIGTERM)
    #expect(try process.waitForExit() == .code(0))
  }

  @Test func theReferenceFileStartsABrokerLikeNone() throws {
    // This file is Tests/IntegrationTests/CommandLine/ConfigurationTests.swift.
    let repository = #filePath.split(separator: "/").dropLast(4).joined(separator: "/")
    let broker = try BrokerProcess("--config", "/\(repository)/Docker/sluiced.toml")
    try broker.client().roundTrip()
    #expect(try broker.terminate() == .code(0))
    // Its messages are those of a broker without a file.
    #expect(!broker.process.standardError.text.contains("sluiced.toml"))
  }

  // MARK: Reading it again

  @Test func newTopicsAreAsTheRereadFileSays() throws {
    try write("[topics]\nreplay-records = 1\n[[rule]]\npattern = \"jobs.>\"\nflow = \"lossless\"\n")
    let broker = try BrokerProcess("--config", file)
    let client = try broker.client()
    try client.create("a")
    try client.create("jobs.a")
    #expect(try client.show("a").settings.replayRecords == 1)
    #expect(try client.show("jobs.a").settings.flow == .lossless)

    try write(
      """
      log.level = "warning"
      limits.max-topics = 5
      [topics]
      replay-records = 2
      [[rule]]
      pattern = "jobs.>"
      flow = "fastest"
      """)
    broker.process.signal(SIGHUP)
    try waitForLog(
      "a changed setting needs a restart setting=limits.max-topics now=100000 wanted=5", of: broker)
    try eventually("other topics") {
      let name = "b\(Int.random(in: 0..<1_000_000))"
      try client.create(name)
      return try client.show(name).settings.replayRecords == 2
    }
    try client.create("jobs.b")
    #expect(try client.show("jobs.b").settings.flow == .fastest)
    // Existing topics keep their settings, and connections stay open.
    #expect(try client.show("jobs.a").settings.flow == .lossless)
    try client.roundTrip()
    // From the log's new level on, this isn't said any more.
    #expect(!broker.process.standardError.text.contains("the configuration was read again"))

    try write("log.level = \"info\"\n[topics]\nreplay-records = \"few\"\n")
    broker.process.signal(SIGHUP)
    try waitForLog("the configuration stays unchanged: the file has a mistake", of: broker)
    try waitForLog("\(file):3:1: topics.replay-records: is a text", of: broker)
    try client.create("c")
    #expect(try client.show("c").settings.replayRecords == 2)
    try write("log.level = \"info\"\n")
    broker.process.signal(SIGHUP)
    try waitForLog("a setting has changed setting=topics.replay-records from=2 to=everything", of: broker)
    try waitForLog("the configuration was read again", of: broker)
    #expect(try broker.terminate() == .code(0))
  }

  @Test func usersAndPermissionsAreThoseOfTheFilesThatItNamesNow() throws {
    let tool = try BuiltProduct.path("sluice")
    try writeFile(directory.file("password"), Array("correct horse\n".utf8))
    for name in ["alice", "bob"] {
      let process = try ChildProcess(
        tool,
        [
          "user", "add", name, "--file", directory.file("\(name)s"), "--password-file",
          directory.file("password"),
        ])
      #expect(try process.waitForExit() == .code(0), "\(process.messages)")
    }
    try writeFile(directory.file("permissions"), Array("* all >\n".utf8))
    try write("[access]\nusers = \"alices\"\npermissions = \"permissions\"\n")
    let broker = try BrokerProcess("--config", file)
    func ping(_ user: String) throws -> ChildProcess.Exit {
      try broker.sluice(
        "topic", "list", "--user", user, "--password-file", directory.file("password")
      ).waitForExit()
    }
    #expect(try ping("alice") == .code(0))
    #expect(try ping("bob") == .code(1))
    try write("[access]\nusers = \"bobs\"\npermissions = \"permissions\"\n")
    broker.process.signal(SIGHUP)
    try waitForLog("the configuration was read again", of: broker)
    #expect(try ping("bob") == .code(0))
    #expect(try ping("alice") == .code(1))
    // A missing file changes nothing.
    try write("[access]\nusers = \"carols\"\npermissions = \"permissions\"\n")
    broker.process.signal(SIGHUP)
    try waitForLog("users, keys and permissions stay unchanged", of: broker)
    #expect(try ping("bob") == .code(0))
    // Authentication can't be turned off without a restart.
    try write("")
    broker.process.signal(SIGHUP)
    try waitForLog("a changed setting needs a restart setting=access.users", of: broker)
    #expect(try ping("bob") == .code(0))
    #expect(try ping("alice") == .code(1))
  }

  @Test func certificatesAreThoseThatItNamesNow() throws {
    let (first, second) = (try TestCertificates(), try TestCertificates())
    func text(_ certificates: TestCertificates) -> String {
      "[tls]\ncert = \"\(certificates.server)\"\nkey = \"\(certificates.serverKey)\"\n"
    }
    try write(text(first))
    let broker = try BrokerProcess("--config", file, "--listen", "tls://127.0.0.1:0")
    func trusts(_ certificates: TestCertificates) throws -> Bool {
      let ping = try ChildProcess.sluice(
        ["ping", "--tls-ca", certificates.authority, "--timeout", "2m"], server: broker.addresses[1])
      return try ping.waitForExit() == .code(0)
    }
    #expect(try trusts(first))
    try write(text(second))
    broker.process.signal(SIGHUP)
    try waitForLog("the configuration was read again", of: broker)
    #expect(try trusts(second))
    #expect(try !trusts(first))
  }

  @Test func withoutADirectoryTopicsCantBecomeDurable() throws {
    try write("")
    let broker = try BrokerProcess("--config", file)
    try write("storage.data = \"data\"\ntopics.storage = \"durable\"\n")
    broker.process.signal(SIGHUP)
    try waitForLog(
      "a changed setting needs a restart setting=topics.storage now=memory wanted=durable", of: broker)
    try waitForLog("a changed setting needs a restart setting=storage.data", of: broker)
    let client = try broker.client()
    try client.create("t")
    #expect(try client.show("t").settings.storage == .memory)
  }
}
