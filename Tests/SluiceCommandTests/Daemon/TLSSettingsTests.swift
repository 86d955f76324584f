import SluiceCommand
import SluiceTLS
import Testing

@testable import SluiceDaemon

@Suite("The daemon's settings for TLS")
struct TLSSettingsTests {
  private func options(
    _ arguments: [String], environment: [String: String] = [:]
  ) throws(UsageError) -> TLSServerOptions? {
    try DaemonSettings(
      ArgumentParser(DaemonPage.page()).parse(arguments, environment: { environment[$0] })
    ).tlsOptions()
  }

  private let listen = ["--listen", "127.0.0.1:0", "--listen", "tls://127.0.0.1:0"]

  @Test("options and the environment reach the server's side")
  func reach() throws {
    #expect(try options([]) == nil)
    var expected = TLSServerOptions(certificate: "c", key: "k")
    #expect(try options(listen + ["--tls-cert", "c", "--tls-key", "k"]) == expected)
    expected.clientAuthorities = "a"
    expected.clientCertificates = .optional
    #expect(
      try options(
        listen + [
          "--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "a", "--tls-client-certs", "optional",
        ])
        == expected)
    expected.clientCertificates = .required
    let environment = [
      "SLUICED_LISTEN": "tls://127.0.0.1:0", "SLUICED_TLS_CERT": "c", "SLUICED_TLS_KEY": "k",
      "SLUICED_TLS_CLIENT_CA": "a", "SLUICED_TLS_CLIENT_CERTS": "required",
    ]
    #expect(try options([], environment: environment) == expected)
  }

  @Test(
    "what doesn't go together is refused with what to do",
    arguments: [
      ([], "--listen: tls://127.0.0.1:0 needs a certificate"),
      (["--tls-cert", "c"], "--tls-key FILE"),
      (["--tls-cert", "", "--tls-key", "k"], "--tls-cert: the name of the file is empty"),
      (
        ["--tls-cert", "c", "--tls-key", "k", "--tls-client-ca", "a"], "--tls-client-certs optional|required"
      ),
      (["--tls-cert", "c", "--tls-key", "k", "--tls-client-certs", "required"], "--tls-client-ca FILE"),
      (["--tls-cert", "c", "--tls-key", "k", "--tls-client-certs", "maybe"], "--tls-client-certs"),
      (["--tls-cert", "c", "--tls-key", "k", "--auth", "on"], "--auth: no client could authenticate"),
    ])
  func contradictions(arguments: [String], part: String) throws {
    let error = #expect(throws: UsageError.self) { try options(listen + arguments) }
    #expect(error?.description.contains(part) == true, "\(error?.description ?? "")")
  }

  @Test(
    "a certificate without a name is refused",
    arguments: [
      ["--tls-cert", "c", "--tls-key", "k"], ["--tls-client-ca", "a"], ["--tls-client-certs", "required"],
    ])
  func withoutListener(arguments: [String]) throws {
    let error = #expect(throws: UsageError.self) { try options(arguments) }
    #expect(error?.description.contains("--listen tls://HOST:PORT") == true)
  }
}
