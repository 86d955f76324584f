/// TOPIC_CONNECT: connects a topic whose setting `connect` is manual, so that producers are asked for records. Answered by ``Done``, also when
/// it is connected already, or ``Fault`` on the same stream.
///
/// ```
/// string topic
/// ```
public struct TopicConnect: Frame {
  public static let type = FrameType.topicConnect

  public var names: [FrameName] { [FrameName(.topic, topic)] }

  public var topic: String

  public init(topic: String) {
    self.topic = topic
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(topic)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("TOPIC_CONNECT topic")
  }
}

/// TOPIC_DISCONNECT: takes a ``TopicConnect`` back; subscribers aren't told. Answered by ``Done`` or ``Fault``.
///
/// ```
/// string topic
/// ```
public struct TopicDisconnect: Frame {
  public static let type = FrameType.topicDisconnect

  public var names: [FrameName] { [FrameName(.topic, topic)] }

  public var topic: String

  public init(topic: String) {
    self.topic = topic
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(topic)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("TOPIC_DISCONNECT topic")
  }
}
