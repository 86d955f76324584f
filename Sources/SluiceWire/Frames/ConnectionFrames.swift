/// PING: requests a heartbeat, on stream 0. The receiver answers with a ``Pong`` that carries the same token.
///
/// ```
/// u64 token
/// ```
public struct Ping: LaidOutFrame {
  public static let type = FrameType.ping

  /// Returned as it is.
  public var token: UInt64

  public init(token: UInt64) {
    self.token = token
  }

  public static let layout = FrameLayout(Self.init, Field.integer("PING token", \Self.token))
}

/// PONG: the answer to a ``Ping``, on stream 0.
///
/// ```
/// u64 token
/// ```
public struct Pong: LaidOutFrame {
  public static let type = FrameType.pong

  /// The token of the PING.
  public var token: UInt64

  public init(token: UInt64) {
    self.token = token
  }

  public static let layout = FrameLayout(Self.init, Field.integer("PONG token", \Self.token))
}

/// GOAWAY: the sender will close this connection, on stream 0. Granted records are still delivered and published ones still
/// acknowledged; new streams are refused.
///
/// ```
/// u32 code · string message
/// ```
public struct GoAway: LaidOutFrame {
  public static let type = FrameType.goAway

  /// Why, ``ErrorCode/shuttingDown`` for an orderly stop.
  public var code: ErrorCode
  public var message: String

  public init(code: ErrorCode, message: String) {
    self.code = code
    self.message = message
  }

  public static let layout = FrameLayout(
    Self.init, Field.number("GOAWAY code", \Self.code),
    Field.string("GOAWAY message", limit: Limits.message, \Self.message))
}

/// ERROR: something went wrong. On stream 0 it names the cause for which the sender closes the connection next; on another
/// stream it ends that stream, or answers the request that was made on it.
///
/// ```
/// u32 code · string message
/// ```
public struct Fault: LaidOutFrame {
  public static let type = FrameType.error

  public var code: ErrorCode
  /// The cause and the remedy.
  public var message: String

  public init(code: ErrorCode, message: String) {
    self.code = code
    self.message = message
  }

  public init(_ error: WireError) {
    self.init(code: error.code, message: error.message)
  }

  public static let layout = FrameLayout(
    Self.init(code:message:), Field.number("ERROR code", \Self.code),
    Field.string("ERROR message", limit: Limits.message, \Self.message))
}

extension WireError {
  /// An error reported by a peer or a topic.
  public init(_ fault: Fault) {
    self.init(fault.code, fault.message)
  }
}
