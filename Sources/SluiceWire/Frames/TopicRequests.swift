/// TOPIC_CREATE: makes a topic with settings of its own. Answered by ``TopicInfo``, also when it exists with the same
/// settings already, or ``Fault`` on the same stream, which is free again with the answer.
///
/// ```
/// string topic · settings
/// ```
public struct TopicCreate: LaidOutFrame {
  public static let type = FrameType.topicCreate

  public var topic: String
  public var settings: TopicSettings

  public init(topic: String, settings: TopicSettings) {
    self.topic = topic
    self.settings = settings
  }

  public static let layout = FrameLayout(
    Self.init, Field.name(.topic, "TOPIC_CREATE topic", \Self.topic),
    Field.settings(\Self.settings, unknown: .refuse))
}

/// TOPIC_SHOW: asks for a topic and what is attached to it. Answered by ``TopicInfo`` or ``Fault`` on the same stream.
///
/// ```
/// string topic
/// ```
public struct TopicShow: LaidOutFrame {
  public static let type = FrameType.topicShow

  public var topic: String

  public init(topic: String) {
    self.topic = topic
  }

  public static let layout = FrameLayout(Self.init, Field.name(.topic, "TOPIC_SHOW topic", \Self.topic))
}

/// TOPIC_DELETE: removes a topic and its records. Its subscriptions and publications end with
/// ``ErrorCode/topicDeleted``. Answered by ``Done`` or ``Fault`` on the same stream.
///
/// ```
/// string topic
/// ```
public struct TopicDelete: LaidOutFrame {
  public static let type = FrameType.topicDelete

  public var topic: String

  public init(topic: String) {
    self.topic = topic
  }

  public static let layout = FrameLayout(Self.init, Field.name(.topic, "TOPIC_DELETE topic", \Self.topic))
}

/// DONE: the request on this stream was carried out, and the stream is free.
///
/// The body is empty.
public struct Done: LaidOutFrame {
  public static let type = FrameType.done

  public init() {}

  public static let layout = FrameLayout(Self.init)
}

/// TOPIC_CONNECT: connects a topic whose setting `connect` is manual, so that producers get demand. Answered by ``Done``, also when it is
/// connected already, or ``Fault`` on the same stream.
///
/// ```
/// string topic
/// ```
public struct TopicConnect: LaidOutFrame {
  public static let type = FrameType.topicConnect

  public var topic: String

  public init(topic: String) {
    self.topic = topic
  }

  public static let layout = FrameLayout(Self.init, Field.name(.topic, "TOPIC_CONNECT topic", \Self.topic))
}

/// TOPIC_DISCONNECT: undoes a ``TopicConnect``; subscribers get no notice. Answered by ``Done`` or ``Fault``.
///
/// ```
/// string topic
/// ```
public struct TopicDisconnect: LaidOutFrame {
  public static let type = FrameType.topicDisconnect

  public var topic: String

  public init(topic: String) {
    self.topic = topic
  }

  public static let layout = FrameLayout(Self.init, Field.name(.topic, "TOPIC_DISCONNECT topic", \Self.topic))
}

// A cause that blocks a topic's producers, in TOPIC_INFO.
extension TopicInfo {
  /// Why a subscription is behind. The number is the one on the wire; new numbers may follow.
  public struct Slowness: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt8

    public init(rawValue: UInt8) {
      self.rawValue = rawValue
    }

    /// It isn't behind.
    public static let none = Slowness(rawValue: 0)
    /// The client hasn't asked for the next record.
    public static let demand = Slowness(rawValue: 1)
    /// The client has asked, and doesn't read what it was sent: its receive window is full.
    public static let client = Slowness(rawValue: 2)
    /// The client has asked, and what it was sent doesn't reach it: its system doesn't acknowledge it.
    public static let network = Slowness(rawValue: 3)
    /// The client has asked, and doesn't get what it was sent; whether the client or its network causes that isn't known.
    public static let unread = Slowness(rawValue: 4)
    /// The client asks and reads, and is behind nevertheless.
    public static let pace = Slowness(rawValue: 5)
  }

  /// Which of the topic's limits a subscription, or the group that it is a member of, stops producers with. The number is the one on the wire; new numbers
  /// may follow.
  public struct HoldLimit: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt8

    public init(rawValue: UInt8) {
      self.rawValue = rawValue
    }

    /// It doesn't stop them.
    public static let none = HoldLimit(rawValue: 0)
    /// It has requested no more records, and the topic's record buffer is full.
    public static let demand = HoldLimit(rawValue: 1)
    /// Records that it hasn't taken fill the topic's byte buffer.
    public static let buffer = HoldLimit(rawValue: 2)
    /// It replays records beyond the topic's replay limits, and what is kept for it fills the topic's byte buffer.
    public static let replay = HoldLimit(rawValue: 3)
    /// As ``demand``, of all members of its group together.
    public static let groupDemand = HoldLimit(rawValue: 4)
    /// As ``buffer``, of its group.
    public static let groupBuffer = HoldLimit(rawValue: 5)
    /// As ``replay``, of its group.
    public static let groupReplay = HoldLimit(rawValue: 6)
  }

  /// The cause that blocks a topic's producers, or has in the last five minutes.
  public struct Hold: Hashable, Sendable {
    public var reason: Publication.WaitReason
    /// Since how many milliseconds it has, pauses of up to a second included; 0 when it doesn't now.
    public var milliseconds: UInt64
    /// The share of the last minute in which it did, in thousandths.
    public var lastMinute: UInt16
    /// The share of the last five minutes in which it did, in thousandths.
    public var lastFiveMinutes: UInt16

    public init(
      reason: Publication.WaitReason, milliseconds: UInt64, lastMinute: UInt16, lastFiveMinutes: UInt16
    ) {
      self.reason = reason
      self.milliseconds = milliseconds
      self.lastMinute = lastMinute
      self.lastFiveMinutes = lastFiveMinutes
    }

    static let layout = FrameLayout(
      Self.init, Field.number("hold reason", \Self.reason),
      Field.integer("hold milliseconds", \Self.milliseconds),
      Field.integer("hold last minute", \Self.lastMinute),
      Field.integer("hold last five minutes", \Self.lastFiveMinutes))
  }
}
