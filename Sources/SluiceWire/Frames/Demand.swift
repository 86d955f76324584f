/// DEMAND: how many records the receiver of this frame may have sent on this stream, in all, since it was opened.
///
/// A client sends it for its subscriptions, a broker for publications. The number is cumulative and the receiver keeps
/// the largest, so a repeated or reordered frame changes nothing. All ones means unlimited. A grant of 0 is an error
/// of the stream, ``ErrorCode/invalidDemand``.
///
/// What a broker grants to a publication may be limited by bytes as well: those that the batches published on the stream take in all. As long as
/// that number isn't reached, one more record may be published, however large; so a limit never stands in the way of
/// a record that is larger. The number has the rules of the other one; a client has no use for it and sends all ones.
///
/// ```
/// u64 granted through · u64 bytes through
/// ```
public struct Demand: Frame {
  public static let type = FrameType.demand

  public var grantedThrough: UInt64
  /// Bytes of batches that may be published in all; ``Credit/unlimited`` for any number, as always on a subscription.
  public var bytesThrough: UInt64

  public init(grantedThrough: UInt64, bytesThrough: UInt64 = Credit.unlimited) {
    self.grantedThrough = grantedThrough
    self.bytesThrough = bytesThrough
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(grantedThrough)
    writer.integer(bytesThrough)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    grantedThrough = try reader.integer("DEMAND granted through")
    bytesThrough = try reader.integer("DEMAND bytes through")
  }
}
