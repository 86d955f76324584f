import SluiceIO
import SluiceWire

/// Why something failed: a code for programs, a sentence for people.
///
/// ```swift
/// do {
///   _ = try await Client.connect(to: "127.0.0.1:7420")
/// } catch where error.code == .connectionRefused {
///   print("start a broker first: \(error)")
/// }
/// ```
public struct ClientError: Error, Hashable, Sendable, CustomStringConvertible {
  /// The kind of a failure: a number with a name. More may be added, so a `switch` has a default.
  ///
  /// Numbers below 1,000 are the protocol's, which the broker sends; the others are of failures that the client detects itself.
  public struct Code: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
    public let rawValue: UInt32

    public init(rawValue: UInt32) {
      self.rawValue = rawValue
    }

    /// With the number of a code of the protocol.
    fileprivate init(numbered code: ErrorCode) {
      rawValue = code.rawValue
    }

    fileprivate init(_ rawValue: UInt32) {
      self.rawValue = rawValue
    }

    /// Its name, such as `topic-ended`.
    public var description: String { Self.names[rawValue] ?? "error \(rawValue)" }

    // The connection
    /// The address isn't one.
    public static let invalidAddress = Code(1000)
    /// No process listens at the address.
    public static let connectionRefused = Code(1001)
    /// The connection couldn't be made for another reason: no such host, no route.
    public static let connectFailed = Code(1002)
    /// The connection, or the handshake, took too long.
    public static let connectTimeout = Code(1003)
    /// The server at the address isn't a Sluice broker.
    public static let notSluice = Code(numbered: .notSluice)
    /// TLS couldn't be set up with ``ClientOptions/tls``, or the handshake failed: the server doesn't use TLS at this address, or shares no
    /// TLS version with this library.
    public static let tlsFailed = Code(1004)
    /// The client has refused the broker's certificate, or the broker the client's.
    public static let certificateRefused = Code(1005)
    /// The broker speaks no version of the protocol that this library speaks.
    public static let versionMismatch = Code(numbered: .versionMismatch)
    /// The connection was cut off without a reason from the broker.
    public static let cutOff = Code(1006)
    /// The broker was silent for too long, or has closed the connection because this client was.
    public static let keepaliveTimeout = Code(numbered: .keepaliveTimeout)
    /// The broker requires credentials: see ``ClientOptions/credentials``.
    public static let authenticationRequired = Code(numbered: .authenticationRequired)
    /// The broker has refused the client's credentials, or the client isn't allowed to connect.
    public static let authenticationFailed = Code(numbered: .authenticationFailed)
    /// The client's credentials have expired.
    public static let credentialsExpired = Code(numbered: .credentialsExpired)
    /// The client's access was revoked while it was connected.
    public static let accessRevoked = Code(numbered: .accessRevoked)
    /// The broker has too many clients to authenticate; try again later.
    public static let tooManyAttempts = Code(numbered: .tooManyAttempts)
    /// Credentials weren't sent over an unencrypted connection: see ``ClientOptions/allowsPlaintextCredentials``.
    public static let insecureConnection = Code(1007)
    /// The program didn't provide the client's credentials: see ``ClientCredentials/provider(_:)``.
    public static let credentialsUnavailable = Code(1008)
    /// Nothing was open on the connection for longer than the broker allows.
    public static let idleTimeout = Code(numbered: .idleTimeout)
    /// The client didn't read the broker's output for longer than the broker allows.
    public static let writeTimeout = Code(numbered: .writeTimeout)
    /// An operator has closed the connection.
    public static let closedByOperator = Code(numbered: .closedByOperator)
    /// The broker is stopping.
    public static let shuttingDown = Code(numbered: .shuttingDown)
    /// The broker has reached its limit of connections.
    public static let tooManyConnections = Code(numbered: .tooManyConnections)
    /// The client or the broker has violated the protocol.
    public static let protocolViolation = Code(1009)
    /// The connection was lost, and the client couldn't reconnect within the time or the attempts of ``ReconnectPolicy``.
    public static let gaveUp = Code(1010)
    /// A request wasn't answered in time.
    public static let requestTimeout = Code(1011)
    /// The topic of a request has no subscriber that could reply. The request wasn't published.
    public static let noResponders = Code(numbered: .noResponders)
    /// The responder has failed to answer the request.
    public static let replyFailed = Code(1012)
    /// The program has closed or released the client.
    public static let closed = Code(1013)
    /// The client was shut down before everything was published: see ``Client/shutdown(within:)``.
    public static let flushTimeout = Code(1014)
    /// The task that waited was cancelled.
    public static let cancelled = Code(1015)

