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
  /// What kind of failure it is. More may be added.
  public struct Code: Hashable, Sendable, CustomStringConvertible {
    public let description: String

    fileprivate init(_ name: String) {
      description = name
    }

    // The connection
    /// The address isn't one.
    public static let invalidAddress = Code("invalid-address")
    /// No process listens at the address.
    public static let connectionRefused = Code("connection-refused")
    /// The connection couldn't be made for another reason: no such host, no route.
    public static let connectFailed = Code("connect-failed")
    /// The connection, or the handshake, took too long.
    public static let connectTimeout = Code("connect-timeout")
    /// The server at the address isn't a Sluice broker.
    public static let notSluice = Code("not-sluice")
    /// TLS couldn't be set up with ``ClientOptions/tls``, or the handshake failed: the server doesn't use TLS at this address, or shares no
    /// TLS version with this library.
    public static let tlsFailed = Code("tls-failed")
    /// The client has refused the broker's certificate, or the broker the client's.
    public static let certificateRefused = Code("certificate-refused")
    /// The broker speaks no version of the protocol that this library speaks.
    public static let versionMismatch = Code("version-mismatch")
    /// The connection was cut off without a reason from the broker.
    public static let cutOff = Code("cut-off")
    /// The broker was silent for too long, or has closed the connection because this client was.
    public static let keepaliveTimeout = Code("keepalive-timeout")
    /// The broker requires credentials: see ``ClientOptions/credentials``.
    public static let authenticationRequired = Code("authentication-required")
    /// The broker has refused the client's credentials, or the client isn't allowed to connect.
    public static let authenticationFailed = Code("authentication-failed")
    /// The client's credentials have expired.
    public static let credentialsExpired = Code("credentials-expired")
    /// The client's access was revoked while it was connected.
    public static let accessRevoked = Code("access-revoked")
    /// The broker has too many clients to authenticate; try again later.
    public static let tooManyAttempts = Code("too-many-attempts")
    /// Credentials weren't sent over an unencrypted connection: see ``ClientOptions/allowsPlaintextCredentials``.
    public static let insecureConnection = Code("insecure-connection")
    /// The program didn't provide the client's credentials: see ``ClientCredentials/provider(_:)``.
    public static let credentialsUnavailable = Code("credentials-unavailable")
    /// Nothing was open on the connection for longer than the broker allows.
    public static let idleTimeout = Code("idle-timeout")
    /// The client didn't read the broker's output for longer than the broker allows.
    public static let writeTimeout = Code("write-timeout")
    /// An operator has closed the connection.
    public static let closedByOperator = Code("closed-by-operator")
    /// The broker is stopping.
    public static let shuttingDown = Code("shutting-down")
    /// The broker has reached its limit of connections.
    public static let tooManyConnections = Code("too-many-connections")
    /// The client or the broker has violated the protocol.
    public static let protocolViolation = Code("protocol-violation")
    /// The connection was lost, and the client couldn't reconnect within the time or the attempts of ``ReconnectPolicy``.
    public static let gaveUp = Code("gave-up")
    /// A request wasn't answered in time.
    public static let requestTimeout = Code("request-timeout")
    /// The topic of a request has no subscriber that could reply. The request wasn't published.
    public static let noResponders = Code("no-responders")
    /// The responder has failed to answer the request.
    public static let replyFailed = Code("reply-failed")
    /// The program has closed or released the client.
    public static let closed = Code("closed")
    /// The client was shut down before everything was published: see ``Client/shutdown(within:)``.
    public static let flushTimeout = Code("flush-timeout")
    /// The task that waited was cancelled.
    public static let cancelled = Code("cancelled")

    // A topic, a request
    /// The topic's name is invalid.
    public static let invalidTopic = Code("invalid-topic")
    /// No such topic.
    public static let unknownTopic = Code("unknown-topic")
    /// The client may not do this with this topic, whether there is one or not.
    public static let permissionDenied = Code("permission-denied")
    /// The topic has ended: nothing can be published to it.
    public static let topicEnded = Code("topic-ended")
    /// A producer ended the topic with a failure.
    public static let topicFailed = Code("topic-failed")
    /// The topic has had no producer for as long as its setting `whenProducerLost` allows, and has failed.
    public static let producerLost = Code("producer-lost")
    /// The topic was deleted.
    public static let topicDeleted = Code("topic-deleted")
    /// The topic exists with other settings.
    public static let topicExists = Code("topic-exists")
    /// A record exceeds the broker's limit.
    public static let recordTooLarge = Code("record-too-large")
    /// Records were dropped before they were requested, and the subscription doesn't skip them.
    public static let lagged = Code("lagged")
    /// The topic was started anew.
    public static let epochChanged = Code("epoch-changed")
    /// A setting is out of range.
    public static let invalidSetting = Code("invalid-setting")
    /// A limit of the broker was reached.
    public static let limitReached = Code("limit-reached")
    /// The broker doesn't support this.
    public static let unsupported = Code("unsupported")
    /// The record was dropped for a newer one, since the subject's buffer was full: see ``TopicSubject/WhenFull/dropOldest``.
    public static let bufferFull = Code("buffer-full")
    /// Another publication was opened with the same producer's id.
    public static let producerFenced = Code("producer-fenced")
    /// The group has other settings than requested, or its name is a durable cursor's; or the reverse.
    public static let groupMismatch = Code("group-mismatch")
    /// Another subscription was opened with the same durable cursor.
    public static let cursorTaken = Code("cursor-taken")
    /// The durable cursor, or group, was moved; subscribe again to continue at its new position.
    public static let cursorMoved = Code("cursor-moved")
    /// The durable cursor, or group, was deleted; subscribe again to create a new one.
    public static let cursorDeleted = Code("cursor-deleted")
    /// The topic keeps the newest record of each key, and the record has no key.
    public static let keyRequired = Code("key-required")
    /// No such durable cursor or group.
    public static let unknownCursor = Code("unknown-cursor")
    /// No connection has that number.
    public static let unknownConnection = Code("unknown-connection")
    /// No node of the cluster has served the topic for as long as the client tries: see ``ReconnectPolicy``.
    public static let topicMoved = Code("topic-moved")
    /// The broker's storage is full: nothing can be published to durable topics until it has room.
    public static let storageFull = Code("storage-full")
    /// The broker's storage fails: nothing can be published to durable topics until it works.
    public static let storageFailed = Code("storage-failed")
    /// A record couldn't be decoded as the subscriber's type.
    public static let decodeFailed = Code("decode-failed")
    /// A value couldn't be encoded to be published.
    public static let encodeFailed = Code("encode-failed")
    /// The broker refused with a code that this library doesn't know; see ``ClientError/brokerCode``.
    public static let refused = Code("refused")
  }

  public var code: Code
  /// What has happened and what to do: one line without a full stop.
  public var message: String
  /// The topic concerned, if any.
  public var topic: String?
  /// The offset of the record concerned, if any.
  public var offset: UInt64?
  /// The protocol's error code: the broker's, that of the producer that failed the topic, or the one for a violation by the broker. Nil for other errors that the
  /// client has found itself.
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

  static let closedHere = ClientError(.closed, "the client was closed; connect again to go on")
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
    // The others have the same names here.
    case _ where code.isDefined: self.init(code.description)
    default: self = .refused
    }
  }
}
