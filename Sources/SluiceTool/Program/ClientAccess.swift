import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceTLS
import SluiceWire

/// The broker's addresses and the client's credentials, from options of all commands.
struct ClientAccess {
  var servers: [SocketAddress] = [.host("127.0.0.1", port: 7420)]
  var credentials = ClientCredentials.none
  var allowsPlaintextCredentials = false
  var tls = TLSClientOptions()
  var routing = ClientRouting.direct
  /// Nil for the program's name and its process ID.
  var name: String?
  /// The names of TLS options in messages, with the variable or the context that set them.
  private var tlsNames: [String: String] = [:]

  static let options = [
    CommandOption(
      "user", value: "NAME",
      help: "The user's name, for brokers with authentication; with --password-file.",
      environment: "SLUICE_USER"),
    CommandOption(
      "password-file", value: "FILE", help: "Read the user's password from FILE: its first line.",
      environment: "SLUICE_PASSWORD_FILE"),
    CommandOption(
      "token-file", value: "FILE",
      help: "Authenticate with the token in FILE, which is read again before it expires.",
      environment: "SLUICE_TOKEN_FILE"),
    CommandOption(
      "allow-plaintext-credentials",
      help: "Also send the password or token without TLS to another host, although it can be read on the way."
    ),
    CommandOption(
      "routing", value: "HOW",
      help:
        "direct: connect to the cluster's node that serves the topic, if it can be reached; relay: let the broker forward everything, as behind a load balancer.",
      environment: "SLUICE_ROUTING", standard: "direct", choices: ["direct", "relay"]),
    CommandOption(
      "name", value: "NAME",
      help:
        "The client's name in the broker's log and lists. Without it: sluice[PID].",
      environment: "SLUICE_NAME"),
  ]

  /// - Parameters:
  ///   - sources: arguments, in the order of precedence: those after the command, those before it, the environment, a context.
  ///   - quiet: how many of the last sources may have options for TLS although no server has TLS.
  /// - Throws: `UsageError` for invalid addresses, unreadable files, and contradictory options.
  init(_ sources: [ParsedArguments], quiet: Int = 1) throws(UsageError) {
    for arguments in sources {
      let servers = try arguments.values("server", Self.servers)
      if servers.isEmpty { continue }
      self.servers = servers.flatMap(\.self)
      break
    }
    allowsPlaintextCredentials = sources.contains { $0.has("allow-plaintext-credentials") }
    credentials = try Self.credentials(sources)
    tls = try Self.tls(sources, quiet: quiet, for: servers)
    for option in Self.tlsOptions { tlsNames[option.name] = sources.name(of: option.name) }
    let routings = Values.choice(["direct": ClientRouting.direct, "relay": .relay])
    for arguments in sources.reversed() { routing = try arguments.value("routing", routings) ?? routing }
    name = sources.lazy.compactMap { $0.text("name") }.first
  }

  /// The default port of a server.
  static let standardPort: UInt16 = 7420

  func apply(to options: inout ClientOptions) {
    options.credentials = credentials
    options.allowsPlaintextCredentials = allowsPlaintextCredentials
    options.tls = tls
    options.routing = routing
    if let name { options.name = name }
  }

  private static func servers(_ text: String) throws(ValueError) -> [SocketAddress] {
    var servers: [SocketAddress] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      servers.append(try Values.address(String(part), port: standardPort))
    }
    return servers
  }

  // MARK: Credentials

  private static func credentials(_ sources: [ParsedArguments]) throws(UsageError) -> ClientCredentials {
    let names = ["user", "password-file", "token-file"] + ContextFile.secrets
    // Credentials of the command line aren't mixed with those of the environment, which may be for another broker.
    guard let source = sources.first(where: { source in names.contains(where: source.has) }) else {
      return .none
    }
    try source.allowOne(of: "token-file", "user")
    try source.allowOne(of: "token-file", "password-file")
    if let path = source.text("token-file") {
      return try .file(path, sources.name(of: "token-file")) { .token($0) }
    }
    // A context may contain the secret itself.
    if let token = source.text("token") { return .token(token) }
    if let secret = source.text("password"), let user = source.text("user") {
      return .password(secret, user: user)
    }
    guard let path = sources.text("password-file") else {
      throw UsageError(
        "--user needs --password-file: other users could read a password on the command line")
    }
    guard let user = sources.text("user") else { throw UsageError("--password-file needs --user") }
    return try .file(path, sources.name(of: "password-file")) { .password($0, user: user) }
  }
}