    // A topic, a request
    /// The topic's name is invalid.
    public static let invalidTopic = Code(numbered: .invalidTopic)
    /// No such topic.
    public static let unknownTopic = Code(numbered: .unknownTopic)
    /// The client may not do this with this topic, whether there is one or not.
    public static let permissionDenied = Code(numbered: .permissionDenied)
    /// The topic has ended: nothing can be published to it.
    public static let topicEnded = Code(numbered: .topicEnded)
    /// A producer ended the topic with a failure.
    public static let topicFailed = Code(1016)
    /// The topic has had no producer for as long as its setting `whenProducerLost` allows, and has failed.
    public static let producerLost = Code(numbered: .producerLost)
    /// The topic was deleted.
    public static let topicDeleted = Code(numbered: .topicDeleted)
    /// The topic exists with other settings.
    public static let topicExists = Code(numbered: .topicExists)
    /// A record exceeds the broker's limit.
    public static let recordTooLarge = Code(numbered: .recordTooLarge)
    /// Records were dropped before they were requested, and the subscription doesn't skip them.
    public static let lagged = Code(numbered: .lagged)
    /// The topic was started anew.
    public static let epochChanged = Code(numbered: .epochChanged)
    /// A setting is out of range.
    public static let invalidSetting = Code(numbered: .invalidSetting)
    /// A limit of the broker was reached.
    public static let limitReached = Code(numbered: .limitReached)
    /// The broker doesn't support this.
    public static let unsupported = Code(numbered: .unsupported)
    /// The record was dropped for a newer one, since the subject's buffer was full: see ``TopicSubject/WhenFull/dropOldest``.
    public static let bufferFull = Code(1017)
    /// Another publication was opened with the same producer's id.
    public static let producerFenced = Code(numbered: .producerFenced)
    /// The group has other settings than requested, or its name is a durable cursor's; or the reverse.
    public static let groupMismatch = Code(numbered: .groupMismatch)
    /// Another subscription was opened with the same durable cursor.
    public static let cursorTaken = Code(numbered: .cursorTaken)
    /// The durable cursor, or group, was moved; subscribe again to continue at its new position.
    public static let cursorMoved = Code(numbered: .cursorMoved)
    /// The durable cursor, or group, was deleted; subscribe again to create a new one.
    public static let cursorDeleted = Code(numbered: .cursorDeleted)
    /// The topic keeps the newest record of each key, and the record has no key.
    public static let keyRequired = Code(numbered: .keyRequired)
    /// No such durable cursor or group.
    public static let unknownCursor = Code(numbered: .unknownCursor)
    /// No connection has that number.
    public static let unknownConnection = Code(numbered: .unknownConnection)
    /// No node of the cluster has served the topic for as long as the client tries: see ``ReconnectPolicy``.
    public static let topicMoved = Code(numbered: .topicMoved)
    /// The broker's storage is full: nothing can be published to durable topics until it has room.
    public static let storageFull = Code(numbered: .storageFull)
    /// The broker's storage fails: nothing can be published to durable topics until it works.
    public static let storageFailed = Code(numbered: .storageFailed)
    /// A record couldn't be decoded as the subscriber's type.
    public static let decodeFailed = Code(1018)
    /// A value couldn't be encoded to be published.
    public static let encodeFailed = Code(1019)
    /// The broker refused with a code that this library doesn't know; see ``ClientError/brokerCode``.
    public static let refused = Code(1020)

