/// The kinds of frame.
///
/// Types from `0x80` on may be ignored by a peer that doesn't know them; an unknown type below ends the connection
/// with ``ErrorCode/unsupportedFrame``. That is how the protocol grows.
public struct FrameType: RawRepresentable, Hashable, Sendable, CustomStringConvertible {
  public var rawValue: UInt8

  @inlinable
  public init(rawValue: UInt8) {
    self.rawValue = rawValue
  }

  @inlinable public static var hello: FrameType { FrameType(rawValue: 0x01) }
  @inlinable public static var welcome: FrameType { FrameType(rawValue: 0x02) }
  @inlinable public static var ping: FrameType { FrameType(rawValue: 0x03) }
  @inlinable public static var pong: FrameType { FrameType(rawValue: 0x04) }
  @inlinable public static var goAway: FrameType { FrameType(rawValue: 0x05) }
  @inlinable public static var error: FrameType { FrameType(rawValue: 0x06) }
  @inlinable public static var authenticate: FrameType { FrameType(rawValue: 0x07) }
  @inlinable public static var authenticated: FrameType { FrameType(rawValue: 0x08) }
  @inlinable public static var redirect: FrameType { FrameType(rawValue: 0x09) }

  @inlinable public static var subscribe: FrameType { FrameType(rawValue: 0x10) }
  @inlinable public static var subscribed: FrameType { FrameType(rawValue: 0x11) }
  @inlinable public static var demand: FrameType { FrameType(rawValue: 0x12) }
  @inlinable public static var deliver: FrameType { FrameType(rawValue: 0x13) }
  @inlinable public static var live: FrameType { FrameType(rawValue: 0x14) }
  @inlinable public static var lag: FrameType { FrameType(rawValue: 0x15) }
  @inlinable public static var cancel: FrameType { FrameType(rawValue: 0x16) }
  @inlinable public static var cancelled: FrameType { FrameType(rawValue: 0x17) }
  @inlinable public static var complete: FrameType { FrameType(rawValue: 0x18) }
  @inlinable public static var subscribePattern: FrameType { FrameType(rawValue: 0x19) }
  @inlinable public static var positions: FrameType { FrameType(rawValue: 0x1A) }
  @inlinable public static var matched: FrameType { FrameType(rawValue: 0x1B) }
  @inlinable public static var unmatched: FrameType { FrameType(rawValue: 0x1C) }
  @inlinable public static var selectTopic: FrameType { FrameType(rawValue: 0x1D) }
  @inlinable public static var producers: FrameType { FrameType(rawValue: 0x1E) }

  @inlinable public static var publishOpen: FrameType { FrameType(rawValue: 0x20) }
  @inlinable public static var publishOpened: FrameType { FrameType(rawValue: 0x21) }
  @inlinable public static var publish: FrameType { FrameType(rawValue: 0x22) }
  @inlinable public static var ack: FrameType { FrameType(rawValue: 0x23) }
  @inlinable public static var connected: FrameType { FrameType(rawValue: 0x24) }
  @inlinable public static var disconnected: FrameType { FrameType(rawValue: 0x25) }

  @inlinable public static var joinGroup: FrameType { FrameType(rawValue: 0x28) }
  @inlinable public static var deliveries: FrameType { FrameType(rawValue: 0x29) }
  @inlinable public static var settle: FrameType { FrameType(rawValue: 0x2A) }
  @inlinable public static var commit: FrameType { FrameType(rawValue: 0x2B) }

  @inlinable public static var topicCreate: FrameType { FrameType(rawValue: 0x30) }
  @inlinable public static var topicShow: FrameType { FrameType(rawValue: 0x31) }
  @inlinable public static var topicInfo: FrameType { FrameType(rawValue: 0x32) }
  @inlinable public static var topicList: FrameType { FrameType(rawValue: 0x33) }
  @inlinable public static var topics: FrameType { FrameType(rawValue: 0x34) }
  @inlinable public static var topicDelete: FrameType { FrameType(rawValue: 0x35) }
  @inlinable public static var done: FrameType { FrameType(rawValue: 0x36) }
  @inlinable public static var topicConnect: FrameType { FrameType(rawValue: 0x37) }
  @inlinable public static var topicDisconnect: FrameType { FrameType(rawValue: 0x38) }
  @inlinable public static var cursorList: FrameType { FrameType(rawValue: 0x39) }
  @inlinable public static var cursors: FrameType { FrameType(rawValue: 0x3A) }
  @inlinable public static var cursorMove: FrameType { FrameType(rawValue: 0x3B) }
  @inlinable public static var cursorDelete: FrameType { FrameType(rawValue: 0x3C) }
  @inlinable public static var topicSet: FrameType { FrameType(rawValue: 0x3D) }
  @inlinable public static var topicTrim: FrameType { FrameType(rawValue: 0x3E) }

