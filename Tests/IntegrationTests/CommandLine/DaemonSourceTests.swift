import SluiceAccess
import SluiceTLS
import TestSupport
import Testing

/// A broker that gets all its settings from one source: addresses, certificates, users, tokens, permissions, a directory and rules.
@Suite(.onItsOwnThread) struct DaemonSourceTests {
  private let directory: TemporaryDirectory
  private let keys: TemporaryDirectory
  private let certificates: TestCertificates

  init() throws {
    directory = try TemporaryDirectory()
    keys = try TemporaryDirectory()
    certificates = try TestCertificates.shared()
    let hash = try #require(PasswordHash(of: "correct horse", cost: .init(logN: 4, r: 1, p: 1)))
    try write(directory.file("users"), "alice:\(hash.text)\n")
    try write(directory.file("permissions"), "alice all >\nshop all orders.>\nclient subscribe news\n")
    try write(directory.file("password"), "correct horse\n")
    try write(keys.file("k.secret"), "0123456789abcdef0123456789abcdef\n")
    let token = try ChildProcess(
      BuiltProduct.path("sluice"),
      [
        "token", "make", "--key", keys.file("k.secret"), "--key-id", "k", "--subject", "shop", "--for", "1h",
        "--output", directory.file("token"),
      ])
    try require(try token.waitForExit() == .code(0), token.messages)
  }

  private func write(_ path: String, _ text: String) throws {
    try writeFile(path, Array(text.utf8))
  }

  /// The broker's settings, by the keys of the file.
  private var settings: [(section: String, name: String, value: String)] {
    [
      ("", "listen", "tls://127.0.0.1:0"), ("", "admin", "\(Loopback.freshHost()):0"),
      ("tls", "cert", certificates.server), ("tls", "key", certificates.serverKey),
      ("tls", "client-ca", certificates.authority), ("tls", "client-certs", "optional"),
      ("access", "users", directory.file("users")), ("access", "token-keys", keys.path),
      ("access", "permissions", directory.file("permissions")), ("access", "audit", "off"),
      ("storage", "data", directory.file("data")), ("log", "level", "warning"), ("log", "format", "json"),
    ]
  }

  @Test func theEnvironmentAlone() throws {
    var environment = ["SLUICED_TOPIC_RULE": "orders.> storage=durable"]
    for (section, name, value) in settings {
      let isNamedAlone = section.isEmpty || section == "access" || section == "storage"
      let option = isNamedAlone ? name : "\(section)-\(name)"
      environment["SLUICED_" + option.uppercased().map { $0 == "-" ? "_" : String($0) }.joined()] = value
    }
    try expectService(
      of: ChildProcess(BuiltProduct.path("sluiced"), environment: environment))
  }

  @Test func aFileAlone() throws {
    var text = ""
    var last = ""
    for (section, name, value) in settings {
      if section != last { text += "[\(section)]\n" }
      last = section
      let written = name == "listen" ? "[\"\(value)\"]" : value == "off" ? "false" : "\"\(value)\""
      text += "\(name) = \(written)\n"
    }
    text += "[[rule]]\npattern = \"orders.>\"\nstorage = \"durable\"\n"
    try write(directory.file("sluiced.toml"), text)
    let check = try ChildProcess(
      BuiltProduct.path("sluiced"), ["--check-config", directory.file("sluiced.toml")])
    #expect(try check.waitForExit() == .code(0), "\(check.messages)")
    try expectService(
      of: ChildProcess(BuiltProduct.path("sluiced"), ["--config", directory.file("sluiced.toml")]))
  }

  /// Checks that each setting has its effect.
  private func expectService(of broker: ChildProcess) throws {
    defer {
      broker.stop()
      removeStore(directory.file("data"))
    }
    _ = try broker.standardOutput.line(startingWith: "sluiced ready")
    let lines = broker.standardOutput.lines
    try #require(lines.count == 3 && lines[0].hasPrefix("sluiced listening on tls://127.0.0.1:"), "\(lines)")
    #expect(lines[1].hasPrefix("sluiced admin on 127."))
    #expect(try RawHTTP.get(String(lines[1].split(separator: " ")[3]), "/metrics").status == 401)
    let server = String(lines[0].split(separator: " ")[3])

    func run(_ arguments: String..., code: Int32, at location: SourceLocation = #_sourceLocation) throws
      -> String
    {
      let process = try ChildProcess.sluice(
        arguments + ["--tls-ca", certificates.authority], server: server)
      #expect(try process.waitForExit() == .code(code), "\(process.messages)", sourceLocation: location)
      return process.standardOutput.text
    }
    let (password, token) = (directory.file("password"), directory.file("token"))
    _ = try run("topic", "list", code: 1)
    let made = try run(
      "topic", "create", "orders.eu", "--json", "--user", "alice", "--password-file", password, code: 0)
    #expect(try object(made)["storage"] as? String == "durable")
    _ = try run("pub", "orders.eu", "x", "--token-file", token, code: 0)
    _ = try run("pub", "news", "x", "--token-file", token, code: 1)
    let proof = ["--tls-cert", certificates.client, "--tls-key", certificates.clientKey]
    _ = try run("sub", "news", "--until-live", proof[0], proof[1], proof[2], proof[3], code: 1)
    _ = try run("pub", "news", "x", "--user", "alice", "--password-file", password, code: 0)
    #expect(try run("sub", "news", "--until-live", proof[0], proof[1], proof[2], proof[3], code: 0) == "x\n")

    // Only denied requests are logged, as one object a line.
    let log = try broker.standardError.lines.map(object)
    #expect(!log.isEmpty && log.allSatisfy { $0["level"] as? String == "warning" }, "\(log)")
    #expect(log.allSatisfy { $0["audit"] == nil }, "\(log)")
  }
}
