/// DEMAND: how many records the receiver of this frame may have sent on this stream, in all, since it was opened.
///
/// A client sends it for its subscriptions, a broker for publications. The number is cumulative and the receiver keeps
/// the largest, so a repeated or reordered frame changes nothing. All ones means unlimited. A grant of 0 is an error
/// of the stream, ``ErrorCode/invalidDemand``.
///
/// ```
/// u64 granted through
/// ```
public struct Demand: Frame {
  public static let type = FrameType.demand

  public var grantedThrough: UInt64

  public init(grantedThrough: UInt64) {
    self.grantedThrough = grantedThrough
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(grantedThrough)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    grantedThrough = try reader.integer("DEMAND granted through")
  }
}
