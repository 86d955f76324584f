/// MATCHED: a topic now belongs to a subscription to a pattern.
///
/// ```
/// u32 number · string topic · u64 epoch · u64 next offset · u64 live offset · u8 gaps · u8 continues · u8 shareable, always 0 · u8 0
/// ```
public struct Matched: LaidOutFrame {
  public static let type = FrameType.matched

  /// The topic's number on this stream: from 1 on, and never used twice.
  public var number: UInt32
  public var topic: String
  public var place: Subscribed

  public init(number: UInt32, topic: String, place: Subscribed) {
    self.number = number
    self.topic = topic
    self.place = place
  }

  public static let layout = FrameLayout(
    Self.init, Field.integer("MATCHED number", \Self.number), Field.string("MATCHED topic", \Self.topic),
    Field.part(\Self.place, Subscribed.layout))
}

/// UNMATCHED: a topic of a subscription to a pattern was deleted. Its number means nothing any more.
///
/// ```
/// u32 number
/// ```
public struct Unmatched: LaidOutFrame {
  public static let type = FrameType.unmatched

  public var number: UInt32

  public init(number: UInt32) {
    self.number = number
  }

  public static let layout = FrameLayout(Self.init, Field.integer("UNMATCHED number", \Self.number))
}

/// SELECT_TOPIC: which topic of a subscription to a pattern the frames that follow on its stream are about, up to the next SELECT_TOPIC: ``DeliverHeader``,
/// ``Live``, ``Lag``, ``Complete``.
///
/// ```
/// u32 number
/// ```
public struct SelectTopic: LaidOutFrame {
  public static let type = FrameType.selectTopic

  /// A topic's number; 0, as at the start, for the subscription as a whole.
  public var number: UInt32

  public init(number: UInt32) {
    self.number = number
  }

  public static let layout = FrameLayout(Self.init, Field.integer("SELECT_TOPIC number", \Self.number))
}
