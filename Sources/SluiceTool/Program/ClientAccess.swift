import Glibc
import SluiceClient
import SluiceCommand
import SluiceIO
import SluiceTLS
import SluiceWire

/// How the program reaches a broker, and what it proves with who it is: what all commands take.
struct ClientAccess {
  var servers: [SocketAddress] = [.host("127.0.0.1", port: 7420)]
  var credentials = ClientCredentials.none
  var allowsPlaintextCredentials = false
  var tls = TLSClientOptions()

  static let options = [
    CommandOption(
      "user", value: "NAME", help: "Who the client is, for a broker that asks; with --password-file.",
      environment: "SLUICE_USER"),
    CommandOption(
      "password-file", value: "FILE", help: "Read the user's password from FILE: its first line.",
      environment: "SLUICE_PASSWORD_FILE"),
    CommandOption(
      "token-file", value: "FILE",
      help: "Prove who the client is by the token in FILE, which is read again before it expires.",
      environment: "SLUICE_TOKEN_FILE"),
    CommandOption(
      "allow-plaintext-credentials",
      help: "Send the password or token also over TCP without TLS to another host, where others may read it."),
  ]

  /// - Parameter sources: arguments, of which the first that have something count: those behind the command, those in front of it, the
  ///   environment.
  /// - Throws: `UsageError` for what isn't an address, for a file that can't be read, and for what contradicts itself.
  init(_ sources: [ParsedArguments]) throws(UsageError) {
    for arguments in sources {
      let servers = try arguments.values("server", Self.servers)
      if servers.isEmpty { continue }
      self.servers = servers.flatMap(\.self)
      break
    }
    allowsPlaintextCredentials = sources.contains { $0.has("allow-plaintext-credentials") }
    credentials = try Self.credentials(sources)
    tls = try Self.tls(sources, for: servers)
  }

  func apply(to options: inout ClientOptions) {
    options.credentials = credentials
    options.allowsPlaintextCredentials = allowsPlaintextCredentials
    options.tls = tls
  }

  private static func servers(_ text: String) throws(ValueError) -> [SocketAddress] {
    var servers: [SocketAddress] = []
    for part in text.split(separator: ",", omittingEmptySubsequences: false) {
      servers.append(try Values.address(String(part)))
    }
    return servers
  }

  // MARK: Credentials

  private static func credentials(_ sources: [ParsedArguments]) throws(UsageError) -> ClientCredentials {
    let names = ["user", "password-file", "token-file"]
    // What was given on the command line isn't mixed with what is in the environment for something else.
    guard let source = sources.first(where: { source in names.contains(where: source.has) }) else {
      return .none
    }
    try source.allowOne(of: "token-file", "user")
    try source.allowOne(of: "token-file", "password-file")
    if let path = source.text("token-file") { return try .file(path) { .token($0) } }
    guard let path = sources.compactMap({ $0.text("password-file") }).first else {
      throw UsageError(
        "--user needs --password-file: a password isn't given on the command line, where others can read it")
    }
    guard let user = sources.compactMap({ $0.text("user") }).first else {
      throw UsageError("--password-file needs --user")
    }
    return try .file(path) { .password($0, user: user) }
  }
}

extension ClientCredentials {
  /// Those whose secret is the first line of a file, read each time.
  ///
  /// - Throws: `UsageError` when it can't be read now.
  fileprivate static func file(
    _ path: String, _ make: @escaping @Sendable (String) -> ClientCredentials
  ) throws(UsageError) -> ClientCredentials {
    _ = try SecretFile.firstLine(of: path)
    return .provider { make(try SecretFile.firstLine(of: path)) }
  }
}

/// A file with a password or a token in it.
private enum SecretFile {
  /// HELLO has room for no more.
  private static let longest = 8_192

  static func firstLine(of path: String) throws(UsageError) -> String {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw UsageError("\(path) can't be read: \(IOError(action: path, code: errno).reasonText)")
    }
    defer { close(descriptor) }
    var bytes: [UInt8] = []
    while bytes.count <= longest, !bytes.contains(UInt8(ascii: "\n")) {
      let count = bytes.count
      bytes += [UInt8](repeating: 0, count: 1_024)
      let result = unsafe bytes.withUnsafeMutableBytes {
        unsafe read(descriptor, $0.baseAddress! + count, 1_024)
      }
      bytes.removeLast(1_024 - max(result, 0))
      if result < 0, errno == EINTR { continue }
      guard result >= 0 else {
        throw UsageError("\(path) can't be read: \(IOError(action: path, code: errno).reasonText)")
      }
      if result == 0 { break }
    }
    var line = bytes.prefix { $0 != UInt8(ascii: "\n") }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    guard !line.isEmpty else { throw UsageError("there is nothing in the first line of \(path)") }
    guard line.count <= longest, let text = String(validating: line, as: UTF8.self) else {
      throw UsageError("the first line of \(path) is too long, or isn't text")
    }
    return text
  }
}

extension IOError {
  /// What is wrong, without what was tried.
  fileprivate var reasonText: String { String(description.dropFirst(action.count + 2)) }
}