    /// Every code that this version of the library knows, with its name.
    package static let all: [(code: Code, name: String)] = [
      (.invalidAddress, "invalid-address"),
      (.connectionRefused, "connection-refused"),
      (.connectFailed, "connect-failed"),
      (.connectTimeout, "connect-timeout"),
      (.notSluice, "not-sluice"),
      (.tlsFailed, "tls-failed"),
      (.certificateRefused, "certificate-refused"),
      (.versionMismatch, "version-mismatch"),
      (.cutOff, "cut-off"),
      (.keepaliveTimeout, "keepalive-timeout"),
      (.authenticationRequired, "authentication-required"),
      (.authenticationFailed, "authentication-failed"),
      (.credentialsExpired, "credentials-expired"),
      (.accessRevoked, "access-revoked"),
      (.tooManyAttempts, "too-many-attempts"),
      (.insecureConnection, "insecure-connection"),
      (.credentialsUnavailable, "credentials-unavailable"),
      (.idleTimeout, "idle-timeout"),
      (.writeTimeout, "write-timeout"),
      (.closedByOperator, "closed-by-operator"),
      (.shuttingDown, "shutting-down"),
      (.tooManyConnections, "too-many-connections"),
      (.protocolViolation, "protocol-violation"),
      (.gaveUp, "gave-up"),
      (.requestTimeout, "request-timeout"),
      (.noResponders, "no-responders"),
      (.replyFailed, "reply-failed"),
      (.closed, "closed"),
      (.flushTimeout, "flush-timeout"),
      (.cancelled, "cancelled"),
      (.invalidTopic, "invalid-topic"),
      (.unknownTopic, "unknown-topic"),
      (.permissionDenied, "permission-denied"),
      (.topicEnded, "topic-ended"),
      (.topicFailed, "topic-failed"),
      (.producerLost, "producer-lost"),
      (.topicDeleted, "topic-deleted"),
      (.topicExists, "topic-exists"),
      (.recordTooLarge, "record-too-large"),
      (.lagged, "lagged"),
      (.epochChanged, "epoch-changed"),
      (.invalidSetting, "invalid-setting"),
      (.limitReached, "limit-reached"),
      (.unsupported, "unsupported"),
      (.bufferFull, "buffer-full"),
      (.producerFenced, "producer-fenced"),
      (.groupMismatch, "group-mismatch"),
      (.cursorTaken, "cursor-taken"),
      (.cursorMoved, "cursor-moved"),
      (.cursorDeleted, "cursor-deleted"),
      (.keyRequired, "key-required"),
      (.unknownCursor, "unknown-cursor"),
      (.unknownConnection, "unknown-connection"),
      (.topicMoved, "topic-moved"),
      (.storageFull, "storage-full"),
      (.storageFailed, "storage-failed"),
      (.decodeFailed, "decode-failed"),
      (.encodeFailed, "encode-failed"),
      (.refused, "refused"),
    ]

    private static let names = Dictionary(uniqueKeysWithValues: all.map { ($0.code.rawValue, $0.name) })
  }

  public var code: Code
  /// A line without a full stop: the cause, and what to do.
  public var message: String
  /// The topic concerned, if any.
  public var topic: String?
  /// The offset of the record concerned, if any.
  public var offset: UInt64?
  /// The protocol's error code: of the broker, of the producer that failed the topic, or of the broker's protocol violation. Nil for other errors that the
  /// client has detected.
  public var brokerCode: UInt32?

  init(_ code: Code, _ message: String, topic: String? = nil, brokerCode: UInt32? = nil) {
    self.code = code
    self.message = message
    self.topic = topic
    self.brokerCode = brokerCode
  }

  /// A failure for a producer to end its topic with.
  ///
  /// ```swift
  /// subject.send(completion: .failure(.topicFailure("the sensor is gone")))
  /// ```
  ///
  /// - Parameters:
  ///   - message: the message for subscribers, cut at 65,535 bytes.
  ///   - code: a code of the program's, 200 or more.
  public static func topicFailure(_ message: String, code: UInt32 = 200) -> ClientError {
    ClientError(.topicFailed, message, brokerCode: code)
  }

  public var description: String { message }
}

// MARK: - From frames

extension ClientError {
  /// The broker's error for a request, a stream or the connection.
  init(_ fault: Fault, topic: String? = nil) {
    self.init(Code(fault.code), fault.message, topic: topic, brokerCode: fault.code.rawValue)
  }

  /// The failure with which a topic has ended.
  init(failureOf topic: String, code: ErrorCode, message: String) {
    self.init(
      code == .producerLost ? .producerLost : .topicFailed,
      message.isEmpty ? "topic \(topic) has failed, and its producer gave no reason" : message,
      topic: topic, brokerCode: code.rawValue)
  }

  /// A parameter that is invalid and isn't sent.
  init(_ error: WireError, topic: String?) {
    self.init(Fault(error), topic: topic)
  }

  static let closedHere = ClientError(.closed, "the client was closed; connect again to continue")
  static let clientReleased = ClientError(
    .closed,
    "the Client was released, which closes its connection; hold it for as long as its topics and subjects are used"
  )
  static let publishingCancelled = ClientError(.cancelled, "the publication was cancelled")
  static let waitCancelled = ClientError(.cancelled, "the task that waited was cancelled")

  /// The broker has violated the protocol.
  static func violation(_ error: WireError, by peer: SocketAddress) -> ClientError {
    ClientError(
      .protocolViolation,
      "the broker at \(peer) broke the protocol: \(error.message); are client and broker of compatible versions?",
      brokerCode: error.code.rawValue)
  }
}

extension ClientError.Code {
  init(_ code: ErrorCode) {
    switch code {
    case .handshakeTimeout: self = .connectTimeout
    case .malformedFrame, .frameTooLarge, .unsupportedFrame, .unexpectedFrame, .invalidStream,
      .malformedBatch, .demandExceeded, .invalidDemand:
      self = .protocolViolation
    case .producerFailure: self = .topicFailed
    // The others have the same numbers here.
    case _ where code.isDefined: self.init(numbered: code)
    default: self = .refused
    }
  }
}
