import Glibc

/// The credentials that prove a client's identity.
public enum NATSCredentials: Sendable {
  /// No credentials, or a certificate over TLS.
  case none
  case password(user: String, password: String)
  case token(String)
  /// The server's settings contain the public key.
  case nkey(NKey)
  /// The server trusts the signer of the token, which contains the public key.
  case signedToken(jwt: String, NKey)

  /// Reads a credentials file, which contains a token and a seed between lines of dashes.
  ///
  /// ```text
  /// -----BEGIN NATS USER JWT-----
  /// eyJ0eXAiOiJKV1QiLCJhbGciOiJlZDI1NTE5LW5rZXkifQ.…
  /// ------END NATS USER JWT------
  /// -----BEGIN USER NKEY SEED-----
  /// SUA…
  /// ------END USER NKEY SEED------
  /// ```
  ///
  /// - Throws: ``NATSError/Code-swift.struct/invalidCredentials``. The message contains no part of the contents.
  public init(contents: [UInt8]) throws(NATSError) {
    let text = String(decoding: contents, as: UTF8.self)
    guard let jwt = Self.block("USER JWT", in: text), let seed = Self.block("USER NKEY SEED", in: text) else {
      throw NATSError(
        .invalidCredentials,
        "the credentials have no block 'NATS USER JWT' or no block 'USER NKEY SEED'; make them with nsc generate creds"
      )
    }
    guard jwt.split(separator: ".", omittingEmptySubsequences: false).count == 3,
      jwt.utf8.allSatisfy({ $0 > 0x20 && $0 < 0x7F && $0 != 0x22 && $0 != 0x5C })
    else {
      throw NATSError(
        .invalidCredentials, "the credentials' token isn't three parts between dots; make them anew")
    }
    self = .signedToken(jwt: String(jwt), try NKey(seed: seed))
  }

  /// The text between the line that begins a block and the next one with dashes.
  private static func block(_ name: String, in text: String) -> Substring? {
    var isInside = false
    for line in text.split(whereSeparator: \.isNewline) {
      let line = line.trimmingBlanks
      if line.hasPrefix("---") {
        if isInside { return nil }
        isInside = line.contains("BEGIN") && line.contains(name)
      } else if isInside, !line.isEmpty {
        return line
      }
    }
    return nil
  }

  /// Whether an eavesdropper could use the credentials.
  var isSecretSent: Bool {
    switch self {
    case .password, .token: true
    case .none, .nkey, .signedToken: false
    }
  }
}

extension Substring {
  var trimmingBlanks: Substring {
    var text = self
    while let first = text.first, first == " " || first == "\t" { text.removeFirst() }
    while let last = text.last, last == " " || last == "\t" { text.removeLast() }
    return text
  }
}

/// The source of a client's credentials, which is read at each connection.
public enum NATSCredentialsSource: Sendable {
  case fixed(NATSCredentials)
  /// A file with a token and a seed, read at each connection, so that new credentials need no restart.
  case file(String)
  /// A file with a seed, read at each connection.
  case seedFile(String)
  /// A user, and a file whose first line is the password, read at each connection.
  case passwordFile(user: String, String)
  /// A file whose first line is a token, read at each connection.
  case tokenFile(String)

  /// Returns the present credentials. Reads a small file, which may block.
  ///
  /// - Throws: ``NATSError/Code-swift.struct/invalidCredentials`` with the file's path.
  func credentials() throws(NATSError) -> NATSCredentials {
    switch self {
    case .fixed(let credentials): return credentials
    case .file(let path):
      return try Self.read(path) { contents throws(NATSError) in try NATSCredentials(contents: contents) }
    case .seedFile(let path):
      return try Self.read(path) { contents throws(NATSError) in
        .nkey(try NKey(seed: String(decoding: contents, as: UTF8.self)))
      }
    case .passwordFile(let user, let path):
      return try Self.read(path) { contents throws(NATSError) in
        .password(user: user, password: try Self.firstLine(contents))
      }
    case .tokenFile(let path):
      return try Self.read(path) { contents throws(NATSError) in .token(try Self.firstLine(contents)) }
    }
  }

  private static func firstLine(_ contents: [UInt8]) throws(NATSError) -> String {
    var line = contents.prefix { $0 != UInt8(ascii: "\n") }
    if line.last == UInt8(ascii: "\r") { line.removeLast() }
    guard !line.isEmpty, let text = String(validating: line, as: UTF8.self) else {
      throw NATSError(.invalidCredentials, "the first line is empty, or no text")
    }
    return text
  }

  /// The most bytes of such a file.
  private static let limit = 64 << 10

  private static func read(
    _ path: String, _ body: ([UInt8]) throws(NATSError) -> NATSCredentials
  ) throws(NATSError) -> NATSCredentials {
    let descriptor = unsafe open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      throw NATSError(
        .invalidCredentials, unsafe "'\(path)' can't be read: \(String(cString: strerror(errno)))")
    }
    defer { close(descriptor) }
    var contents: [UInt8] = []
    var chunk = [UInt8](repeating: 0, count: 4_096)
    while contents.count < limit {
      let count = unsafe Glibc.read(descriptor, &chunk, chunk.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else {
        throw NATSError(
          .invalidCredentials, unsafe "'\(path)' can't be read: \(String(cString: strerror(errno)))")
      }
      if count == 0 { break }
      contents += chunk[..<count]
    }
    do throws(NATSError) {
      return try body(contents)
    } catch {
      throw NATSError(error.code, "'\(path)': \(error.message)")
    }
  }
}