  @inlinable public static var connectionList: FrameType { FrameType(rawValue: 0x40) }
  @inlinable public static var connections: FrameType { FrameType(rawValue: 0x41) }
  @inlinable public static var connectionClose: FrameType { FrameType(rawValue: 0x42) }
  @inlinable public static var brokerShow: FrameType { FrameType(rawValue: 0x43) }
  @inlinable public static var brokerInfo: FrameType { FrameType(rawValue: 0x44) }
  @inlinable public static var stateList: FrameType { FrameType(rawValue: 0x45) }
  @inlinable public static var states: FrameType { FrameType(rawValue: 0x46) }
  @inlinable public static var stateRestore: FrameType { FrameType(rawValue: 0x47) }

  @inlinable public static var clusterShow: FrameType { FrameType(rawValue: 0x60) }
  @inlinable public static var clusterInfo: FrameType { FrameType(rawValue: 0x61) }
  @inlinable public static var clusterDrain: FrameType { FrameType(rawValue: 0x62) }
  @inlinable public static var clusterMove: FrameType { FrameType(rawValue: 0x63) }
  @inlinable public static var lend: FrameType { FrameType(rawValue: 0x64) }
  @inlinable public static var offer: FrameType { FrameType(rawValue: 0x65) }

  @inlinable public static var origin: FrameType { FrameType(rawValue: 0xC0) }
  @inlinable public static var floor: FrameType { FrameType(rawValue: 0xC1) }

  /// True for a type that a receiver may skip without knowing it.
  public var isIgnorable: Bool { rawValue >= 0x80 }

  public var description: String {
    Self.names[rawValue] ?? "frame type 0x" + String(rawValue, radix: 16)
  }

  private static let names: [UInt8: String] = [
    0x01: "HELLO", 0x02: "WELCOME", 0x03: "PING", 0x04: "PONG", 0x05: "GOAWAY", 0x06: "ERROR",
    0x07: "AUTHENTICATE", 0x08: "AUTHENTICATED", 0x09: "REDIRECT",
    0x10: "SUBSCRIBE", 0x11: "SUBSCRIBED", 0x12: "DEMAND", 0x13: "DELIVER", 0x14: "LIVE", 0x15: "LAG",
    0x16: "CANCEL", 0x17: "CANCELLED", 0x18: "COMPLETE",
    0x19: "SUBSCRIBE_PATTERN", 0x1A: "POSITIONS", 0x1B: "MATCHED", 0x1C: "UNMATCHED", 0x1D: "SELECT_TOPIC",
    0x1E: "PRODUCERS",
    0x20: "PUBLISH_OPEN", 0x21: "PUBLISH_OPENED", 0x22: "PUBLISH", 0x23: "ACK",
    0x24: "CONNECTED", 0x25: "DISCONNECTED",
    0x28: "JOIN", 0x29: "DELIVERIES", 0x2A: "SETTLE", 0x2B: "COMMIT",
    0x30: "TOPIC_CREATE", 0x31: "TOPIC_SHOW", 0x32: "TOPIC_INFO", 0x33: "TOPIC_LIST", 0x34: "TOPICS",
    0x35: "TOPIC_DELETE", 0x36: "DONE", 0x37: "TOPIC_CONNECT", 0x38: "TOPIC_DISCONNECT",
    0x39: "CURSOR_LIST", 0x3A: "CURSORS", 0x3B: "CURSOR_MOVE", 0x3C: "CURSOR_DELETE",
    0x3D: "TOPIC_SET", 0x3E: "TOPIC_TRIM",
    0x40: "CONNECTION_LIST", 0x41: "CONNECTIONS", 0x42: "CONNECTION_CLOSE", 0x43: "BROKER_SHOW",
    0x44: "BROKER_INFO", 0x45: "STATE_LIST", 0x46: "STATES", 0x47: "STATE_RESTORE",
    0x60: "CLUSTER_SHOW", 0x61: "CLUSTER_INFO", 0x62: "CLUSTER_DRAIN", 0x63: "CLUSTER_MOVE",
    0x64: "LEND", 0x65: "OFFER", 0xC0: "ORIGIN", 0xC1: "FLOOR",
  ]
}

