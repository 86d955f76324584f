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

    private init(_ name: String) {
      description = name
    }

    // The connection
    /// The address isn't one.
    public static let invalidAddress = Code("invalid-address")
    /// Nobody listens at the address.
    public static let connectionRefused = Code("connection-refused")
    /// The connection couldn't be made for another reason: no such host, no route.
    public static let connectFailed = Code("connect-failed")
    /// The connection, or the handshake, took too long.
    public static let connectTimeout = Code("connect-timeout")
    /// Whoever answers isn't a Sluice broker.
    public static let notSluice = Code("not-sluice")
    /// TLS couldn't be set up with ``ClientOptions/tls``, or the handshake failed: the other side doesn't speak it there, or not as this
    /// library does.
    public static let tlsFailed = Code("tls-failed")
    /// The broker's certificate wasn't good enough for the client, or the client's for the broker.
    public static let certificateRefused = Code("certificate-refused")
    /// The broker speaks no version of the protocol that this library speaks.
    public static let versionMismatch = Code("version-mismatch")
    /// The connection broke off, and nobody said why.
    public static let cutOff = Code("cut-off")
    /// The broker was silent for too long, or found that this client was.
    public static let keepaliveTimeout = Code("keepalive-timeout")
    /// The broker wants to know who its clients are: see ``ClientOptions/credentials``.
    public static let authenticationRequired = Code("authentication-required")
    /// The broker doesn't believe that the client is who it says, or that it may connect.
    public static let authenticationFailed = Code("authentication-failed")
    /// The client's credentials have expired.
    public static let credentialsExpired = Code("credentials-expired")
    /// The broker was told that the client may not be connected any more.
    public static let accessRevoked = Code("access-revoked")
    /// The broker has too many clients to authenticate; try again later.
    public static let tooManyAttempts = Code("too-many-attempts")
    /// Credentials weren't sent, since others could have read them: see ``ClientOptions/allowsPlaintextCredentials``.
    public static let insecureConnection = Code("insecure-connection")
    /// The client's credentials couldn't be had: see ``ClientCredentials/provider(_:)``.
    public static let credentialsUnavailable = Code("credentials-unavailable")
    /// Nothing was open on the connection for longer than the broker allows.
    public static let idleTimeout = Code("idle-timeout")
    /// The client didn't read what the broker sent for longer than that allows.
    public static let writeTimeout = Code("write-timeout")
    /// The broker is stopping.
    public static let shuttingDown = Code("shutting-down")
    /// The broker has as many connections as it may.
    public static let tooManyConnections = Code("too-many-connections")
    /// One of the two sides broke the rules of the protocol.
    public static let protocolViolation = Code("protocol-violation")
    /// The connection was lost, and no other could be made in the time, or the attempts, that ``ReconnectPolicy`` allows.
    public static let gaveUp = Code("gave-up")
    /// A request wasn't answered in time.
    public static let requestTimeout = Code("request-timeout")
    /// The topic of a request has no subscriber, so nothing can reply. The request wasn't published.
    public static let noResponders = Code("no-responders")
    /// Whoever replies to a request says that it can't be answered.
    public static let replyFailed = Code("reply-failed")
    /// The client was closed or released here.
    public static let closed = Code("closed")
    /// The task that waited was cancelled.
    public static let cancelled = Code("cancelled")

    // A topic, a request
    /// The topic's name isn't one.
    public static let invalidTopic = Code("invalid-topic")
    /// No such topic.
    public static let unknownTopic = Code("unknown-topic")
    /// The client may not do this with this topic, whether there is one or not.
    public static let permissionDenied = Code("permission-denied")
    /// The topic is over: nothing can be published to it.
    public static let topicEnded = Code("topic-ended")
    /// A producer ended the topic with a failure.
    public static let topicFailed = Code("topic-failed")
    /// The topic has had no producer for as long as its setting `whenProducerLost` allows, and has failed.
    public static let producerLost = Code("producer-lost")
    /// The topic was deleted.
    public static let topicDeleted = Code("topic-deleted")
    /// The topic exists with other settings.
    public static let topicExists = Code("topic-exists")
    /// A record is longer than may be.
    public static let recordTooLarge = Code("record-too-large")
    /// Records were dropped before they were asked for, and the subscription didn't want to skip them.
    public static let lagged = Code("lagged")
    /// The topic was started anew.
    public static let epochChanged = Code("epoch-changed")
    /// A setting is out of range.
    public static let invalidSetting = Code("invalid-setting")
    /// A limit of the broker was reached.
    public static let limitReached = Code("limit-reached")
    /// The broker can't do this.
    public static let unsupported = Code("unsupported")
    /// More was sent than may wait, see ``TopicSubject/WhenFull``.
    public static let bufferFull = Code("buffer-full")
    /// Another publication was opened with the same producer's id.
    public static let producerFenced = Code("producer-fenced")
    /// The group has other settings than were asked for, or its name is a durable cursor's; or the reverse.
    public static let groupMismatch = Code("group-mismatch")
    /// Another subscription was opened with the same durable cursor.
    public static let cursorTaken = Code("cursor-taken")
    /// The durable cursor, or group, was put elsewhere in its topic; subscribe again to go on there.
    public static let cursorMoved = Code("cursor-moved")
    /// The durable cursor, or group, was deleted; subscribe again to make it anew.
    public static let cursorDeleted = Code("cursor-deleted")
    /// The topic keeps the newest record of each key, and was given one without a key.
    public static let keyRequired = Code("key-required")
    /// No such durable cursor or group.
    public static let unknownCursor = Code("unknown-cursor")
    /// The broker's storage has no room left: nothing can be published to durable topics until there is.
    public static let storageFull = Code("storage-full")
    /// The broker's storage fails: nothing can be published to durable topics until it works again.
    public static let storageFailed = Code("storage-failed")
    /// A record couldn't be decoded to what the subscriber wants.
    public static let decodeFailed = Code("decode-failed")
    /// A value couldn't be encoded to be published.
    public static let encodeFailed = Code("encode-failed")
    /// The broker refused with a code that this library doesn't know; see ``ClientError/brokerCode``.
    public static let refused = Code("refused")
  }

  public var code: Code
  /// What is wrong and what to do about it: one line without a full stop.
  public var message: String
  /// The topic that it is about, if it is about one.
  public var topic: String?
  /// The record that it is about, if it is about one.
  public var offset: UInt64?
  /// The number that the broker gave, or the producer that failed the topic.
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
  ///   - message: what subscribers are told, at most 65,535 bytes of it.
  ///   - code: a number of your own, 200 or more.
  public static func topicFailure(_ message: String, code: UInt32 = 200) -> ClientError {
    ClientError(.topicFailed, message, brokerCode: code)
  }

  public var description: String { message }
}

