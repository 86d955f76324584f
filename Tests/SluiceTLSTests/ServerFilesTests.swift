import Glibc
import SluiceIO
import SluiceSimulation
import SluiceTLS
import TestSupport
import Testing

/// Messages about unusable files, and the behaviour after them.
@Suite struct ServerFilesTests {
  private func problem(_ options: TLSServerOptions) throws -> TLSSetupError {
    try #require(throws: TLSSetupError.self) { try TLSServer(options) }
  }

  @Test func everyFileThatCannotBeUsedIsNamedWithItsFault() throws {
    let good = try TestCertificates()
    let others = try TestCertificates()
    let directory = try TemporaryDirectory()
    let rubbish = directory.file("rubbish")
    try writeFile(rubbish, Array("no certificate at all\n".utf8))
    func options(_ certificate: String, _ key: String) -> TLSServerOptions {
      TLSServerOptions(certificate: certificate, key: key)
    }
    let missing = try problem(options(directory.file("missing"), good.serverKey))
    #expect(missing.file == directory.file("missing"))
    #expect(missing.description.contains("No such file"))
    #expect(try problem(options(directory.path, good.serverKey)).description.contains("is a directory"))
    #expect(try problem(options(rubbish, good.serverKey)).description.contains("holds no certificate"))
    #expect(try problem(options("", good.serverKey)).description.contains("no file's name"))
    #expect(
      try problem(options(good.server + "\0", good.serverKey)).description.contains("no file's name"))
    let noKey = try problem(options(good.server, rubbish))
    #expect(noKey.file == rubbish)
    #expect(noKey.description.contains("holds no key"))
    let wrong = try problem(options(good.server, others.serverKey))
    #expect(wrong.file == others.serverKey)
    #expect(wrong.description.contains("isn't the key of the certificate"))
  }

  @Test func aKeyBehindAPassphraseIsSaidToBeOne() throws {
    let good = try TestCertificates()
    let directory = try TemporaryDirectory()
    let locked = directory.file("locked.key")
    let process = try ChildProcess(
      "/usr/bin/openssl",
      ["pkey", "-in", good.serverKey, "-aes256", "-passout", "pass:secret", "-out", locked])
    #expect(try process.waitForExit() == .code(0))
    let error = try problem(TLSServerOptions(certificate: good.server, key: locked))
    #expect(error.description.contains("passphrase"), "\(error)")
  }

  @Test func certificatesOfClientsNeedAnAuthority() throws {
    let good = try TestCertificates.shared()
    var options = TLSServerOptions(certificate: good.server, key: good.serverKey)
    options.clientCertificates = .optional
    #expect(try problem(options).description.contains("no authority"))
    options.clientAuthorities = "/nowhere"
    #expect(try problem(options).file == "/nowhere")
    options.clientAuthorities = good.serverKey
    #expect(try problem(options).description.contains("holds no authority's certificate"))
  }

  @Test func aClientsFilesAreNamedToo() throws {
    let good = try TestCertificates.shared()
    var options = TLSClientOptions()
    options.authorities = "/nowhere"
    #expect(try #require(throws: TLSSetupError.self) { try TLSClient(options) }.file == "/nowhere")
    options.authorities = good.authority
    options.certificate = good.client
    #expect(throws: TLSSetupError.self) { try TLSClient(options) }
    options.key = good.clientKey
    options.serverName = "a b"
    #expect(throws: TLSSetupError.self) { try TLSClient(options) }
  }

  @Test func aKeyThatOthersCanReadIsWarnedOf() throws {
    let certificates = try TestCertificates()
    let server = try TLSServer(
      TLSServerOptions(certificate: certificates.server, key: certificates.serverKey))
    #expect(server.warnings.isEmpty)
    chmod(certificates.serverKey, 0o644)
    #expect(server.warnings.count == 1)
    #expect(server.warnings.first?.contains(certificates.serverKey) == true)
  }

  @Test func aReloadCountsForNewConnectionsAndLeavesTheOthersAlone() throws {
    let certificates = try TestCertificates()
    let scene = try Scene(certificates: certificates)
    let before = try scene.pair()
    let expiry = try #require(scene.server.expires)
    try certificates.renew(days: 90)
    try scene.server.reload()
    #expect(try #require(scene.server.expires) > expiry)
    let after = try scene.pair()
    #expect(before.client.stream.security?.peerExpires == expiry)
    #expect(try #require(after.client.stream.security?.peerExpires) > expiry)
    before.client.send(pattern(100_000))
    #expect(scene.world.run { before.server.received.count == 100_000 })
  }

  @Test func aReloadThatFailsChangesNothing() throws {
    let certificates = try TestCertificates()
    let scene = try Scene(certificates: certificates)
    let expiry = scene.server.expires
    try writeFile(certificates.server, Array("broken".utf8))
    let error = #expect(throws: TLSSetupError.self) { try scene.server.reload() }
    #expect(error?.file == certificates.server)
    #expect(scene.server.expires == expiry)
    #expect(throws: Never.self) { try scene.pair() }
  }
}
