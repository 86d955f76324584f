/// TOPIC_DELETE: removes a topic and its records. Its subscriptions and publications end with
/// ``ErrorCode/topicDeleted``. Answered by ``Done`` or ``Fault`` on the same stream.
///
/// ```
/// string topic
/// ```
public struct TopicDelete: Frame {
  public static let type = FrameType.topicDelete

  public var names: [FrameName] { [FrameName(.topic, topic)] }

  public var topic: String

  public init(topic: String) {
    self.topic = topic
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(topic)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("TOPIC_DELETE topic")
  }
}

/// DONE: the request on this stream was carried out, and the stream is free.
///
/// The body is empty.
public struct Done: Frame {
  public static let type = FrameType.done

  public init() {}

  public func encodeBody(into writer: inout ByteWriter) {}

  public init(body reader: inout ByteReader) throws(WireError) {}
}
