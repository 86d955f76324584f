/// WELCOME: the broker's answer to HELLO, on stream 0; from here on the connection is open.
///
/// ```
/// u32 magic · u16 version · u16 0 · u64 features · u32 max frame · u32 max record · u32 max streams · u32 keepalive ms
/// u64 broker · string software · string identity · u64 expires
/// ```
public struct Welcome: LaidOutFrame {
  public static let type = FrameType.welcome

  /// The version that both sides use for the rest of the connection: the highest in common.
  public var version: UInt16
  /// The features of HELLO that the broker grants.
  public var features: UInt64
  /// The longest frame body, in bytes, that the broker takes.
  public var maximumFrame: UInt32
  /// The longest record, in bytes of its body, that the broker takes.
  public var maximumRecord: UInt32
  /// Streams are numbered from 1 to this.
  public var maximumStreams: UInt32
  /// The silence, in milliseconds, after which either side gives the other up; 0 means never.
  public var keepalive: UInt32
  /// The broker's identity, new with each start.
  public var broker: UInt64
  /// The broker's software and version.
  public var software: String
  /// The name under which the broker has authenticated the client; empty if it doesn't authenticate clients.
  public var identity: String
  /// When the client's credentials expire, in milliseconds since 1970; ``Authenticated/never`` for never.
  public var expires: UInt64

  public init(
    version: UInt16 = 1, features: UInt64 = 0, maximumFrame: UInt32, maximumRecord: UInt32,
    maximumStreams: UInt32, keepalive: UInt32, broker: UInt64, software: String,
    identity: String = "", expires: UInt64 = Authenticated.never
  ) {
    self.version = version
    self.features = features
    self.maximumFrame = maximumFrame
    self.maximumRecord = maximumRecord
    self.maximumStreams = maximumStreams
    self.keepalive = keepalive
    self.broker = broker
    self.software = software
    self.identity = identity
    self.expires = expires
  }

  public static let layout = FrameLayout(
    Self.init,
    Field.integer("WELCOME version", \Self.version)
      .padded(magic: "WELCOME magic", reserved: ("WELCOME reserved", 2)),
    Field.integer("WELCOME features", \Self.features),
    Field.integer("WELCOME maximum frame", \Self.maximumFrame),
    Field.integer("WELCOME maximum record", \Self.maximumRecord),
    Field.integer("WELCOME maximum streams", \Self.maximumStreams),
    Field.integer("WELCOME keepalive", \Self.keepalive), Field.integer("WELCOME broker", \Self.broker),
    Field.string("WELCOME software", limit: Limits.name, \Self.software),
    Field.string("WELCOME identity", limit: Limits.name, \Self.identity),
    Field.integer("WELCOME expires", \Self.expires))
}
