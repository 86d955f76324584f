import SluiceCommand
import SluiceTLS
import Testing

@testable import SluiceTool

@Suite("The tool's options for TLS")
struct TLSOptionTests {
  /// The options that result from the arguments before a command and from the environment.
  private func tls(
    _ arguments: [String], environment: [String: String] = [:]
  ) throws(UsageError) -> TLSClientOptions {
    let parser = ArgumentParser(CommandPage("sluice", summary: ""), shared: Commands.shared)
    return try ClientAccess([
      parser.parse(arguments, environment: { _ in nil }),
      parser.parse([String](), environment: { environment[$0] }),
    ]).tls
  }

  @Test("options and the environment reach the client's side")
  func reach() throws {
    let secure = ["--server", "tls://localhost:1"]
    #expect(try tls(secure) == TLSClientOptions())
    var expected = TLSClientOptions()
    expected.authorities = "a"
    expected.certificate = "c"
    expected.key = "k"
    expected.serverName = "n"
    #expect(
      try tls(
        secure + ["--tls-ca", "a", "--tls-cert", "c", "--tls-key", "k", "--tls-server-name", "n"]) == expected
    )
    #expect(
      try tls(
        secure + ["--tls-ca", "a"],
        environment: [
          "SLUICE_TLS_CA": "other", "SLUICE_TLS_CERT": "c", "SLUICE_TLS_KEY": "k",
          "SLUICE_TLS_SERVER_NAME": "n",
        ]) == expected)
    #expect(try tls(secure + ["--tls-no-verify"]).verification == .disabledInsecurely)
  }

  @Test("what is in the environment may be meant for other servers")
  func environment() throws {
    let plain = ["--server", "127.0.0.1:1"]
    #expect(try tls(plain, environment: ["SLUICE_TLS_CA": "a"]) == TLSClientOptions())
  }

  @Test(
    "what has no sense is refused",
    arguments: [
      (["--server", "127.0.0.1:1", "--tls-ca", "a"], "has no TLS"),
      (["--tls-no-verify"], "has no TLS"),
      (["--server", "tls://localhost:1", "--tls-cert", "c"], "needs --tls-key"),
      (["--server", "tls://localhost:1", "--tls-key", "k"], "needs --tls-cert"),
      (
        ["--server", "tls://localhost:1", "--tls-ca", "a", "--tls-no-verify"],
        "--tls-no-verify and --tls-ca exclude each other"
      ),
      (["--server", "tls://localhost:1", "--tls-server-name", "a", "--tls-no-verify"], "exclude each other"),
    ])
  func contradictions(arguments: [String], part: String) throws {
    let error = #expect(throws: UsageError.self) { try tls(arguments) }
    #expect(error?.description.contains(part) == true, "\(error?.description ?? "")")
  }
}
