/// LAG: records that the subscription was owed were dropped before it asked for them.
///
/// ```
/// u64 missed · u64 next offset
/// ```
public struct Lag: Frame {
  public static let type = FrameType.lag

  /// How many are missing between the last record delivered and the next.
  public var missed: UInt64
  /// The offset of the next record that will be delivered.
  public var nextOffset: UInt64

  public init(missed: UInt64, nextOffset: UInt64) {
    self.missed = missed
    self.nextOffset = nextOffset
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(missed)
    writer.integer(nextOffset)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    missed = try reader.integer("LAG missed")
    nextOffset = try reader.integer("LAG next offset")
  }
}
