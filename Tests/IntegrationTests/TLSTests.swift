import Glibc
import ReactiveCore
import SluiceClient
import SluiceTLS
import TestSupport
import Testing

/// Brokers, clients and the tool over TLS, as processes.
@Suite(.onItsOwnThread) struct TLSTests {
  private let certificates: TestCertificates

  init() throws {
    certificates = try TestCertificates()
  }

  /// A broker that listens with and without TLS; the tests' own client uses the latter.
  private func broker(_ options: String...) throws -> (BrokerProcess, secure: String) {
    let broker = try BrokerProcess(
      options: [
        "--listen", "tls://127.0.0.1:0", "--tls-cert", certificates.server, "--tls-key",
        certificates.serverKey,
      ] + options)
    let secure = try #require(broker.addresses.first { $0.hasPrefix("tls://127.0.0.1:") })
    return (broker, secure)
  }

  private func sluice(
    _ arguments: [String], at server: String, input: ChildProcess.Input = .nothing
  ) throws -> ChildProcess {
    try ChildProcess.sluice(arguments + ["--tls-ca", certificates.authority], server: server, input: input)
  }

  @Test func whatGoesThroughTLSIsWhatGoesWithout() throws {
    let (broker, secure) = try broker()
    let lines = (0..<20_000).map { "line \($0)" }.joined(separator: "\n") + "\n"
    let publisher = try sluice(["pub", "words", "--quiet"], at: secure, input: .bytes(Array(lines.utf8)))
    #expect(try publisher.waitForExit() == .code(0), "\(publisher.messages)")
    let reader = try sluice(["sub", "words", "--until-live"], at: secure)
    #expect(try reader.waitForExit() == .code(0), "\(reader.messages)")
    let same = reader.standardOutput.text == lines
    #expect(same)
    let plain = try ChildProcess.sluice(["sub", "words", "--until-live"], server: broker.address)
    #expect(try plain.waitForExit() == .code(0))
    let alsoSame = plain.standardOutput.text == lines
    #expect(alsoSame)
    #expect(try broker.terminate() == .code(0))
  }

