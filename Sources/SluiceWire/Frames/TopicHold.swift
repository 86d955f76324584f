// What stops a topic's producers, as TOPIC_INFO tells it.
extension TopicInfo {
  /// Which of the topic's limits a subscription, or the group that it is a member of, stops producers with. The number is the one on the wire; new numbers
  /// may follow.
  public struct HoldLimit: RawRepresentable, Hashable, Sendable {
    public var rawValue: UInt8

    public init(rawValue: UInt8) {
      self.rawValue = rawValue
    }

    /// It doesn't stop them.
    public static let none = HoldLimit(rawValue: 0)
    /// It has asked for no more records, and the topic's record buffer is full.
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

  /// What stops a topic's producers, or has in the last five minutes.
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
  }
}
