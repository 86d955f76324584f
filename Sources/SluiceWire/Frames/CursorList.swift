/// CURSOR_LIST: asks for a topic's durable cursors and groups, a page at a time. Answered by ``Cursors`` or ``Fault`` on the same stream.
///
/// ```
/// string topic · string after · u32 limit
/// ```
public struct CursorList: LaidOutFrame {
  public static let type = FrameType.cursorList

  public var topic: String
  /// Only cursors whose names come after this one in byte order; empty for the first page.
  public var after: String
  /// At most so many; the broker may send fewer.
  public var limit: UInt32

  public init(topic: String, after: String = "", limit: UInt32) {
    self.topic = topic
    self.after = after
    self.limit = limit
  }

  public static let layout = FrameLayout(
    Self.init, Field.name(.topic, "CURSOR_LIST topic", \Self.topic),
    Field.string("CURSOR_LIST after", \Self.after), Field.integer("CURSOR_LIST limit", \Self.limit))
}

/// CURSORS: a page of a topic's durable cursors and groups in byte order of their names. Answers ``CursorList``.
///
/// ```
/// u8 more (0 or 1) · list of cursors
/// ```
public struct Cursors: LaidOutFrame {
  public static let type = FrameType.cursors

  /// True when there are cursors after the last of this page.
  public var more: Bool
  public var cursors: [CursorInfo]

  public init(cursors: [CursorInfo], more: Bool) {
    self.cursors = cursors
    self.more = more
  }

  public static let layout = FrameLayout(
    { Self(cursors: $1, more: $0) }, Field.flag("CURSORS more", \Self.more),
    Field.list("cursor", \Self.cursors, CursorInfo.layout))
}

/// A durable cursor, or a group, in a few numbers.
///
/// ```
/// string name · u8 kind · u64 epoch · u64 next offset · u64 end · u32 members · u64 outstanding · u64 idle ·
/// u64 bytes · u64 age · u64 redeliveries · u64 dead letters · u64 abandoned · u64 missed ·
/// u64 delayed · u64 next retry
/// ```
public struct CursorInfo: Hashable, Sendable {
  /// The number is the one on the wire.
  public enum Kind: UInt8, Hashable, Sendable, CaseIterable {
    case cursor = 0
    case group = 1
  }

  /// The value of ``bytes`` and ``age`` while the broker hasn't found the record at ``nextOffset`` in its store yet.
  public static let unknown = UInt64.max

  public var name: String
  public var kind: Kind
  /// The topic's epoch to which the cursor's offset refers.
  public var epoch: UInt64
  /// That of the first record which isn't committed, or done with.
  public var nextOffset: UInt64
  /// The offset that the topic's next record will get.
  public var end: UInt64
  /// Subscriptions that use it at the moment.
  public var members: UInt32
  /// Records that are with members of a group, neither acknowledged nor given back.
  public var outstanding: UInt64
  /// For how long no client has used it, in milliseconds; 0 while one does.
  public var idle: UInt64
  /// Bytes of the records behind ``nextOffset`` that the topic still has; ``unknown`` when the broker has to look them up in its store.
  public var bytes: UInt64
  /// The age of the first of these records, in milliseconds; 0 without any, ``unknown`` as in ``bytes``.
  public var age: UInt64
  /// How often the group has delivered a record again, since the broker has started or the group was moved.
  public var redeliveries: UInt64
  /// Records that the group has sent to its dead letters, since then.
  public var deadLetters: UInt64
  /// Records that the group has given up without dead letters, since then.
  public var abandoned: UInt64
  /// Records that the topic has dropped before the group could deliver them, since then.
  public var missed: UInt64
  /// Records of a group that wait for the time of their retry.
  public var delayed: UInt64
  /// Milliseconds until the first of them is delivered again; 0 without any.
  public var nextRetry: UInt64

  public init(
    name: String, kind: Kind, epoch: UInt64, nextOffset: UInt64, end: UInt64, members: UInt32,
    outstanding: UInt64, idle: UInt64, bytes: UInt64 = unknown, age: UInt64 = unknown,
    redeliveries: UInt64 = 0, deadLetters: UInt64 = 0, abandoned: UInt64 = 0, missed: UInt64 = 0,
    delayed: UInt64 = 0, nextRetry: UInt64 = 0
  ) {
    self.name = name
    self.kind = kind
    self.epoch = epoch
    self.nextOffset = nextOffset
    self.end = end
    self.members = members
    self.outstanding = outstanding
    self.idle = idle
    self.bytes = bytes
    self.age = age
    self.redeliveries = redeliveries
    self.deadLetters = deadLetters
    self.abandoned = abandoned
    self.missed = missed
    self.delayed = delayed
    self.nextRetry = nextRetry
  }

  static let layout = FrameLayout(
    Self.init, Field.string("cursor's name", \Self.name),
    Field.choice("cursor's kind", \Self.kind, else: .cursor, .malformedFrame) {
      "a cursor has kind \($0); 0 and 1 are defined"
    }, Field.integer("cursor's epoch", \Self.epoch), Field.integer("cursor's next offset", \Self.nextOffset),
    Field.integer("cursor's end", \Self.end), Field.integer("cursor's members", \Self.members),
    Field.integer("cursor's outstanding", \Self.outstanding), Field.integer("cursor's idle", \Self.idle),
    Field.integer("cursor's bytes", \Self.bytes), Field.integer("cursor's age", \Self.age),
    Field.integer("cursor's redeliveries", \Self.redeliveries),
    Field.integer("cursor's dead letters", \Self.deadLetters),
    Field.integer("cursor's abandoned", \Self.abandoned), Field.integer("cursor's missed", \Self.missed),
    Field.integer("cursor's delayed", \Self.delayed).added(absent: 0),
    Field.integer("cursor's next retry", \Self.nextRetry).added(absent: 0))
}