  @Test func whoCannotBeSureOfTheBrokerIsToldWhy() throws {
    let (broker, secure) = try broker()
    func complaint(_ arguments: [String], at server: String, code: Int32 = 1) throws -> String {
      let process = try ChildProcess.sluice(["ping", "--count", "1"] + arguments, server: server)
      #expect(try process.waitForExit() == .code(code), "\(process.messages)")
      return process.standardError.text
    }
    #expect(try complaint([], at: secure).contains("isn't signed by an authority that is trusted here"))
    let ca = ["--tls-ca", certificates.authority]
    #expect(
      try complaint(ca + ["--tls-server-name", "other.example"], at: secure).contains("is for localhost"))
    // Each kind of client connects to the other kind of port.
    let port = secure.dropFirst("tls://".count)
    #expect(try complaint([], at: String(port)).contains("answers with TLS; connect to tls://"))
    #expect(try complaint(ca, at: "tls://\(broker.address)").contains("doesn't speak TLS there"))
    #expect(
      try complaint(["--tls-ca", "/nowhere"], at: secure, code: 2).contains(
        "--tls-ca: '/nowhere': can't be read"))
    let unsafe = try ChildProcess.sluice(["ping", "--count", "1", "--tls-no-verify"], server: secure)
    #expect(try unsafe.waitForExit() == .code(0))
    try eventually("a line about the plain client") {
      broker.process.standardError.text.contains("it has to connect to tls://")
    }
  }

  @Test func whoIsOneTooManyIsToldSoInTLS() throws {
    let (broker, secure) = try broker(
      "--max-connections", "2", "--max-connections-per-address", "1", "--handshake", "1s")
    let first = try broker.client()
    // Without a TLS handshake the broker can't send an error, and doesn't wait for the client.
    let silent = try RawClient(String(secure.dropFirst("tls://".count)))
    try silent.expectEnd()
    let refused = try sluice(["ping", "--count", "1"], at: secure)
    #expect(try refused.waitForExit() == .code(1))
    #expect(
      refused.standardError.text.contains("1 connections from 127.0.0.1, which is the limit for an address"),
      "\(refused.messages)")
    first.close()
    try eventually("there is room") {
      try sluice(["ping", "--count", "1"], at: secure).waitForExit() == .code(0)
    }
    #expect(try broker.terminate() == .code(0))
  }

  @Test func oldVersionsAndOtherProtocolsAreRefused() throws {
    let (broker, secure) = try broker()
    func handshake(_ options: [String]) throws -> String {
      let process = try ChildProcess(
        "/usr/bin/openssl",
        ["s_client", "-connect", String(secure.dropFirst("tls://".count)), "-CAfile", certificates.authority]
          + options)
      _ = try process.waitForExit()
      return process.standardOutput.text + process.standardError.text
    }
    #expect(try handshake(["-tls1_2"]).contains("Verify return code: 0 (ok)"))
    #expect(try handshake(["-tls1_3", "-alpn", "sluice/1"]).contains("ALPN protocol: sluice/1"))
    let old = try handshake(["-tls1_1", "-cipher", "DEFAULT@SECLEVEL=0"])
    #expect(old.contains("alert protocol version"), "\(old)")
    let web = try handshake(["-alpn", "h2,http/1.1"])
    #expect(web.contains("no application protocol"), "\(web)")
    try broker.requireRunning()
  }

  @Test func clientsAreWhoTheirCertificatesSay() throws {
    let directory = try TemporaryDirectory()
    let permissions = directory.file("permissions")
    try writeFile(permissions, Array("client publish,subscribe,create jobs.>\n".utf8))
    let (broker, secure) = try broker(
      "--tls-client-ca", certificates.authority, "--tls-client-certs", "required", "--auth", "on",
      "--permissions", permissions)
    let named = ["--tls-cert", certificates.client, "--tls-key", certificates.clientKey]
    let allowed = try sluice(["pub", "jobs.one", "hello", "--quiet"] + named, at: secure)
    #expect(try allowed.waitForExit() == .code(0), "\(allowed.messages)")
    let denied = try sluice(["pub", "other", "hello", "--quiet"] + named, at: secure)
    #expect(try denied.waitForExit() == .code(1))
    let nameless = try sluice(["pub", "jobs.one", "hello", "--quiet"], at: secure)
    #expect(try nameless.waitForExit() == .code(1))
    #expect(nameless.standardError.text.contains("requires a client certificate"))
    try broker.requireRunning()
  }

  @Test func certificatesAreExchangedUnderLoad() throws {
    let (broker, secure) = try broker()
    func log(_ text: String, _ count: Int = 1) throws {
      try eventually("'\(text)' in the log: \(broker.process.messages)") {
        broker.process.standardError.lines.count { $0.contains(text) } == count
      }
    }
    #expect(try sluice(["topic", "create", "load"], at: secure).waitForExit() == .code(0))
    let reader = try sluice(["sub", "load", "--from", "new"], at: secure)
    try broker.waitForSubscriptions(1, on: "load")
    let writer = try sluice(["pub", "load", "--quiet"], at: secure, input: .open)
    var sent = 0
    func send(_ count: Int) throws {
      try writer.write(Array((sent..<sent + count).map { "\($0)\n" }.joined().utf8))
      sent += count
    }
    try send(2_000)
    // Signed by another authority: a client that trusts the first one rejects the broker.
    let others = try TestCertificates()
    try writeFile(certificates.server, try readFile(others.server))
    try writeFile(certificates.serverKey, try readFile(others.serverKey))
    broker.process.signal(SIGHUP)
    try log("certificates were read again")
    try send(2_000)
    let stranger = try sluice(["ping", "--count", "1"], at: secure)
    #expect(try stranger.waitForExit() == .code(1))
    let friend = try ChildProcess.sluice(
      ["ping", "--count", "1", "--tls-ca", others.authority], server: secure)
    #expect(try friend.waitForExit() == .code(0), "\(friend.messages)")
    // A broken file changes nothing.
    try writeFile(certificates.serverKey, Array("broken\n".utf8))
    broker.process.signal(SIGHUP)
    try log("certificates stay unchanged")
    #expect(broker.process.standardError.text.contains(certificates.serverKey))
    let again = try ChildProcess.sluice(
      ["ping", "--count", "1", "--tls-ca", others.authority], server: secure)
    #expect(try again.waitForExit() == .code(0))
    try send(2_000)
    writer.closeInput()
    #expect(try writer.waitForExit() == .code(0), "\(writer.messages)")
    // Neither of the two is affected.
    try eventually("all records") { reader.standardOutput.lines.count == sent }
    #expect(reader.standardOutput.lines == (0..<sent).map { "\($0)" })
    #expect(reader.standardError.text == "")
    #expect(writer.standardError.text == "")
  }

  @Test func aStopOverTLSIsAsOrderlyAsWithout() throws {
    let (broker, secure) = try broker()
    #expect(try sluice(["topic", "create", "words"], at: secure).waitForExit() == .code(0))
    let reader = try sluice(["sub", "words", "--no-reconnect"], at: secure)
    try broker.waitForSubscriptions(1, on: "words")
    #expect(try broker.terminate() == .code(0))
    #expect(try reader.waitForExit() == .code(1))
    #expect(reader.standardError.text.contains("stopping"), "\(reader.standardError.text)")
  }
}
