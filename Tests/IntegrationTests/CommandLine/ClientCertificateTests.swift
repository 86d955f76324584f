import TestSupport
import Testing

/// Which client certificates the broker requires, and which names in them it accepts.
@Suite(.onItsOwnThread) struct ClientCertificateTests {
  private let certificates: TestCertificates

  init() throws {
    certificates = try TestCertificates.shared()
  }

  private func broker(_ options: String...) throws -> BrokerProcess {
    try BrokerProcess(
      options: [
        "--listen", "tls://127.0.0.1:0", "--tls-cert", certificates.server, "--tls-key",
        certificates.serverKey,
      ] + options)
  }

  /// Lists topics, with a certificate or without.
  private func list(_ broker: BrokerProcess, withCertificate: Bool) throws -> ChildProcess {
    let options =
      withCertificate ? ["--tls-cert", certificates.client, "--tls-key", certificates.clientKey] : []
    let process = try ChildProcess.sluice(
      ["topic", "list", "--tls-ca", certificates.authority] + options, server: broker.addresses[1])
    try process.waitForExit()
    return process
  }

  @Test(arguments: [("off", false), ("optional", false), ("required", true)])
  func theyAreShownOrNot(word: String, isNeeded: Bool) throws {
    let authorities = word == "off" ? [] : ["--tls-client-ca", certificates.authority]
    let broker = try BrokerProcess(
      options: [
        "--listen", "tls://127.0.0.1:0", "--tls-cert", certificates.server, "--tls-key",
        certificates.serverKey,
        "--tls-client-certs", word,
      ] + authorities)
    let without = try list(broker, withCertificate: false)
    #expect(without.currentExit == .code(isNeeded ? 1 : 0), "\(without.messages)")
    let with = try list(broker, withCertificate: true)
    #expect(with.currentExit == .code(0), "\(with.messages)")
  }

  @Test func whoMayShowOneMayProveItselfOtherwise() throws {
    let directory = try TemporaryDirectory()
    try writeFile(directory.file("permissions"), Array("* all >\n".utf8))
    let broker = try broker(
      "--tls-client-certs", "optional", "--tls-client-ca", certificates.authority, "--auth", "on",
      "--permissions", directory.file("permissions"))
    #expect(try list(broker, withCertificate: true).currentExit == .code(0))
    let nobody = try list(broker, withCertificate: false)
    #expect(nobody.currentExit == .code(1), "\(nobody.messages)")
    #expect(nobody.standardError.text.contains("requires credentials"), "\(nobody.messages)")
  }

  @Test(arguments: [("any", "somebody", true), ("listed", "somebody", false), ("listed", "client", true)])
  func theirNamesAreKnownOrJustSigned(word: String, name: String, isTaken: Bool) throws {
    let directory = try TemporaryDirectory()
    try writeFile(directory.file("permissions"), Array("* subscribe >\n\(name) all >\n".utf8))
    let broker = try broker(
      "--tls-client-certs", "required", "--tls-client-ca", certificates.authority, "--auth", "on",
      "--permissions", directory.file("permissions"), "--certificate-names", word)
    let process = try list(broker, withCertificate: true)
    #expect(process.currentExit == .code(isTaken ? 0 : 1), "\(process.messages)")
  }
}
