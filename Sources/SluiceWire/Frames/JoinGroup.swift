/// JOIN: opens a subscription that shares the records of a topic with the other members of a group, on a stream that isn't in use. Answered by
/// ``Subscribed`` or ``Fault``.
///
/// ```
/// string topic · string group · u8 start · u8 acknowledgement · u8 order · u8 if missing · u64 start value
/// u32 deadline · u32 deliveries · string dead letters · u64 granted through · filter
/// ```
///
/// Its first member creates the group with its settings. A later member asks for the same, or gets
/// ``ErrorCode/groupMismatch``; where the group starts is the first one's affair alone.
public struct JoinGroup: Frame {
  public static let type = FrameType.joinGroup

  public var names: [FrameName] {
    [
      FrameName(.topic, topic), FrameName(.group, group),
      FrameName(.deadLetters, settings.deadLetters, isOptional: true),
    ]
  }

  /// When a record is done with. The number is the one on the wire.
  public enum Acknowledgement: UInt8, Hashable, Sendable, CaseIterable {
    /// As soon as it is sent to a member.
    case automatic = 0
    /// When its member says so by ``Settle``. Otherwise it is delivered again.
    case explicit = 1
  }

  /// Which records may be under way at a time. The number is the one on the wire.
  public enum Order: UInt8, Hashable, Sendable, CaseIterable {
    /// Any.
    case any = 0
    /// Of those with one key a single one: the next when it is done with. Needs ``Acknowledgement/explicit``.
    case byKey = 1
  }

  /// A group's settings, as its first member has asked for them.
  public struct Settings: Hashable, Sendable {
    public var acknowledgement: Acknowledgement
    public var order: Order
    /// For how long a record may be with a member, in milliseconds, before it is delivered to another one; 0 for ever.
    public var deadline: UInt32
    /// How many times a record is delivered before it goes to ``deadLetters``, or is dropped without one; 0 for no limit.
    public var deliveries: UInt32
    /// The topic for records that no member could process; empty for none.
    public var deadLetters: String
    public var filter: RecordFilter

    public init(
      acknowledgement: Acknowledgement = .automatic, order: Order = .any, deadline: UInt32 = 0,
      deliveries: UInt32 = 0, deadLetters: String = "", filter: RecordFilter = RecordFilter()
    ) {
      self.acknowledgement = acknowledgement
      self.order = order
      self.deadline = deadline
      self.deliveries = deliveries
      self.deadLetters = deadLetters
      self.filter = filter
    }
  }

  public var topic: String
  /// 1 to 255 bytes, with the rules of a topic's name.
  public var group: String
  /// Where the group starts if it isn't there yet.
  public var start: Subscribe.Start
  public var settings: Settings
  public var ifMissing: Subscribe.IfMissing
  /// The demand to begin with: see ``Demand``. 0 is allowed here.
  public var grantedThrough: UInt64

  public init(
    topic: String, group: String, start: Subscribe.Start = .replay, settings: Settings = Settings(),
    ifMissing: Subscribe.IfMissing = .create, grantedThrough: UInt64
  ) {
    self.topic = topic
    self.group = group
    self.start = start
    self.settings = settings
    self.ifMissing = ifMissing
    self.grantedThrough = grantedThrough
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(topic)
    writer.string(group)
    writer.integer(start.number)
    writer.integer(settings.acknowledgement.rawValue)
    writer.integer(settings.order.rawValue)
    writer.integer(ifMissing.rawValue)
    writer.integer(start.value)
    writer.integer(settings.deadline)
    writer.integer(settings.deliveries)
    writer.string(settings.deadLetters)
    writer.integer(grantedThrough)
    settings.filter.encode(into: &writer)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("JOIN topic")
    group = try reader.string("JOIN group")
    let start: UInt8 = try reader.integer("JOIN start")
    let acknowledgement: UInt8 = try reader.integer("JOIN acknowledgement")
    let order: UInt8 = try reader.integer("JOIN order")
    let ifMissing: UInt8 = try reader.integer("JOIN if missing")
    let value: UInt64 = try reader.integer("JOIN start value")
    let deadline: UInt32 = try reader.integer("JOIN deadline")
    let deliveries: UInt32 = try reader.integer("JOIN deliveries")
    let deadLetters = try reader.string("JOIN dead letters")
    grantedThrough = try reader.integer("JOIN granted through")
    let filter = try RecordFilter(from: &reader)
    self.start = try Subscribe.Start(number: start, value: value)
    self.ifMissing = try Subscribe.ifMissing(ifMissing, in: "JOIN")
    guard let acknowledgement = Acknowledgement(rawValue: acknowledgement) else {
      throw WireError(.unsupported, "JOIN names acknowledgement \(acknowledgement); 0 and 1 are defined")
    }
    guard let order = Order(rawValue: order) else {
      throw WireError(.unsupported, "JOIN names order \(order); 0 and 1 are defined")
    }
    settings = Settings(
      acknowledgement: acknowledgement, order: order, deadline: deadline, deliveries: deliveries,
      deadLetters: deadLetters, filter: filter)
  }
}

/// DELIVERIES: for which time the records that follow on the stream, up to the next DELIVERIES, are delivered to a member of their group. 1 at the start.
///
/// ```
/// u32 count
/// ```
public struct Deliveries: Frame {
  public static let type = FrameType.deliveries

  public var count: UInt32

  public init(count: UInt32) {
    self.count = count
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(count)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    count = try reader.integer("DELIVERIES count")
  }
}
