/// The reason for a failure: a code for programs, and a sentence for people that names the server and a remedy.
public struct NATSError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of failure. More may be added.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    public let description: String

    private init(_ name: String) {
      description = name
    }

    // The connection
    /// The address, or the list of addresses, is invalid.
    public static let invalidAddress = Code("invalid-address")
    /// The connection couldn't be made: no process listens, no such host, no route.
    public static let connectFailed = Code("connect-failed")
    /// The connection or its handshake took too long.
    public static let connectTimeout = Code("connect-timeout")
    /// TLS couldn't be set up, or its handshake failed.
    public static let tlsFailed = Code("tls-failed")
    /// A certificate was rejected: the server's by the client, or the client's by the server.
    public static let certificateRefused = Code("certificate-refused")
    /// The credentials can't be used: the file, the seed or its checksum is wrong.
    public static let invalidCredentials = Code("invalid-credentials")
    /// The credentials weren't sent because the connection isn't encrypted.
    public static let insecureConnection = Code("insecure-connection")
    /// The server has rejected the credentials.
    public static let authenticationFailed = Code("authentication-failed")
    /// The credentials have expired or were revoked.
    public static let credentialsExpired = Code("credentials-expired")
    /// The server has reached its limit of connections, or of those of the account.
    public static let tooManyConnections = Code("too-many-connections")
    /// The server or the client has broken the protocol.
    public static let protocolViolation = Code("protocol-violation")
    /// The server was silent for too long, or has dropped the client for the same reason.
    public static let keepaliveTimeout = Code("keepalive-timeout")
    /// The server has dropped the client because it didn't read fast enough.
    public static let slowConsumer = Code("slow-consumer")
    /// The connection was closed without a reason from the server.
    public static let cutOff = Code("cut-off")
    /// No server could be reached within the limits of ``NATSReconnectPolicy``.
    public static let gaveUp = Code("gave-up")
    /// The program has closed the client.
    public static let closed = Code("closed")

    // Messages and requests
    /// The subject is invalid.
    public static let invalidSubject = Code("invalid-subject")
    /// A header's name or value is invalid.
    public static let invalidHeader = Code("invalid-header")
    /// Headers and payload exceed the server's limit. Nothing was sent.
    public static let payloadTooLarge = Code("payload-too-large")
    /// The server doesn't let this client use the subject.
    public static let permissionDenied = Code("permission-denied")
    /// There is no connection, or it ended before the message was written. Nothing has happened, and repeating it is safe.
    public static let notSent = Code("not-sent")
    /// Too many bytes wait for the server. Nothing was sent.
    public static let backlogFull = Code("backlog-full")
    /// No client subscribes to the subject of a request.
    public static let noResponders = Code("no-responders")
    /// A request wasn't answered in time. It may have been processed.
    public static let timeout = Code("timeout")
    /// The connection was lost, or the time ran out, after the request was written. It may have been processed, which the caller must find out before
    /// repeating it.
    public static let outcomeUnknown = Code("outcome-unknown")

    // JetStream
    /// The stream's or the subject's last sequence isn't the expected one, because of another writer. Nothing was stored.
    public static let wrongLastSequence = Code("wrong-last-sequence")
    /// The stream doesn't exist.
    public static let streamNotFound = Code("stream-not-found")
    /// The stream exists with other settings.
    public static let streamExists = Code("stream-exists")
    /// The consumer doesn't exist.
    public static let consumerNotFound = Code("consumer-not-found")
    /// There is no such message.
    public static let messageNotFound = Code("message-not-found")
    /// More subjects match than one answer can contain: see ``JetStream/maximumSubjects``.
    public static let tooManySubjects = Code("too-many-subjects")
    /// The engine's disk, memory or the account's limit is exhausted.
    public static let resourcesExhausted = Code("resources-exhausted")
    /// JetStream has no leader at present, or isn't enabled at this server or for this account.
    public static let unavailable = Code("unavailable")
    /// An atomic batch was rejected: disabled, too long, or messages are missing. Nothing was stored.
    public static let batchRefused = Code("batch-refused")
    /// The settings of a stream, a consumer or a message were rejected.
    public static let invalidRequest = Code("invalid-request")
    /// The answer doesn't conform to the API.
    public static let malformedAnswer = Code("malformed-answer")
    /// The engine has rejected the request with a code that has no name here: see ``NATSError/engineCode``.
    public static let refused = Code("refused")
  }

  public var code: Code
  /// The event and the remedy: one line without a full stop.
  public var message: String
  /// The server concerned, as `name (address)`; nil if no server was involved.
  public var server: String?
  /// The stream concerned, if any.
  public var stream: String?
  /// The subject concerned, if any.
  public var subject: String?
  /// JetStream's own number for the error, such as 10071; nil for other errors.
  public var engineCode: Int?
  /// The last sequence that the engine has reported with ``Code-swift.struct/wrongLastSequence``; nil if it reported none.
  public var lastSequence: UInt64?

  /// For layers above the client, and for models of the engine.
  public init(_ code: Code, _ message: String, server: String? = nil) {
    self.code = code
    self.message = message
    self.server = server
  }

  /// The message with the stream and the server concerned.
  public var description: String {
    let place = [stream.map { "stream \($0)" }, server.map { "server \($0)" }].compactMap { $0 }
    return place.isEmpty ? message : "\(message) (\(place.joined(separator: ", ")))"
  }

  /// The error for a violation of the protocol by the server.
  static func violation(_ problem: String) -> NATSError {
    NATSError(
      .protocolViolation,
      "the server broke the protocol of NATS: \(problem); is it a NATS server of version 2.10 or later?")
  }

  func at(_ server: String?) -> NATSError {
    var error = self
    if error.server == nil { error.server = server }
    return error
  }

  func of(stream: String) -> NATSError {
    var error = self
    error.stream = stream
    return error
  }

  /// Text from a peer, cut to the length for a message. The program that shows the message escapes it.
  static func bounded(_ text: String) -> String { String(text.unicodeScalars.prefix(200)) }
}

