import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceTLS

// How the program makes sure of a broker over TLS.
extension ClientAccess {
  static let tlsOptions = [
    CommandOption(
      "tls-ca", value: "FILE",
      help:
        "Trust brokers at tls:// that the authorities in FILE have signed, rather than those that the system trusts.",
      environment: "SLUICE_TLS_CA"),
    CommandOption(
      "tls-cert", value: "FILE", help: "Show this certificate to a broker that asks for one; with --tls-key.",
      environment: "SLUICE_TLS_CERT"),
    CommandOption("tls-key", value: "FILE", help: "Its private key.", environment: "SLUICE_TLS_KEY"),
    CommandOption(
      "tls-server-name", value: "NAME",
      help: "The name or address that the broker's certificate must be for, if not the one connected to.",
      environment: "SLUICE_TLS_SERVER_NAME"),
    CommandOption(
      "tls-no-verify",
      help:
        "Believe whoever answers, although anybody on the way could read and change everything: for tests only."
    ),
  ]

  /// - Parameter sources: see ``init(_:)``.
  /// - Throws: `UsageError` for files that can't be used, and for options where no server has TLS.
  static func tls(
    _ sources: [ParsedArguments], for servers: [SocketAddress]
  ) throws(UsageError) -> TLSClientOptions {
    var options = TLSClientOptions()
    guard servers.contains(where: { if case .tls = $0 { true } else { false } }) else {
      // What is in the environment may be meant for other servers.
      let names = tlsOptions.map(\.name)
      if let given = names.first(where: { name in sources.dropLast().contains { $0.has(name) } }) {
        throw UsageError("--\(given): \(servers[0]) has no TLS; connect to tls://HOST:PORT")
      }
      return options
    }
    func text(_ name: String) -> String? { sources.compactMap { $0.text(name) }.first }
    options.authorities = text("tls-ca")
    options.certificate = text("tls-cert")
    options.key = text("tls-key")
    options.serverName = text("tls-server-name")
    if sources.contains(where: { $0.has("tls-no-verify") }) {
      guard options.authorities == nil, options.serverName == nil else {
        throw UsageError(
          "--tls-no-verify: contradicts \(options.authorities == nil ? "--tls-server-name" : "--tls-ca")")
      }
      options.verification = .disabledInsecurely
    }
    if options.certificate != nil, options.key == nil { throw UsageError("--tls-cert needs --tls-key") }
    if options.key != nil, options.certificate == nil { throw UsageError("--tls-key needs --tls-cert") }
    return options
  }
}
