/// SUBSCRIBE: opens a subscription on a stream that isn't in use. Answered by ``Subscribed`` or ``Fault``.
///
/// ```
/// string topic · u8 start · u8 lag (2 as the topic's settings say) · u8 if missing · u8 flags (1: PRODUCERS is wanted)
/// u64 start value · u64 epoch · u64 granted through · string cursor · filter · settings
/// ```
public struct Subscribe: LaidOutFrame {
  public static let type = FrameType.subscribe

  /// Where in the topic a subscription starts. The number is the one on the wire.
  public enum Start: Hashable, Sendable {
    /// 0: at what the topic's replay limits keep, then live. The default.
    case replay
    /// 1: at the oldest record that there is.
    case earliest
    /// 2: at the next record to be published.
    case new
    /// 3: that many records before the end, or as many as there are.
    case last(UInt64)
    /// 4: at that offset. Below the oldest, the subscription lags from its start; beyond the end, it waits for that offset.
    case offset(UInt64)
    /// 5: at the first record that isn't older than this time, in milliseconds since 1970; after all, at the next one.
    case time(Int64)
  }

  /// The reaction to records that were dropped before the subscription got them.
  public enum LagPolicy: UInt8, Hashable, Sendable {
    /// A LAG frame has their number, and delivery continues.
    case skip = 0
    /// The subscription ends with ``ErrorCode/lagged``.
    case fail = 1
  }

  /// The broker's reaction if no topic has that name. The number is the one on the wire.
  public enum IfMissing: UInt8, Hashable, Sendable, CaseIterable {
    /// It creates the topic.
    case create = 0
    /// It refuses the subscription with ``ErrorCode/unknownTopic``.
    case fail = 1
  }

  public var topic: String
  public var start: Start
  /// Nil for what the topic's settings say.
  public var lag: LagPolicy?
  public var ifMissing: IfMissing
  /// The epoch of the topic to which `start` refers; 0 takes any.
  public var epoch: UInt64
  /// The demand to begin with: see ``Demand``. 0 is allowed here.
  public var grantedThrough: UInt64
  /// The durable cursor whose place is the start, if it has one: see ``Commit``. Empty for none.
  public var cursor: String
  public var filter: RecordFilter
  /// Whether the subscriber wants ``Producers`` frames.
  public var wantsProducers: Bool
  /// The settings that the subscriber states for the topic: see ``TopicCreate``. All nil states nothing.
  public var settings: TopicSettings

  public init(
    topic: String, start: Start = .replay, lag: LagPolicy? = .skip, ifMissing: IfMissing = .create,
    epoch: UInt64 = 0, grantedThrough: UInt64, cursor: String = "", filter: RecordFilter = RecordFilter(),
    wantsProducers: Bool = false, settings: TopicSettings = TopicSettings()
  ) {
    self.topic = topic
    self.start = start
    self.lag = lag
    self.ifMissing = ifMissing
    self.epoch = epoch
    self.grantedThrough = grantedThrough
    self.cursor = cursor
    self.filter = filter
    self.wantsProducers = wantsProducers
    self.settings = settings
  }

  public static let layout = FrameLayout(
    {
      Self(
        topic: $0, start: Start(number: $1, value: $5), lag: $2, ifMissing: $3, epoch: $6,
        grantedThrough: $7, cursor: $8, filter: $9, wantsProducers: $4, settings: $10)
    },
    Field.name(.topic, "SUBSCRIBE topic", \Self.topic), Field.start("SUBSCRIBE start", \Self.start),
    Field.lag("SUBSCRIBE lag", \Self.lag),
    Field.ifMissing("SUBSCRIBE", "SUBSCRIBE if missing", \Self.ifMissing),
    Field.flag("SUBSCRIBE flags", mask: 1, \Self.wantsProducers),
    Field.integer("SUBSCRIBE start value", \Self.start.value), Field.integer("SUBSCRIBE epoch", \Self.epoch),
    Field.integer("SUBSCRIBE granted through", \Self.grantedThrough),
    Field.name(.cursor, "SUBSCRIBE cursor", isOptional: true, \Self.cursor), Field.filter(\Self.filter),
    Field.settings(\Self.settings, unknown: .refuse))
}

// MARK: What other frames have, too

extension Field where Value == UInt8 {
  /// The number of a start position. Its value is a field of its own.
  static func start(_ what: StaticString, _ get: @escaping @Sendable (Owner) -> Subscribe.Start) -> Field {
    integer(what) { get($0).number }.refused {
      $0 < 6 ? nil : WireError(.unsupported, "SUBSCRIBE names start position \($0); 0 to 5 are defined")
    }
  }
}

extension Field where Value == Subscribe.LagPolicy? {
  /// Nil is 2: as the topic's settings.
  static func lag(_ what: StaticString, _ get: @escaping @Sendable (Owner) -> Value) -> Field {
    Field(
      write: { $1.integer(get($0)?.rawValue ?? 2) },
      read: { (reader: inout FieldReader) throws(WireError) in
        let number: UInt8 = try reader.bytes.integer(what)
        if number > 2 {
          try reader.refuse(
            WireError(.unsupported, "SUBSCRIBE names lag policy \(number); 0 to 2 are defined"))
        }
        return Subscribe.LagPolicy(rawValue: number)
      })
  }
}

extension Field where Value == Subscribe.IfMissing {
  static func ifMissing(
    _ frame: StaticString, _ what: StaticString, _ get: @escaping @Sendable (Owner) -> Value
  ) -> Field {
    choice(what, get, else: .create) {
      "\(frame) says \($0) for a topic that is missing; 0 and 1 are defined"
    }
  }
}

extension Subscribe.Start {
  var number: UInt8 {
    switch self {
    case .replay: 0
    case .earliest: 1
    case .new: 2
    case .last: 3
    case .offset: 4
    case .time: 5
    }
  }

  var value: UInt64 {
    switch self {
    case .replay, .earliest, .new: 0
    case .last(let count): count
    case .offset(let offset): offset
    case .time(let time): UInt64(bitPattern: time)
    }
  }

  /// A number that isn't defined is refused before.
  init(number: UInt8, value: UInt64) {
    switch number {
    case 1: self = .earliest
    case 2: self = .new
    case 3: self = .last(value)
    case 4: self = .offset(value)
    case 5: self = .time(Int64(bitPattern: value))
    default: self = .replay
    }
  }
}
