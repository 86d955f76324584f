/// TOPIC_LIST: asks for the topics, a page at a time. Answered by ``Topics`` on the same stream.
///
/// ```
/// string after · u32 limit
/// ```
public struct TopicList: LaidOutFrame {
  public static let type = FrameType.topicList

  /// Only topics whose names come after this one in byte order; empty for the first page.
  public var after: String
  /// At most so many; the broker may send fewer.
  public var limit: UInt32

  public init(after: String = "", limit: UInt32) {
    self.after = after
    self.limit = limit
  }

  public static let layout = FrameLayout(
    Self.init, Field.string("TOPIC_LIST after", \Self.after),
    Field.integer("TOPIC_LIST limit", \Self.limit))
}

/// TOPICS: a page of topics in byte order of their names. Answers ``TopicList``.
///
/// ```
/// u8 more (0 or 1) · list of summaries
/// ```
public struct Topics: LaidOutFrame {
  public static let type = FrameType.topics

  /// True when there are topics after the last of this page.
  public var more: Bool
  public var topics: [TopicSummary]

  public init(topics: [TopicSummary], more: Bool) {
    self.topics = topics
    self.more = more
  }

  public static let layout = FrameLayout(
    { Self(topics: $1, more: $0) }, Field.flag("TOPICS more", \Self.more),
    Field.list("topic summary", \Self.topics, TopicSummary.layout))
}
