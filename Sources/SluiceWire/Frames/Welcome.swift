/// WELCOME: the broker's answer to HELLO, on stream 0; from here on the connection is open.
///
/// ```
/// u32 magic · u16 version · u16 0 · u64 features · u32 max frame · u32 max record · u32 max streams · u32 keepalive ms
/// u64 broker · string software · string identity · u64 expires
/// ```
public struct Welcome: Frame {
  public static let type = FrameType.welcome

  /// The version that both speak from now on: the highest in common.
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
  /// The name under which the broker has authenticated the client; empty where it doesn't authenticate clients.
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

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(Hello.magic)
    writer.integer(version)
    writer.integer(UInt16(0))
    writer.integer(features)
    writer.integer(maximumFrame)
    writer.integer(maximumRecord)
    writer.integer(maximumStreams)
    writer.integer(keepalive)
    writer.integer(broker)
    writer.string(software, limit: Limits.name)
    writer.string(identity, limit: Limits.name)
    writer.integer(expires)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    guard try reader.integer("WELCOME magic", as: UInt32.self) == Hello.magic else {
      throw WireError(.notSluice, "the peer doesn't speak the Sluice protocol")
    }
    version = try reader.integer("WELCOME version")
    _ = try reader.integer("WELCOME reserved", as: UInt16.self)
    features = try reader.integer("WELCOME features")
    maximumFrame = try reader.integer("WELCOME maximum frame")
    maximumRecord = try reader.integer("WELCOME maximum record")
    maximumStreams = try reader.integer("WELCOME maximum streams")
    keepalive = try reader.integer("WELCOME keepalive")
    broker = try reader.integer("WELCOME broker")
    software = try reader.string("WELCOME software")
    identity = try reader.string("WELCOME identity")
    expires = try reader.integer("WELCOME expires")
  }
}
