/// PRODUCERS: how many publications the topic of this subscription has. Only to a subscription that asked for it in ``Subscribe``.
///
/// ```
/// u32 count
/// ```
///
/// Comes behind SUBSCRIBED, and when the count has changed. Several changes in a short time may be told as one. It needs no demand.
public struct Producers: Frame {
  public static let type = FrameType.producers

  /// 0 means that there is none now, whether there was one before or not.
  public var count: UInt32

  public init(count: UInt32) {
    self.count = count
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(count)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    count = try reader.integer("PRODUCERS count")
  }
}