// MARK: - From the parts below

extension ClientError {
  /// What the broker says of a request, a stream or the connection.
  init(_ fault: Fault, topic: String? = nil) {
    self.init(Code(fault.code), fault.message, topic: topic, brokerCode: fault.code.rawValue)
  }

  /// A topic's end as its subscribers are told.
  init(failureOf topic: String, code: ErrorCode, message: String) {
    self.init(
      code == .producerLost ? .producerLost : .topicFailed,
      message.isEmpty ? "topic \(topic) has failed, and its producer didn't say why" : message,
      topic: topic, brokerCode: code.rawValue)
  }

  /// A name or the like that is wrong before it is sent.
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

  /// The broker sent what it mustn't.
  static func violation(_ error: WireError, by peer: SocketAddress) -> ClientError {
    ClientError(
      .protocolViolation,
      "the broker at \(peer) broke the protocol: \(error.message); are client and broker of compatible versions?",
      brokerCode: error.code.rawValue)
  }
}

extension ClientError.Code {
  init(_ code: ErrorCode) {
    self =
      switch code {
      case .notSluice: .notSluice
      case .versionMismatch: .versionMismatch
      case .keepaliveTimeout: .keepaliveTimeout
      case .handshakeTimeout: .connectTimeout
      case .shuttingDown: .shuttingDown
      case .tooManyConnections: .tooManyConnections
      case .malformedFrame, .frameTooLarge, .unsupportedFrame, .unexpectedFrame, .invalidStream,
        .malformedBatch, .demandExceeded, .invalidDemand:
        .protocolViolation
      case .idleTimeout: .idleTimeout
      case .writeTimeout: .writeTimeout
      case .authenticationRequired: .authenticationRequired
      case .authenticationFailed: .authenticationFailed
      case .credentialsExpired: .credentialsExpired
      case .accessRevoked: .accessRevoked
      case .tooManyAttempts: .tooManyAttempts
      case .permissionDenied: .permissionDenied
      case .noResponders: .noResponders
      case .invalidTopic: .invalidTopic
      case .unknownTopic: .unknownTopic
      case .topicEnded: .topicEnded
      case .topicDeleted: .topicDeleted
      case .topicExists: .topicExists
      case .recordTooLarge: .recordTooLarge
      case .lagged: .lagged
      case .epochChanged: .epochChanged
      case .invalidSetting: .invalidSetting
      case .limitReached: .limitReached
      case .unsupported: .unsupported
      case .producerFenced: .producerFenced
      case .groupMismatch: .groupMismatch
      case .cursorTaken: .cursorTaken
      case .cursorMoved: .cursorMoved
      case .cursorDeleted: .cursorDeleted
      case .keyRequired: .keyRequired
      case .unknownCursor: .unknownCursor
      case .storageFull: .storageFull
      case .storageFailed: .storageFailed
      case .producerFailure: .topicFailed
      case .producerLost: .producerLost
      default: .refused
      }
  }
}