// MARK: - From the server's texts

extension NATSError {
  /// Translates the server's `-ERR`.
  ///
  /// - Parameter isFatal: whether the server closes the connection after it.
  static func read(_ text: String) -> (error: NATSError, isFatal: Bool) {
    let text = bounded(text)
    let lower = text.lowercased()
    if let subject = quoted(in: text, behind: "permissions violation") {
      var error = NATSError(
        .permissionDenied,
        "the server doesn't let this client use the subject \(subject) (\(text)); change the user's permissions"
      )
      error.subject = subject
      return (error, false)
    }
    if lower.hasPrefix("permissions violation") || lower == "invalid subject"
      || lower == "invalid publish subject"
    {
      return (NATSError(.permissionDenied, "the server refused a subject: \(text)"), false)
    }
    for (prefix, code, meaning) in table where lower.hasPrefix(prefix) {
      return (NATSError(code, "\(meaning) (\(text))"), true)
    }
    return (NATSError(.refused, "the server closed the connection: \(text)"), true)
  }

  /// The beginnings of the server's texts in lower case, and their meanings.
  private static let table: [(String, Code, String)] = [
    (
      "authorization violation", .authenticationFailed,
      "the server refused the credentials; check the user, password, token or credentials file"
    ),
    (
      "authorization timeout", .authenticationFailed,
      "the credentials reached the server too late; check the network and the server's auth timeout"
    ),
    (
      "user authentication expired", .credentialsExpired,
      "the user's credentials have expired; provide new ones"
    ),
    (
      "account authentication expired", .credentialsExpired,
      "the account's credentials have expired; provide new ones"
    ),
    (
      "user authentication revoked", .credentialsExpired,
      "the user's credentials were revoked; provide new ones"
    ),
    ("authentication timeout", .authenticationFailed, "the credentials reached the server too late"),
    (
      "maximum connections exceeded", .tooManyConnections,
      "the server has as many connections as it may have; raise its max_connections"
    ),
    (
      "maximum account active connections exceeded", .tooManyConnections,
      "the account has as many connections as it may have; raise its limit"
    ),
    (
      "maximum subscriptions exceeded", .invalidRequest,
      "the client has as many subscriptions as it may have; raise the server's max_subscriptions"
    ),
    ("stale connection", .keepaliveTimeout, "the server heard nothing from this client for too long"),
    ("slow consumer", .slowConsumer, "the client read too slowly, and the server dropped it"),
    (
      "secure connection", .tlsFailed,
      "the server requires TLS; use tls:// in its address"
    ),
    (
      "maximum payload", .payloadTooLarge,
      "a message was larger than the server allows; raise its max_payload"
    ),
    (
      "attempted to connect to route port", .protocolViolation,
      "the address is that of the server's cluster port; use the port for clients"
    ),
    (
      "attempted to connect to leaf node port", .protocolViolation,
      "the address is that of the server's leaf node port; use the port for clients"
    ),
    ("maximum control line", .protocolViolation, "a line was longer than the server allows"),
    ("parser error", .protocolViolation, "the server didn't understand the client"),
    ("unknown protocol operation", .protocolViolation, "the server didn't understand the client"),
    ("invalid client protocol", .protocolViolation, "the server didn't understand the client"),
    (
      "message header exceeds maximum", .payloadTooLarge,
      "a message's headers were larger than the server allows"
    ),
    ("account not active", .authenticationFailed, "the account isn't active; check the server's accounts"),
    ("server shutdown", .cutOff, "the server is stopping"),
  ]

  /// The first text in double quotes, if the whole text begins with `beginning`.
  private static func quoted(in text: String, behind beginning: String) -> String? {
    guard text.lowercased().hasPrefix(beginning), let first = text.firstIndex(of: "\"") else { return nil }
    let rest = text[text.index(after: first)...]
    return rest.firstIndex(of: "\"").map { String(rest[..<$0]) }
  }
}