extension [ParsedArguments] {
  /// The value of an option in the first of them that has one.
  fileprivate func text(_ option: String) -> String? { lazy.compactMap { $0.text(option) }.first }

  /// The name of the option in messages, with the variable or context that its value came from.
  fileprivate func name(of option: String) -> String {
    first { $0.has(option) }?.origin(of: option).map { "\($0), --\(option)" } ?? "--\(option)"
  }
}

extension ClientCredentials {
  /// Credentials whose secret is the first line of a file, which is read at each connection.
  ///
  /// - Parameter option: the name of the file's option in messages.
  /// - Throws: `UsageError` if the file can't be read now.
  fileprivate static func file(
    _ path: String, _ option: String, _ make: @escaping @Sendable (String) -> ClientCredentials
  ) throws(UsageError) -> ClientCredentials {
    do {
      _ = try SecretFile.firstLine(of: path)
    } catch {
      throw UsageError("\(option): \(error)")
    }
    return .provider { make(try SecretFile.firstLine(of: path)) }
  }
}

// TLS: how the program verifies the broker.
extension ClientAccess {
  static let tlsOptions = [
    CommandOption(
      "tls-ca", value: "FILE",
      help:
        "Trust certificates that are signed by the authorities in FILE, instead of the system's authorities.",
      environment: "SLUICE_TLS_CA"),
    CommandOption(
      "tls-cert", value: "FILE",
      help: "The client's certificate, for brokers that request one; with --tls-key.",
      environment: "SLUICE_TLS_CERT"),
    CommandOption(
      "tls-key", value: "FILE", help: "The private key of --tls-cert.", environment: "SLUICE_TLS_KEY"),
    CommandOption(
      "tls-server-name", value: "NAME",
      help: "The name or address that the broker's certificate must have, if it isn't the one in --server.",
      environment: "SLUICE_TLS_SERVER_NAME"),
    CommandOption(
      "tls-no-verify",
      help:
        "Accept every certificate: for tests only, since an attacker on the way could read and change everything."
    ),
  ]

  /// - Parameters:
  ///   - sources: see ``init(_:quiet:)``.
  ///   - quiet: see there.
  /// - Throws: `UsageError` for files that can't be used, and for options of TLS if no server has TLS.
  static func tls(
    _ sources: [ParsedArguments], quiet: Int = 1, for servers: [SocketAddress]
  ) throws(UsageError) -> TLSClientOptions {
    var options = TLSClientOptions()
    guard servers.contains(where: { if case .tls = $0 { true } else { false } }) else {
      // The environment may be meant for other servers.
      let names = tlsOptions.map(\.name)
      if let given = names.first(where: { name in sources.dropLast(quiet).contains { $0.has(name) } }) {
        throw UsageError("--\(given): \(servers[0]) has no TLS; connect to tls://HOST:PORT")
      }
      return options
    }
    options.authorities = sources.text("tls-ca")
    options.certificate = sources.text("tls-cert")
    options.key = sources.text("tls-key")
    options.serverName = sources.text("tls-server-name")
    if sources.contains(where: { $0.has("tls-no-verify") }) {
      guard options.authorities == nil, options.serverName == nil else {
        throw UsageError(
          "--tls-no-verify and \(options.authorities == nil ? "--tls-server-name" : "--tls-ca") exclude each other; give one of them"
        )
      }
      options.verification = .disabledInsecurely
    }
    if options.certificate != nil, options.key == nil { throw UsageError("--tls-cert needs --tls-key") }
    if options.key != nil, options.certificate == nil { throw UsageError("--tls-key needs --tls-cert") }
    return options
  }

  /// Reads the files for TLS, to report errors before connecting.
  ///
  /// - Throws: `UsageError` that names the option or variable whose file can't be used.
  func checkTLS() throws(UsageError) {
    guard servers.contains(where: \.hasTLS) else { return }
    do throws(TLSSetupError) {
      _ = try TLSClient(tls)
    } catch {
      let files = [("tls-ca", tls.authorities), ("tls-cert", tls.certificate), ("tls-key", tls.key)]
      guard let option = files.first(where: { $0.1 != nil && $0.1 == error.file })?.0 else {
        throw UsageError("TLS can't be set up: \(error)")
      }
      throw UsageError("\(tlsNames[option] ?? "--\(option)"): \(error)")
    }
  }
}
