/// CONNECTION_LIST: asks for the broker's connections, a page at a time. Answered by ``Connections`` or ``Fault`` on the same stream.
///
/// ```
/// u64 after · u32 limit
/// ```
public struct ConnectionList: LaidOutFrame {
  public static let type = FrameType.connectionList

  /// Only connections with greater numbers; 0 for the first page.
  public var after: UInt64
  /// At most so many; the broker may send fewer.
  public var limit: UInt32

  public init(after: UInt64 = 0, limit: UInt32) {
    self.after = after
    self.limit = limit
  }

  public static let layout = FrameLayout(
    Self.init, Field.integer("CONNECTION_LIST after", \Self.after),
    Field.integer("CONNECTION_LIST limit", \Self.limit))
}

/// CONNECTIONS: a page of the broker's connections in the order of their numbers. Answers ``ConnectionList``.
///
/// ```
/// u8 more (0 or 1) · list of connections
/// ```
public struct Connections: LaidOutFrame {
  public static let type = FrameType.connections

  /// True when there are connections after the last of this page.
  public var more: Bool
  public var connections: [ConnectionInfo]

  public init(connections: [ConnectionInfo], more: Bool) {
    self.connections = connections
    self.more = more
  }

  public static let layout = FrameLayout(
    { Self(connections: $1, more: $0) }, Field.flag("CONNECTIONS more", \Self.more),
    Field.list("connection", \Self.connections, ConnectionInfo.layout))
}

/// A connection of a client.
///
/// ```
/// u64 connection · string client · string identity · string peer · string security · u64 age · u32 subscriptions · u32 publications ·
/// u64 buffered · u64 received · u64 sent
/// ```
public struct ConnectionInfo: Hashable, Sendable {
  /// The broker's number for the connection: never used again while the broker runs.
  public var connection: UInt64
  /// The name that the client has given itself.
  public var client: String
  /// The identity under which it is authenticated; empty without authentication, and before it is complete.
  public var identity: String
  /// The client's address.
  public var peer: String
  /// TLS version and cipher; empty without TLS.
  public var security: String
  /// Milliseconds since the connection was accepted.
  public var age: UInt64
  public var subscriptions: UInt32
  public var publications: UInt32
  /// Bytes that the broker has buffered for it, in both directions.
  public var buffered: UInt64
  /// Bytes of frames that the broker has read from it since it was accepted; 0 from a broker that doesn't report it.
  public var received: UInt64
  /// Bytes of frames that the broker has written to it; 0 from a broker that doesn't report it.
  public var sent: UInt64

  public init(
    connection: UInt64, client: String, identity: String, peer: String, security: String, age: UInt64,
    subscriptions: UInt32, publications: UInt32, buffered: UInt64, received: UInt64 = 0, sent: UInt64 = 0
  ) {
    self.connection = connection
    self.client = client
    self.identity = identity
    self.peer = peer
    self.security = security
    self.age = age
    self.subscriptions = subscriptions
    self.publications = publications
    self.buffered = buffered
    self.received = received
    self.sent = sent
  }

  static let layout = FrameLayout(
    Self.init, Field.integer("connection's number", \Self.connection),
    Field.string("connection's client", limit: Limits.name, \Self.client),
    Field.string("connection's identity", limit: Limits.name, \Self.identity),
    Field.string("connection's peer", limit: Limits.name, \Self.peer),
    Field.string("connection's security", limit: Limits.name, \Self.security),
    Field.integer("connection's age", \Self.age),
    Field.integer("connection's subscriptions", \Self.subscriptions),
    Field.integer("connection's publications", \Self.publications),
    Field.integer("connection's buffered", \Self.buffered),
    Field.integer("connection's received", \Self.received).added(absent: 0),
    Field.integer("connection's sent", \Self.sent).added(absent: 0))
}

/// CONNECTION_CLOSE: closes a connection of another client, or of this one. Answered by ``Done`` after the error was sent to the client, or
/// ``Fault`` on the same stream.
///
/// ```
/// u64 connection
/// ```
///
/// The client gets ``ErrorCode/closedByOperator`` and may connect again.
public struct ConnectionClose: LaidOutFrame {
  public static let type = FrameType.connectionClose

  /// The broker's number for the connection.
  public var connection: UInt64

  public init(connection: UInt64) {
    self.connection = connection
  }

  public static let layout = FrameLayout(
    Self.init, Field.integer("CONNECTION_CLOSE connection", \Self.connection))
}
