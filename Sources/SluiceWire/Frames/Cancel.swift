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
/// The body is empty.
public struct Cancelled: Frame {
  public static let type = FrameType.cancelled

  public init() {}

  public func encodeBody(into writer: inout ByteWriter) {}

  public init(body reader: inout ByteReader) throws(WireError) {}
}
