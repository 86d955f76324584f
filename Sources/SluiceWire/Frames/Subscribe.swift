/// SUBSCRIBE: opens a subscription on a stream that isn't in use. Answered by ``Subscribed`` or ``Fault``.
///
/// ```
/// string topic · u8 start · u8 lag (2 as the topic's settings say) · u8 if missing · u8 flags (1: PRODUCERS is wanted)
/// u64 start value · u64 epoch · u64 granted through · string cursor · filter · settings
/// ```
public struct Subscribe: Frame {
  public static let type = FrameType.subscribe

  public var names: [FrameName] { [FrameName(.topic, topic), FrameName(.cursor, cursor, isOptional: true)] }

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

  /// What happens when records that the subscription is owed were dropped.
  public enum LagPolicy: UInt8, Hashable, Sendable {
    /// A LAG frame tells how many, and delivery goes on.
    case skip = 0
    /// The subscription ends with ``ErrorCode/lagged``.
    case fail = 1
  }

  /// What the broker does when there is no topic of that name. The number is the one on the wire.
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
  /// What the subscriber states of the topic: see ``TopicCreate``. All nil states nothing.
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

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(topic)
    writer.integer(start.number)
    writer.integer(lag?.rawValue ?? Self.lagOfTopic)
    writer.integer(ifMissing.rawValue)
    writer.integer(UInt8(wantsProducers ? 1 : 0))
    writer.integer(start.value)
    writer.integer(epoch)
    writer.integer(grantedThrough)
    writer.string(cursor)
    filter.encode(into: &writer)
    settings.encode(into: &writer)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("SUBSCRIBE topic")
    let start: UInt8 = try reader.integer("SUBSCRIBE start")
    let lag: UInt8 = try reader.integer("SUBSCRIBE lag")
    let ifMissing: UInt8 = try reader.integer("SUBSCRIBE if missing")
    wantsProducers = try reader.integer("SUBSCRIBE flags", as: UInt8.self) & 1 != 0
    let value: UInt64 = try reader.integer("SUBSCRIBE start value")
    epoch = try reader.integer("SUBSCRIBE epoch")
    grantedThrough = try reader.integer("SUBSCRIBE granted through")
    cursor = try reader.string("SUBSCRIBE cursor")
    filter = try RecordFilter(from: &reader)
    settings = try TopicSettings(from: &reader, unknown: .refuse)
    self.start = try Start(number: start, value: value)
    self.lag = try Self.lag(lag)
    self.ifMissing = try Self.ifMissing(ifMissing, in: "SUBSCRIBE")
  }
}

// MARK: What other frames have, too

extension Subscribe {
  static var lagOfTopic: UInt8 { 2 }

  static func lag(_ number: UInt8) throws(WireError) -> LagPolicy? {
    let policy = LagPolicy(rawValue: number)
    guard policy != nil || number == lagOfTopic else {
      throw WireError(.unsupported, "SUBSCRIBE names lag policy \(number); 0 to 2 are defined")
    }
    return policy
  }
}

extension Subscribe {
  static func ifMissing(_ number: UInt8, in frame: StaticString) throws(WireError) -> IfMissing {
    guard let value = IfMissing(rawValue: number) else {
      throw WireError(
        .unsupported, "\(frame) says \(number) for a topic that is missing; 0 and 1 are defined")
    }
    return value
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

  init(number: UInt8, value: UInt64) throws(WireError) {
    switch number {
    case 0: self = .replay
    case 1: self = .earliest
    case 2: self = .new
    case 3: self = .last(value)
    case 4: self = .offset(value)
    case 5: self = .time(Int64(bitPattern: value))
    default:
      throw WireError(.unsupported, "SUBSCRIBE names start position \(number); 0 to 5 are defined")
    }
  }
}
