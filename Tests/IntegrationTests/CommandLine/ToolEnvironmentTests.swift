import Glibc
import SluiceAccess
import SluiceTLS
import SluiceWire
import TestSupport
import Testing

/// Environment variables of `sluice`: each has the effect of its option, and the option overrides it.
@Suite(.onItsOwnThread) struct ToolEnvironmentTests {
  private func list(
    at server: String, _ variables: [String: String] = [:], _ options: [String] = []
  ) throws -> ChildProcess {
    let process = try ChildProcess(
      BuiltProduct.path("sluice"), ["topic", "list"] + options,
      environment: ChildProcess.environment(server: server).merging(variables) { $1 })
    try process.waitForExit()
    return process
  }

  @Test func theServer() throws {
    let (broker, nobody) = (try BrokerProcess(), try FakeServer.nobody())
    #expect(try list(at: broker.address).currentExit == .code(0))
    #expect(try list(at: nobody).currentExit == .code(1))
    #expect(try list(at: broker.address, [:], ["--server", nobody]).currentExit == .code(1))
    #expect(try list(at: nobody, [:], ["--server", broker.address]).currentExit == .code(0))
    #expect(try list(at: "\(nobody) \(broker.address)").currentExit == .code(0))
    let wrong = try list(at: "nowhere:")
    #expect(
      wrong.currentExit == .code(2) && wrong.standardError.text.contains("'nowhere:' is not an address"))
  }

  @Test func certificates() throws {
    let certificates = try TestCertificates.shared()
    let broker = try BrokerProcess(
      "--listen", "tls://127.0.0.1:0", "--tls-cert", certificates.server, "--tls-key", certificates.serverKey,
      "--tls-client-ca", certificates.authority, "--tls-client-certs", "required")
    let server = broker.addresses[1]
    let all = [
      "SLUICE_TLS_CA": certificates.authority, "SLUICE_TLS_CERT": certificates.client,
      "SLUICE_TLS_KEY": certificates.clientKey, "SLUICE_TLS_SERVER_NAME": "localhost",
    ]
    let process = try list(at: server, all)
    #expect(process.currentExit == .code(0), "\(process.messages)")
    for (variable, option, other, code) in [
      ("SLUICE_TLS_CA", "--tls-ca", "/none", 2), ("SLUICE_TLS_CERT", "--tls-cert", "/none", 2),
      ("SLUICE_TLS_KEY", "--tls-key", "/none", 2),
      ("SLUICE_TLS_SERVER_NAME", "--tls-server-name", "other.example", 1),
    ] as [(String, String, String, Int32)] {
      let wrong = try list(at: server, all.merging([variable: other]) { $1 })
      #expect(wrong.currentExit == .code(code), "\(variable): \(wrong.messages)")
      #expect(wrong.standardError.lines.count == 1, "\(variable): \(wrong.messages)")
      let right = try list(at: server, all.merging([variable: other]) { $1 }, [option, all[variable]!])
      #expect(right.currentExit == .code(0), "\(option): \(right.messages)")
    }
    // The TLS variables are ignored with a server without TLS; with the options it is an error.
    let plain = try list(at: broker.address, all)
    #expect(plain.currentExit == .code(0), "\(plain.messages)")
    #expect(try list(at: broker.address, [:], ["--tls-ca", certificates.authority]).currentExit == .code(2))
  }

  @Test func credentials() throws {
    let (directory, keys) = (try TemporaryDirectory(), try TemporaryDirectory())
    let hash = try #require(PasswordHash(of: "correct horse", cost: .init(logN: 4, r: 1, p: 1)))
    func write(_ path: String, _ text: String) throws { try writeFile(path, Array(text.utf8)) }
    try write(directory.file("users"), "alice:\(hash.text)\n")
    try write(directory.file("permissions"), "* all >\n")
    try write(directory.file("right"), "correct horse\n")
    try write(directory.file("wrong"), "battery staple\n")
    try write(keys.file("k.secret"), "0123456789abcdef0123456789abcdef\n")
    let broker = try BrokerProcess(
      "--users", directory.file("users"), "--permissions", directory.file("permissions"), "--token-keys",
      keys.path)
    try broker.run(
      "token", "make", "--key", keys.file("k.secret"), "--key-id", "k", "--subject", "shop", "--for", "1h",
      "--output", directory.file("token"))

    let (right, wrong) = (directory.file("right"), directory.file("wrong"))
    for (variables, options, code) in [
      ([:], [], 1),
      (["SLUICE_USER": "alice", "SLUICE_PASSWORD_FILE": right], [], 0),
      (["SLUICE_USER": "alice", "SLUICE_PASSWORD_FILE": wrong], [], 1),
      (["SLUICE_USER": "bob", "SLUICE_PASSWORD_FILE": right], [], 1),
      (["SLUICE_USER": "bob", "SLUICE_PASSWORD_FILE": right], ["--user", "alice"], 0),
      (["SLUICE_USER": "alice", "SLUICE_PASSWORD_FILE": wrong], ["--password-file", right], 0),
      (["SLUICE_TOKEN_FILE": directory.file("token")], [], 0),
      (["SLUICE_TOKEN_FILE": right], [], 1),
      (["SLUICE_TOKEN_FILE": right], ["--token-file", directory.file("token")], 0),
      (["SLUICE_TOKEN_FILE": right], ["--user", "alice", "--password-file", right], 0),
      (["SLUICE_USER": "alice"], [], 2), (["SLUICE_TOKEN_FILE": "/none"], [], 2),
      (["SLUICE_USER": "alice", "SLUICE_TOKEN_FILE": right], [], 2),
    ] as [([String: String], [String], Int32)] {
      let process = try list(at: broker.address, variables, options)
      #expect(process.currentExit == .code(code), "\(variables) \(options): \(process.messages)")
    }
  }

  /// 0.0.0.0 reaches this machine, but isn't a loopback address.
  @Test func credentialsArentSentInTheClearUnlessThatIsSaid() throws {
    let directory = try TemporaryDirectory()
    try writeFile(directory.file("password"), Array("correct horse\n".utf8))
    let broker = try BrokerProcess("--listen", "127.0.0.1:0")
    let port = try #require(broker.addresses[1].split(separator: ":").last)
    let options = [
      "--server", "0.0.0.0:\(port)", "--user", "alice", "--password-file", directory.file("password"),
    ]
    let refused = try list(at: broker.address, [:], options)
    #expect(refused.currentExit == .code(1) && refused.standardError.lines.count == 1, "\(refused.messages)")
    #expect(
      refused.standardError.text.contains(
        "use tls://, or allow it explicitly with --allow-plaintext-credentials"), "\(refused.messages)")
    let sent = try list(at: broker.address, [:], options + ["--allow-plaintext-credentials"])
    #expect(sent.currentExit == .code(0), "\(sent.messages)")
  }

  @Test func theKeepalive() throws {
    func keepalive(_ text: String) throws -> (exit: ChildProcess.Exit, asked: [UInt32], errors: String) {
      let broker = try PretendedBroker()
      let process = try ChildProcess(
        BuiltProduct.path("sluice"), ["pub", "t", "a", "--server", broker.address],
        environment: ["SLUICE_KEEPALIVE": text])
      let exit = try process.waitForExit()
      return (exit, try broker.received(Hello.self).map(\.keepalive), process.standardError.text)
    }
    #expect(try keepalive("7s").asked == [7_000])
    #expect(try keepalive("0").asked == [0])
    #expect(try keepalive("").asked == [15_000])
    let wrong = try keepalive("soon")
    #expect(wrong.exit == .code(2) && wrong.asked == [])
    #expect(wrong.errors.hasPrefix("sluice: SLUICE_KEEPALIVE: 'soon' isn't a duration"))
  }
}
