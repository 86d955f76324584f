import Glibc
import TestSupport
import Testing

/// The admin listener over TLS.
@Suite(.onItsOwnThread) struct AdminTLSTests {
  private let certificates: TestCertificates

  init() throws {
    certificates = try TestCertificates()
  }

  /// The response to a request over TLS, from a server whose certificate the authority must have signed.
  private func get(_ target: String, from address: String, authority: String) throws -> String {
    let place = String(address.dropFirst("tls://".count))
    let client = try ChildProcess(
      "/bin/sh",
      [
        "-c",
        "printf 'GET \(target) HTTP/1.0\\r\\nHost: localhost\\r\\n\\r\\n' | "
          + "openssl s_client -quiet -ign_eof -verify_return_error -CAfile \(authority) -connect \(place)",
      ])
    _ = try client.waitForExit()
    return client.standardOutput.text
  }

  @Test func itAnswersOverTLSAndToNothingElse() throws {
    let broker = try BrokerProcess(
      "--admin", "tls://127.0.0.1:0", "--tls-cert", certificates.server, "--tls-key",
      certificates.serverKey)
    let address = try #require(broker.adminAddress)
    #expect(address.hasPrefix("tls://127.0.0.1:"))
    let answer = try get("/api/broker", from: address, authority: certificates.authority)
    #expect(answer.contains("200 OK") && answer.contains("uptimeSeconds"), "\(answer)")
    // A client that doesn't trust the authority gets nothing, and plain HTTP gets no response.
    #expect(try get("/healthz", from: address, authority: certificates.client) == "")
    #expect(throws: (any Error).self) {
      try RawHTTP.get(String(address.dropFirst("tls://".count)), "/healthz")
    }
    try broker.requireRunning()
    #expect(try broker.terminate() == .code(0))
  }

  @Test func aSignalHasNewCertificatesUsed() throws {
    let broker = try BrokerProcess(
      "--admin", "tls://127.0.0.1:0", "--tls-cert", certificates.server, "--tls-key",
      certificates.serverKey)
    let address = try #require(broker.adminAddress)
    let others = try TestCertificates()
    #expect(try get("/healthz", from: address, authority: certificates.authority).contains("ok"))
    #expect(try get("/healthz", from: address, authority: others.authority) == "")
    for (from, to) in [(others.server, certificates.server), (others.serverKey, certificates.serverKey)] {
      #expect(rename(from, to) == 0)
    }
    broker.process.signal(SIGHUP)
    try eventually("the new certificate is used") {
      try get("/healthz", from: address, authority: others.authority).contains("ok")
    }
    #expect(try get("/healthz", from: address, authority: certificates.authority) == "")
    #expect(try broker.terminate() == .code(0))
  }

  @Test func itNeedsACertificate() throws {
    let process = try ChildProcess(BuiltProduct.path("sluiced"), ["--admin", "tls://127.0.0.1:0"])
    #expect(try process.waitForExit() == .code(2))
    #expect(process.standardError.text.contains("needs a certificate and its key"))
  }
}
