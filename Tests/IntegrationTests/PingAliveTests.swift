import TestSupport
import Testing

/// `sluice ping --alive`: whether a broker responds, even without permission to connect.
@Suite(.onItsOwnThread) struct PingAliveTests {
  private let files: AliceFiles

  init() throws {
    files = try AliceFiles()
  }

  private func ping(_ server: String, _ options: String...) throws -> ChildProcess {
    let process = try ChildProcess.sluice(["ping", "--timeout", "2m"] + options, server: server)
    try process.waitForExit()
    return process
  }

  private func expectAlive(_ server: String) throws {
    let process = try ping(server, "--alive")
    #expect(process.currentExit == .code(0), "\(process.messages)")
    #expect(process.standardOutput.text == "\(server): a broker answers\n")
    let quiet = try ping(server, "--alive", "--quiet")
    #expect(quiet.currentExit == .code(0) && quiet.standardOutput.text + quiet.standardError.text == "")
  }

  @Test func aBrokerThatKnowsWhoMayComeInIsAliveForEverybody() throws {
    let broker = try BrokerProcess(options: files.options)
    #expect(try ping(broker.address).currentExit == .code(1))
    let failures = try broker.metric("failed_authentications")
    let lines = broker.process.standardError.lines.count { $0.contains("prove who it is") }
    for _ in 0..<20 { try expectAlive(broker.address) }
    // No client has tried to authenticate.
    #expect(try broker.metric("failed_authentications") == failures)
    #expect(broker.process.standardError.lines.count { $0.contains("prove who it is") } == lines)
  }

  @Test func soIsOneThatIsOpenToAllAndOneThatHasTooManyConnections() throws {
    let broker = try BrokerProcess("--max-connections", "1")
    try expectAlive(broker.address)
    let client = try broker.client()
    #expect(try ping(broker.address).currentExit == .code(1))
    try expectAlive(broker.address)
    client.close()
  }

  @Test(arguments: ["off", "optional", "required"])
  func soIsOneWithTLSWhateverItsCertificate(certificates wanted: String) throws {
    let certificates = try TestCertificates.shared()
    let broker = try BrokerProcess(
      options: files.options + [
        "--listen", "tls://127.0.0.1:0", "--tls-cert", certificates.server, "--tls-key",
        certificates.serverKey, "--tls-client-certs", wanted,
      ] + (wanted == "off" ? [] : ["--tls-client-ca", certificates.authority]))
    let secure = try #require(broker.addresses.first { $0.hasPrefix("tls://") })
    #expect(try ping(secure).currentExit == .code(1))
    try expectAlive(secure)
    // It works without TLS, too.
    let process = try ping(String(secure.dropFirst("tls://".count)), "--alive")
    #expect(process.currentExit == .code(0), "\(process.messages)")
  }

  @Test func nobodyIsntAlive() throws {
    let broker = try BrokerProcess()
    try broker.terminate()
    let process = try ping(broker.address, "--alive")
    #expect(process.currentExit == .code(1) && process.standardOutput.text == "")
    #expect(
      process.standardError.text.contains("nothing listens at \(broker.address)"), "\(process.messages)")
    // Several are tried in turn.
    let other = try BrokerProcess()
    #expect(try ping("\(broker.address),\(other.address)", "--alive").currentExit == .code(0))
  }

  @Test func nothingElseIsABroker() throws {
    let broker = try BrokerProcess("--admin", "127.0.0.1:0")
    let page = try FakeServer { _ in .finish(Array("HTTP/1.1 400 Bad Request\r\n\r\n".utf8)) }
    let greeter = try FakeServer(greeting: Array("220 mail.example ESMTP\r\n".utf8)) { _ in .send([]) }
    let closing = try FakeServer { _ in .finish([]) }
    let admin = try #require(broker.adminAddress)
    for address in [admin, page.address, greeter.address, closing.address] {
      let process = try ping(address, "--alive")
      #expect(process.currentExit == .code(1) && process.standardOutput.text == "", "\(process.messages)")
      let isHTTP = address == page.address || address == admin
      let reason = isHTTP ? "answers with HTTP" : "isn't a Sluice broker"
      #expect(process.standardError.text.contains(reason), "\(process.messages)")
    }
    let silent = try FakeServer { _ in .send([]) }
    let process = try ChildProcess.sluice(
      ["ping", "--alive", "--timeout", "100ms"], server: silent.address)
    #expect(try process.waitForExit() == .code(1))
    #expect(process.standardError.text.contains("didn't answer within"), "\(process.messages)")
  }

  @Test func nothingIsMeasured() throws {
    for (option, value) in [("--count", "2"), ("--interval", "1s")] {
      #expect(try ping("127.0.0.1:1", "--alive", option, value).currentExit == .code(2))
    }
  }
}
