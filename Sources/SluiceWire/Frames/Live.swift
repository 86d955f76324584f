/// LIVE: replay is over, once per subscription; every record after this one was published after the subscription stood.
///
/// ```
/// u64 next offset
/// ```
public struct Live: Frame {
  public static let type = FrameType.live

  /// The offset of the first live record.
  public var nextOffset: UInt64

  public init(nextOffset: UInt64) {
    self.nextOffset = nextOffset
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(nextOffset)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    nextOffset = try reader.integer("LIVE next offset")
  }
}
