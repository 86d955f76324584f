/// SUBSCRIBE: opens a subscription on a stream that isn't in use. Answered by ``Subscribed`` or ``Fault``.
///
/// ```
/// string topic · u8 start · u8 lag (2 as the topic's settings say) · u16 0 · u64 start value · u64 epoch · u64 granted through
/// ```
public struct Subscribe: Frame {
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

  /// What happens when records that the subscription is owed were dropped.
  public enum LagPolicy: UInt8, Hashable, Sendable {
    /// A LAG frame tells how many, and delivery goes on.
    case skip = 0
    /// The subscription ends with ``ErrorCode/lagged``.
    case fail = 1
  }

  public var topic: String
  public var start: Start
  /// Nil for what the topic's settings say.
  public var lag: LagPolicy?
  /// The life of the topic in which `start` is meant; 0 takes any.
  public var epoch: UInt64
  /// The demand to begin with: see ``Demand``. 0 is allowed here.
  public var grantedThrough: UInt64

  public init(
    topic: String, start: Start = .replay, lag: LagPolicy? = .skip, epoch: UInt64 = 0,
    grantedThrough: UInt64
  ) {
    self.topic = topic
    self.start = start
    self.lag = lag
    self.epoch = epoch
    self.grantedThrough = grantedThrough
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(topic)
    let (kind, value): (UInt8, UInt64) =
      switch start {
      case .replay: (0, 0)
      case .earliest: (1, 0)
      case .new: (2, 0)
      case .last(let count): (3, count)
      case .offset(let offset): (4, offset)
      case .time(let time): (5, UInt64(bitPattern: time))
      }
    writer.integer(kind)
    writer.integer(lag?.rawValue ?? Self.lagOfTopic)
    writer.integer(UInt16(0))
    writer.integer(value)
    writer.integer(epoch)
    writer.integer(grantedThrough)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    topic = try reader.string("SUBSCRIBE topic")
    let kind: UInt8 = try reader.integer("SUBSCRIBE start")
    let lag: UInt8 = try reader.integer("SUBSCRIBE lag")
    _ = try reader.integer("SUBSCRIBE reserved", as: UInt16.self)
    let value: UInt64 = try reader.integer("SUBSCRIBE start value")
    epoch = try reader.integer("SUBSCRIBE epoch")
    grantedThrough = try reader.integer("SUBSCRIBE granted through")
    switch kind {
    case 0: start = .replay
    case 1: start = .earliest
    case 2: start = .new
    case 3: start = .last(value)
    case 4: start = .offset(value)
    case 5: start = .time(Int64(bitPattern: value))
    default: throw WireError(.unsupported, "SUBSCRIBE names start position \(kind); 0 to 5 are defined")
    }
    self.lag = LagPolicy(rawValue: lag)
    guard self.lag != nil || lag == Self.lagOfTopic else {
      throw WireError(.unsupported, "SUBSCRIBE names lag policy \(lag); 0 to 2 are defined")
    }
  }

  private static var lagOfTopic: UInt8 { 2 }
}
