/// TOPIC_SET: changes settings of a topic that exists, whatever it holds. Answered by ``TopicInfo`` with the new settings, or ``Fault`` on the same
/// stream.
///
/// ```
/// string topic · settings
/// ```
///
/// A setting that isn't named stays as it is. A setting that can't be changed while the topic exists is
/// ``ErrorCode/invalidSetting``.
public struct TopicSet: LaidOutFrame {
  public static let type = FrameType.topicSet

  public var topic: String
  /// The settings to change.
  public var settings: TopicSettings

  public init(topic: String, settings: TopicSettings) {
    self.topic = topic
    self.settings = settings
  }

  public static let layout = FrameLayout(
    Self.init, Field.name(.topic, "TOPIC_SET topic", \Self.topic),
    Field.settings(\Self.settings, unknown: .refuse))
}

/// TOPIC_TRIM: drops a topic's oldest records. Answered by ``TopicInfo`` with what is left, or ``Fault`` on the same stream.
///
/// ```
/// string topic · u8 limit · 3 bytes reserved · u64 value
/// ```
public struct TopicTrim: LaidOutFrame {
  public static let type = FrameType.topicTrim

  /// The remaining records.
  public enum Limit: Hashable, Sendable {
    /// The record of that offset, and those after it.
    case from(UInt64)
    /// So many of the newest records; 0 for none.
    case newest(UInt64)
  }

  public var topic: String
  public var limit: Limit

  public init(topic: String, _ limit: Limit) {
    self.topic = topic
    self.limit = limit
  }

  private init(topic: String, kind: Kind, value: UInt64) {
    self.topic = topic
    limit = kind == .from ? .from(value) : .newest(value)
  }

  private enum Kind: UInt8, Sendable {
    case from = 0
    case newest = 1
  }

  private var kind: Kind {
    switch limit {
    case .from: .from
    case .newest: .newest
    }
  }

  private var value: UInt64 {
    switch limit {
    case .from(let value), .newest(let value): value
    }
  }

  public static let layout = FrameLayout(
    Self.init(topic:kind:value:), Field.name(.topic, "TOPIC_TRIM topic", \Self.topic),
    Field.choice("TOPIC_TRIM limit", \Self.kind, else: .from) {
      "TOPIC_TRIM has limit \($0); 0 and 1 are defined"
    }.padded(reserved: ("TOPIC_TRIM reserved", 3)), Field.integer("TOPIC_TRIM value", \Self.value))
}
