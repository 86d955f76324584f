/// CANCEL: the client wants nothing more on this stream, of whatever kind. Always answered by
/// ``Cancelled``, even when the stream has ended meanwhile, so that its number can be used again.
///
/// The body is empty.
public struct Cancel: Frame {
  public static let type = FrameType.cancel

  public init() {}

  public func encodeBody(into writer: inout ByteWriter) {}

  public init(body reader: inout ByteReader) throws(WireError) {}
}

/// CANCELLED: nothing more comes on this stream, and its number is free. Answers ``Cancel``, and the ``Complete`` of a
/// publication.
///
/// ```
/// u8 flags (1: the topic has started over)
/// ```
public struct Cancelled: Frame {
  public static let type = FrameType.cancelled

  /// Whether the topic that a publication has ended has started over, so that more can be published to it.
  public var hasStartedOver: Bool

  public init(hasStartedOver: Bool = false) {
    self.hasStartedOver = hasStartedOver
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(UInt8(hasStartedOver ? 1 : 0))
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    hasStartedOver = try reader.integer("CANCELLED flags", as: UInt8.self) & 1 != 0
  }
}
