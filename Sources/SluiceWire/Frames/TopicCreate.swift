/// TOPIC_CREATE: makes a topic with settings of its own. Answered by ``TopicInfo``, also when it exists with the same
/// settings already, or ``Fault`` on the same stream, which is free again with the answer.
///
/// ```
/// string topic · settings
/// ```
public struct TopicCreate: Frame {
  public static let type = FrameType.topicCreate

  public var names: [FrameName] { [FrameName(.topic, topic)] }

  public var topic: String
  public var settings: TopicSettings

  public init(topic: String, settings: TopicSettings) {
    self.topic = topic
    self.settings = settings
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(topic)
    settings.encode(into: &writer)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("TOPIC_CREATE topic")
    settings = try TopicSettings(from: &reader, unknown: .refuse)
  }
}
