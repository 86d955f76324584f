/// PUBLISH_OPEN: opens a publication on a stream that isn't in use. Answered by ``PublishOpened`` or ``Fault``.
///
/// ```
/// string topic · u8 acknowledgement · 3 bytes 0
/// ```
public struct PublishOpen: Frame {
  public static let type = FrameType.publishOpen

  /// When the broker acknowledges a record.
  public enum Acknowledgement: UInt8, Hashable, Sendable {
    /// Never: only errors come back.
    case none = 0
    /// When it stands in the topic's log.
    case received = 1
    /// When it is on disk. Refused by a topic that keeps its records in memory only.
    case durable = 2
  }

  public var topic: String
  public var acknowledgement: Acknowledgement

  public init(topic: String, acknowledgement: Acknowledgement) {
    self.topic = topic
    self.acknowledgement = acknowledgement
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(topic)
    writer.integer(UInt32(acknowledgement.rawValue))
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("PUBLISH_OPEN topic")
    let raw: UInt8 = try reader.integer("PUBLISH_OPEN acknowledgement")
    _ = try reader.bytes("PUBLISH_OPEN reserved", count: 3)
    guard let acknowledgement = Acknowledgement(rawValue: raw) else {
      throw WireError(.unsupported, "PUBLISH_OPEN names acknowledgement \(raw); 0 to 2 are defined")
    }
    self.acknowledgement = acknowledgement
  }
}

/// PUBLISH_OPENED: the publication stands, with the demand to begin with.
///
/// ```
/// u64 epoch · u64 granted through
/// ```
public struct PublishOpened: Frame {
  public static let type = FrameType.publishOpened

  /// The topic's present life.
  public var epoch: UInt64
  /// As in ``Demand``: how many records may be published before more is granted.
  public var grantedThrough: UInt64

  public init(epoch: UInt64, grantedThrough: UInt64) {
    self.epoch = epoch
    self.grantedThrough = grantedThrough
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(epoch)
    writer.integer(grantedThrough)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    epoch = try reader.integer("PUBLISH_OPENED epoch")
    grantedThrough = try reader.integer("PUBLISH_OPENED granted through")
  }
}