/// The twelve bytes in front of every frame.
///
/// ```
///  0               4       5       6               8              12
///  +---------------+-------+-------+---------------+---------------+
///  | length  u32   | type  | flags | reserved u16  | stream  u32   |
///  +---------------+-------+-------+---------------+---------------+
/// ```
public struct FrameHeader: Hashable, Sendable {
  public static let size = 12

  /// The length of the body: the bytes after this header.
  public var length: UInt32
  public var type: FrameType
  /// The low four bits must be understood, and none is defined yet; the high four may be ignored: see ``StreamFlag``.
  public var flags: UInt8
  /// 0 is the connection itself.
  public var stream: UInt32

  @inlinable
  public init(length: UInt32, type: FrameType, flags: UInt8 = 0, stream: UInt32) {
    self.length = length
    self.type = type
    self.flags = flags
    self.stream = stream
  }

  /// Reads the first twelve bytes at `bytes`.
  @inlinable
  public init(at bytes: UnsafeRawPointer) {
    length = unsafe UInt32(littleEndian: bytes.loadUnaligned(as: UInt32.self))
    type = unsafe FrameType(rawValue: bytes.load(fromByteOffset: 4, as: UInt8.self))
    flags = unsafe bytes.load(fromByteOffset: 5, as: UInt8.self)
    stream = unsafe UInt32(littleEndian: bytes.loadUnaligned(fromByteOffset: 8, as: UInt32.self))
  }

  /// Writes twelve bytes at `bytes`.
  @inlinable
  public func write(at bytes: UnsafeMutableRawPointer) {
    unsafe bytes.storeBytes(of: length.littleEndian, as: UInt32.self)
    unsafe bytes.storeBytes(of: type.rawValue, toByteOffset: 4, as: UInt8.self)
    unsafe bytes.storeBytes(of: flags, toByteOffset: 5, as: UInt8.self)
    unsafe bytes.storeBytes(of: 0, toByteOffset: 6, as: UInt16.self)
    unsafe bytes.storeBytes(of: stream.littleEndian, toByteOffset: 8, as: UInt32.self)
  }
}

/// A frame as a value. Each has its own file, with its layout.
///
/// A decoder ignores bytes after the fields that it knows, so that fields can be added at the end; only the batch frames
/// (``DeliverHeader``, ``PublishHeader``), which end in records, can't grow in this way.
public protocol Frame: Hashable, Sendable {
  static var type: FrameType { get }

  /// The names by which a client asks for something, in the order of the fields; none by default. Texts for display, and the positions at which a list
  /// continues, aren't among them.
  var names: [FrameName] { get }

  /// Appends the body.
  func encodeBody(into writer: inout ByteWriter)

  /// Reads the body.
  init(body reader: inout ByteReader) throws(WireError)
}

extension Frame {
  /// Appends header and body to `output`.
  public func encode(flags: UInt8 = 0, stream: UInt32, into output: inout [UInt8]) {
    var writer = ByteWriter(output)
    output = []
    let start = writer.bytes.count
    writer.bytes.append(contentsOf: repeatElement(0, count: FrameHeader.size))
    encodeBody(into: &writer)
    let length = UInt32(writer.bytes.count - start - FrameHeader.size)
    unsafe writer.bytes.withUnsafeMutableBytes {
      unsafe FrameHeader(length: length, type: Self.type, flags: flags, stream: stream)
        .write(at: $0.baseAddress! + start)
    }
    output = writer.bytes
  }

  /// The whole frame, header and body.
  public func encoded(flags: UInt8 = 0, stream: UInt32) -> [UInt8] {
    var bytes: [UInt8] = []
    encode(flags: flags, stream: stream, into: &bytes)
    return bytes
  }

  /// Decodes a body that stands whole in memory.
  @inlinable
  public init(body: UnsafeRawBufferPointer) throws(WireError) {
    var reader = unsafe ByteReader(body)
    try self.init(body: &reader)
  }
}
