extension TopicInfo {
  /// A durable cursor or a group of the topic, and how far it is behind the topic's end.
  public struct Consumer: Hashable, Sendable {
    /// The value of ``bytes`` and ``age`` while the broker hasn't found the record at ``nextOffset`` in its store yet.
    public static let unknown = UInt64.max

    public var name: String
    public var kind: CursorInfo.Kind
    /// The offset of the first record that isn't committed, or done with.
    public var nextOffset: UInt64
    /// Records from there to the end of the topic. For a group, settled records after ``nextOffset`` count as well.
    public var lag: UInt64
    /// Bytes of these records that the topic still has; ``unknown`` when the broker has to look them up in its store.
    public var bytes: UInt64
    /// The age of the first of these records that the topic still has, in milliseconds; 0 without lag, ``unknown`` as in ``bytes``.
    public var age: UInt64
    /// Subscriptions that use it at the moment.
    public var members: UInt32
    /// Records that are with members of a group, neither acknowledged nor given back.
    public var unacknowledged: UInt64
    /// How often the group has delivered a record again, since the broker has started or the group was moved.
    public var redeliveries: UInt64
    /// Records that the group has sent to its dead letters, since then.
    public var deadLetters: UInt64
    /// Records that the group has given up without dead letters, since then.
    public var abandoned: UInt64
    /// Records that the topic has dropped before the group could deliver them, since then.
    public var missed: UInt64
    /// For how long no client has used it, in milliseconds; 0 while one does.
    public var idle: UInt64
    /// Records of a group that wait for the time of their retry.
    public var delayed: UInt64
    /// Milliseconds until the first of them is delivered again; 0 without any.
    public var nextRetry: UInt64

    public init(
      name: String, kind: CursorInfo.Kind, nextOffset: UInt64, lag: UInt64, bytes: UInt64 = unknown,
      age: UInt64 = unknown, members: UInt32 = 0, unacknowledged: UInt64 = 0, redeliveries: UInt64 = 0,
      deadLetters: UInt64 = 0, abandoned: UInt64 = 0, missed: UInt64 = 0, idle: UInt64 = 0,
      delayed: UInt64 = 0, nextRetry: UInt64 = 0
    ) {
      self.name = name
      self.kind = kind
      self.nextOffset = nextOffset
      self.lag = lag
      self.bytes = bytes
      self.age = age
      self.members = members
      self.unacknowledged = unacknowledged
      self.redeliveries = redeliveries
      self.deadLetters = deadLetters
      self.abandoned = abandoned
      self.missed = missed
      self.idle = idle
      self.delayed = delayed
      self.nextRetry = nextRetry
    }

    static let layout = FrameLayout(
      Self.init, Field.string("consumer name", limit: Limits.name, \Self.name),
      Field.choice("consumer kind", \Self.kind, else: .cursor, .malformedFrame) {
        "a consumer has kind \($0); 0 and 1 are defined"
      }, Field.integer("consumer next offset", \Self.nextOffset), Field.integer("consumer lag", \Self.lag),
      Field.integer("consumer bytes", \Self.bytes), Field.integer("consumer age", \Self.age),
      Field.integer("consumer members", \Self.members),
      Field.integer("consumer unacknowledged", \Self.unacknowledged),
      Field.integer("consumer redeliveries", \Self.redeliveries),
      Field.integer("consumer dead letters", \Self.deadLetters),
      Field.integer("consumer abandoned", \Self.abandoned), Field.integer("consumer missed", \Self.missed),
      Field.integer("consumer idle", \Self.idle),
      Field.integer("consumer delayed", \Self.delayed).added(absent: 0),
      Field.integer("consumer next retry", \Self.nextRetry).added(absent: 0))

    /// How clients use it, to end a sentence: "its 3 members have 12 records unacknowledged".
    ///
    /// - Parameters:
    ///   - time: milliseconds in words.
    ///   - records: a count of records in words.
    package func use(_ time: (UInt64) -> String, _ records: (UInt64) -> String) -> String {
      switch (members, unacknowledged) {
      case (0, _): "no client has used it for \(time(idle))"
      case (1, 0): "one subscription uses it"
      case (1, _): "its member has \(records(unacknowledged)) unacknowledged"
      case (_, 0): "\(members) members use it"
      case (_, _): "its \(members) members have \(records(unacknowledged)) unacknowledged"
      }
    }

    /// Orders consumers that are further behind first, then by name.
    public static func precedes(_ left: Self, _ right: Self) -> Bool {
      left.lag != right.lag
        ? left.lag > right.lag : left.name.utf8.lexicographicallyPrecedes(right.name.utf8)
    }
  }
}
