/// TOPIC_LIST: asks for the topics, a page at a time. Answered by ``Topics`` on the same stream.
///
/// ```
/// string after · u32 limit
/// ```
public struct TopicList: Frame {
  public static let type = FrameType.topicList

  /// Only topics whose names come after this one in byte order; empty for the first page.
  public var after: String
  /// At most so many; the broker may send fewer.
  public var limit: UInt32

  public init(after: String = "", limit: UInt32) {
    self.after = after
    self.limit = limit
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(after)
    writer.integer(limit)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    after = try reader.string("TOPIC_LIST after")
    limit = try reader.integer("TOPIC_LIST limit")
  }
}

/// TOPICS: a page of topics in byte order of their names. Answers ``TopicList``.
///
/// ```
/// u8 more (0 or 1) · list of summaries
/// ```
public struct Topics: Frame {
  public static let type = FrameType.topics

  /// True when there are topics after the last of this page.
  public var more: Bool
  public var topics: [TopicSummary]

  public init(topics: [TopicSummary], more: Bool) {
    self.topics = topics
    self.more = more
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(more ? 1 : 0 as UInt8)
    writer.list(topics) { $0.encode(into: &$1) }
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    more = try reader.integer("TOPICS more", as: UInt8.self) != 0
    topics = try reader.list("topic summary") { reader throws(WireError) in try TopicSummary(from: &reader) }
  }
}
