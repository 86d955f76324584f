/// ACK: the broker has taken over records of a publication.
///
/// ```
/// u64 through · u64 last offset
/// ```
public struct Ack: Frame {
  public static let type = FrameType.ack

  /// How many records of this publication are acknowledged, in all. Cumulative, like a grant.
  public var through: UInt64
  /// The offset in the topic of the last of them.
  public var lastOffset: UInt64

  public init(through: UInt64, lastOffset: UInt64) {
    self.through = through
    self.lastOffset = lastOffset
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(through)
    writer.integer(lastOffset)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    through = try reader.integer("ACK through")
    lastOffset = try reader.integer("ACK last offset")
  }
}
