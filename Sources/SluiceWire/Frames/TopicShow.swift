/// TOPIC_SHOW: asks for a topic and what is attached to it. Answered by ``TopicInfo`` or ``Fault`` on the same stream.
///
/// ```
/// string topic
/// ```
public struct TopicShow: Frame {
  public static let type = FrameType.topicShow

  public var names: [FrameName] { [FrameName(.topic, topic)] }

  public var topic: String

  public init(topic: String) {
    self.topic = topic
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(topic)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("TOPIC_SHOW topic")
  }
}
