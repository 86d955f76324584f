/// CONNECTED: the topic of this publication is connected, so that its source may start. Only to a publication that is a source, in turn with
/// ``Disconnected``; one of the two comes right behind PUBLISH_OPENED.
///
/// The body is empty. Demand comes by itself: a topic that isn't connected grants none.
public struct Connected: Frame {
  public static let type = FrameType.connected

  public init() {}

  public func encodeBody(into writer: inout ByteWriter) {}

  public init(body reader: inout ByteReader) throws(WireError) {}
}

/// DISCONNECTED: the topic isn't connected yet; or the last subscriber has left, or a client has disconnected it, and its source should stop.
/// What was granted before may still be published.
///
/// The body is empty.
public struct Disconnected: Frame {
  public static let type = FrameType.disconnected

  public init() {}

  public func encodeBody(into writer: inout ByteWriter) {}

  public init(body reader: inout ByteReader) throws(WireError) {}
}
