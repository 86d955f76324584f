/// SUBSCRIBED: the subscription stands. Comes before anything else on its stream.
///
/// ```
/// u64 epoch · u64 next offset · u64 live offset
/// ```
public struct Subscribed: Frame {
  public static let type = FrameType.subscribed

  /// The topic's present life.
  public var epoch: UInt64
  /// The offset of the first record that will be delivered.
  public var nextOffset: UInt64
  /// The end of the topic at this moment: records from here on are live.
  public var liveOffset: UInt64

  public init(epoch: UInt64, nextOffset: UInt64, liveOffset: UInt64) {
    self.epoch = epoch
    self.nextOffset = nextOffset
    self.liveOffset = liveOffset
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(epoch)
    writer.integer(nextOffset)
    writer.integer(liveOffset)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    epoch = try reader.integer("SUBSCRIBED epoch")
    nextOffset = try reader.integer("SUBSCRIBED next offset")
    liveOffset = try reader.integer("SUBSCRIBED live offset")
  }
}
