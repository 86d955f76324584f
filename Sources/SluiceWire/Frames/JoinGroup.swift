/// JOIN: opens a subscription that shares the records of a topic with the other members of a group, on a stream that isn't in use. Answered by
/// ``Subscribed`` or ``Fault``.
///
/// ```
/// string topic · string group · u8 start · u8 acknowledgement · u8 order · u8 if missing · u64 start value
/// u32 deadline · u32 deliveries · string dead letters · u64 granted through · filter
/// u32 first backoff · u32 longest backoff, both left out without a backoff
/// ```
///
/// Its first member creates the group with its settings. A later member asks for the same, or gets
/// ``ErrorCode/groupMismatch``; where the group starts is the first one's affair alone.
public struct JoinGroup: LaidOutFrame {
  public static let type = FrameType.joinGroup

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
    /// Delivers records of one key one at a time: the next one after the member has settled it. Needs
    /// ``Acknowledgement/explicit``.
    case byKey = 1
  }

  /// How long a record waits before it is delivered again, in milliseconds: ``first`` after its first delivery, twice as long after each
  /// further one, at most ``longest``.
  public struct Backoff: Hashable, Sendable {
    /// Records are delivered again at once.
    public static let none = Backoff(first: 0, longest: 0)

    public var first: UInt32
    public var longest: UInt32

    public init(first: UInt32, longest: UInt32) {
      self.first = first
      self.longest = longest
    }

    /// The delay after that many deliveries, in milliseconds.
    public func delay(after deliveries: UInt32) -> UInt32 {
      let doublings = min(max(deliveries, 1) - 1, 32)
      return UInt32(min(UInt64(first) << UInt64(doublings), UInt64(longest)))
    }
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
    /// The delay of a record that its member retries without naming a delay, and of one whose deadline has passed.
    public var retryBackoff: Backoff

    public init(
      acknowledgement: Acknowledgement = .automatic, order: Order = .any, deadline: UInt32 = 0,
      deliveries: UInt32 = 0, deadLetters: String = "", filter: RecordFilter = RecordFilter(),
      retryBackoff: Backoff = .none
    ) {
      self.acknowledgement = acknowledgement
      self.order = order
      self.deadline = deadline
      self.deliveries = deliveries
      self.deadLetters = deadLetters
      self.filter = filter
      self.retryBackoff = retryBackoff
    }
  }

  public var topic: String
  /// 1 to 255 bytes, with the rules of a topic's name.
  public var group: String
  /// The group's start if it doesn't exist yet.
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

  public static let layout = FrameLayout(
    {
      Self(
        topic: $0, group: $1, start: Subscribe.Start(number: $2, value: $6),
        settings: Settings(
          acknowledgement: $3, order: $4, deadline: $7, deliveries: $8, deadLetters: $9, filter: $11,
          retryBackoff: $12),
        ifMissing: $5, grantedThrough: $10)
    },
    Field.name(.topic, "JOIN topic", \Self.topic), Field.name(.group, "JOIN group", \Self.group),
    Field.start("JOIN start", \Self.start),
    Field.choice("JOIN acknowledgement", \Self.settings.acknowledgement, else: .automatic) {
      "JOIN names acknowledgement \($0); 0 and 1 are defined"
    },
    Field.choice("JOIN order", \Self.settings.order, else: .any) {
      "JOIN names order \($0); 0 and 1 are defined"
    }, Field.ifMissing("JOIN", "JOIN if missing", \Self.ifMissing),
    Field.integer("JOIN start value", \Self.start.value),
    Field.integer("JOIN deadline", \Self.settings.deadline),
    Field.integer("JOIN deliveries", \Self.settings.deliveries),
    Field.name(.deadLetters, "JOIN dead letters", isOptional: true, \Self.settings.deadLetters),
    Field.integer("JOIN granted through", \Self.grantedThrough), Field.filter(\Self.settings.filter),
    .retryBackoff)
}

extension Field where Owner == JoinGroup, Value == JoinGroup.Backoff {
  fileprivate static var retryBackoff: Field {
    Field(
      write: { frame, writer in
        let backoff = frame.settings.retryBackoff
        guard backoff != .none else { return }
        writer.integer(backoff.first)
        writer.integer(backoff.longest)
      },
      read: { (reader: inout FieldReader) throws(WireError) in
        JoinGroup.Backoff(
          first: try reader.bytes.integer("JOIN first backoff"),
          longest: try reader.bytes.integer("JOIN longest backoff"))
      }
    ).added(absent: .none)
  }
}

/// DELIVERIES: for which time the records that follow on the stream, up to the next DELIVERIES, are delivered to a member of their group. 1 at the start.
///
/// ```
/// u32 count
/// ```
public struct Deliveries: LaidOutFrame {
  public static let type = FrameType.deliveries

  public var count: UInt32

  public init(count: UInt32) {
    self.count = count
  }

  public static let layout = FrameLayout(Self.init, Field.integer("DELIVERIES count", \Self.count))
}
