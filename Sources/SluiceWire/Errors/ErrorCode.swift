/// A numeric error code of the protocol.
///
/// The number is the interface: messages may be reworded, codes keep their meaning. Codes below 100 are about the connection; the others
/// are about one stream, or answer one request, and leave the connection as it is. In a received ERROR, the stream's number determines
/// whether a stream or the connection has ended.
public struct ErrorCode: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  public var rawValue: UInt32

  public init(rawValue: UInt32) {
    self.rawValue = rawValue
  }

  init(_ rawValue: UInt32) {
    self.rawValue = rawValue
  }

  // Connection
  /// The first bytes aren't this protocol's.
  public static let notSluice = ErrorCode(1)
  /// No protocol version in common.
  public static let versionMismatch = ErrorCode(2)
  /// A frame, or a part of it, contradicts the specification.
  public static let malformedFrame = ErrorCode(3)
  /// A frame is longer than the limit announced in the handshake.
  public static let frameTooLarge = ErrorCode(4)
  /// A frame type or flag that must be understood isn't.
  public static let unsupportedFrame = ErrorCode(5)
  /// A frame that isn't allowed in this state, before the handshake for instance.
  public static let unexpectedFrame = ErrorCode(6)
  /// The peer was silent for longer than the keepalive deadline.
  public static let keepaliveTimeout = ErrorCode(7)
  /// The broker is stopping. Also the answer on streams that it doesn't open any more.
  public static let shuttingDown = ErrorCode(8)
  /// The broker has as many connections as it may.
  public static let tooManyConnections = ErrorCode(9)
  /// The handshake wasn't finished in time.
  public static let handshakeTimeout = ErrorCode(10)

  /// A stream number that is out of the announced range, in use, not open for the frame, or 0 for a frame that needs a
  /// stream. Ends the connection, since the two sides no longer agree on what its numbers mean.
  public static let invalidStream = ErrorCode(11)

  /// The broker requires credentials, and the client sent none.
  public static let authenticationRequired = ErrorCode(12)
  /// The client's credentials are wrong, or it may not connect.
  public static let authenticationFailed = ErrorCode(13)
  /// The client's credentials have expired, and it didn't renew them.
  public static let credentialsExpired = ErrorCode(14)
  /// The client may not be connected any more: it was taken from the broker's list.
  public static let accessRevoked = ErrorCode(15)
  /// Nothing was open on the connection for too long.
  public static let idleTimeout = ErrorCode(16)
  /// The client didn't read what was sent to it.
  public static let writeTimeout = ErrorCode(17)
  /// Too many attempts to authenticate are under way, or were made from the client's address.
  public static let tooManyAttempts = ErrorCode(18)

  /// An operator has closed the connection. The client may connect again.
  public static let closedByOperator = ErrorCode(19)

  // Stream and request
  /// The topic's name isn't one.
  public static let invalidTopic = ErrorCode(101)
  /// No such topic.
  public static let unknownTopic = ErrorCode(102)
  /// The topic has completed or failed; nothing can be published to it.
  public static let topicEnded = ErrorCode(103)
  /// The topic was deleted.
  public static let topicDeleted = ErrorCode(104)
  /// The topic exists with other settings.
  public static let topicExists = ErrorCode(105)
  /// A record is longer than the limit announced in the handshake.
  public static let recordTooLarge = ErrorCode(106)
  /// A batch contradicts its own lengths, or counts.
  public static let malformedBatch = ErrorCode(107)
  /// More records were published than had been granted.
  public static let demandExceeded = ErrorCode(108)
  /// A grant of nothing.
  public static let invalidDemand = ErrorCode(109)
  /// The subscription asked to fail rather than to miss records, and records were dropped.
  public static let lagged = ErrorCode(110)
  /// The topic's epoch isn't the subscriber's.
  public static let epochChanged = ErrorCode(111)
  /// A setting is unknown or out of range.
  public static let invalidSetting = ErrorCode(112)
  /// A limit of the broker on topics, streams or memory was reached.
  public static let limitReached = ErrorCode(113)
  /// The broker can't do this.
  public static let unsupported = ErrorCode(114)
  /// Another publication was opened with the same producer's number.
  public static let producerFenced = ErrorCode(115)
  /// Another subscription has opened with the same durable cursor.
  public static let cursorTaken = ErrorCode(116)
  /// The durable cursor, or group, was moved; subscribe again to continue at the new position.
  public static let cursorMoved = ErrorCode(117)
  /// The durable cursor, or group, was deleted.
  public static let cursorDeleted = ErrorCode(118)
  /// A topic that keeps the last value of each key was given a record without one.
  public static let keyRequired = ErrorCode(119)
  /// No such durable cursor or group.
  public static let unknownCursor = ErrorCode(120)
  /// The group has other settings than its new member states, or its name is a cursor's, or the reverse.
  public static let groupMismatch = ErrorCode(121)
  /// The broker's storage has no room left: nothing can be published to durable topics until there is. Subscribers
  /// continue.
  public static let storageFull = ErrorCode(122)
  /// The broker's storage fails: nothing can be published to durable topics until it works again.
  public static let storageFailed = ErrorCode(123)
  /// The client's permissions don't cover this, whether there is such a topic or not.
  public static let permissionDenied = ErrorCode(124)
  /// The topic has no subscriber, and the publication needs one: see ``PublishOpen/Role/requester``.
  public static let noResponders = ErrorCode(125)
  /// The topic has had no producer for as long as its setting allows, and has failed.
  public static let producerLost = ErrorCode(126)
  /// No connection has that number.
  public static let unknownConnection = ErrorCode(127)
  /// Another node serves the topic now, or none does at the moment: open the stream again to continue there.
  public static let topicMoved = ErrorCode(128)
  /// A producer ended the topic with a failure and named no code of its own.
  public static let producerFailure = ErrorCode(200)

  /// Whether an error with this code, thrown while a frame is decoded, ends the connection, or else only the frame's stream.
  public var endsConnection: Bool { rawValue < 100 }

  /// Whether this version of the protocol has the code.
  package var isDefined: Bool { Self.names[rawValue] != nil }

  public var description: String {
    Self.names[rawValue] ?? "error \(rawValue)"
  }

  private static let names: [UInt32: String] = [
    1: "not-sluice", 2: "version-mismatch", 3: "malformed-frame", 4: "frame-too-large",
    5: "unsupported-frame", 6: "unexpected-frame", 7: "keepalive-timeout", 8: "shutting-down",
    9: "too-many-connections", 10: "handshake-timeout", 11: "invalid-stream",
    12: "authentication-required", 13: "authentication-failed", 14: "credentials-expired",
    15: "access-revoked", 16: "idle-timeout", 17: "write-timeout", 18: "too-many-attempts",
    19: "closed-by-operator",
    101: "invalid-topic", 102: "unknown-topic", 103: "topic-ended",
    104: "topic-deleted", 105: "topic-exists", 106: "record-too-large", 107: "malformed-batch",
    108: "demand-exceeded", 109: "invalid-demand", 110: "lagged", 111: "epoch-changed",
    112: "invalid-setting", 113: "limit-reached", 114: "unsupported",
    115: "producer-fenced", 116: "cursor-taken", 117: "cursor-moved", 118: "cursor-deleted",
    119: "key-required", 120: "unknown-cursor", 121: "group-mismatch",
    122: "storage-full", 123: "storage-failed", 124: "permission-denied", 125: "no-responders",
    126: "producer-lost", 127: "unknown-connection", 128: "topic-moved",
    200: "producer-failure",
  ]
}

/// The error in a peer's bytes: a code for programs and a sentence for users.
///
/// Decoders throw it, and never trap, whatever they are given.
public struct WireError: Error, Hashable, Sendable, CustomStringConvertible {
  public var code: ErrorCode
  public var message: String

  public init(_ code: ErrorCode, _ message: String) {
    self.code = code
    self.message = message
  }

  public var description: String { "\(message) (\(code))" }
}

/// Numbers that the protocol itself fixes; a broker's own limits are in its WELCOME.
public enum Limits {
  /// The longest body of a frame before the end of the handshake, in bytes.
  public static let handshakeFrame = 8 * 1024
  /// The least that either side must take, so that every control frame fits.
  public static let smallestFrame = 64 * 1024
  /// The longest message of an ERROR, a GOAWAY or a terminal event, in bytes of UTF-8; an encoder cuts what is longer.
  public static let message: UInt16 = 1024
  /// The longest name of a client or of a broker's software, in bytes of UTF-8; an encoder cuts what is longer.
  public static let name: UInt16 = 255
  /// The longest address of a node, in bytes of UTF-8: a host's name and a port.
  public static let address: UInt16 = 300
  /// The only protocol version so far.
  public static let versions: ClosedRange<UInt16> = 1...1
}
