/// SUBSCRIBE_PATTERN: opens one subscription to all topics whose names match a pattern, those created later included, on a stream that isn't in
/// use. One demand for all of them. Answered by ``Subscribed``, whose fields mean nothing here, or ``Fault``.
///
/// ```
/// string pattern · u8 start · u8 lag (2 as each topic's settings say) · u8 more · u8 0 · u64 start value
/// u64 granted through · filter · positions
/// ```
///
/// Topics that are created later are read from their first record.
public struct SubscribePattern: Frame {
  public static let type = FrameType.subscribePattern

  public var names: [FrameName] {
    [FrameName(.pattern, pattern)] + positions.map { FrameName(.topic, $0.topic) }
  }

  public var pattern: String
  /// Where to start in topics that are there and have no position of their own.
  public var start: Subscribe.Start
  /// Nil for what each topic's settings say.
  public var lag: Subscribe.LagPolicy?
  /// The demand to begin with: see ``Demand``. 0 is allowed here.
  public var grantedThrough: UInt64
  public var filter: RecordFilter
  /// Where to go on in topics that were read before. One that has been started anew since is read from what is there now.
  public var positions: [TopicPosition]
  /// Whether ``Positions`` follow on the stream; the subscription begins with the last of them.
  public var more: Bool

  public init(
    pattern: String, start: Subscribe.Start = .replay, lag: Subscribe.LagPolicy? = .skip,
    grantedThrough: UInt64, filter: RecordFilter = RecordFilter(), positions: [TopicPosition] = [],
    more: Bool = false
  ) {
    self.pattern = pattern
    self.start = start
    self.lag = lag
    self.grantedThrough = grantedThrough
    self.filter = filter
    self.positions = positions
    self.more = more
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.string(pattern)
    writer.integer(start.number)
    writer.integer(lag?.rawValue ?? Subscribe.lagOfTopic)
    writer.integer(more ? 1 : 0 as UInt8)
    writer.integer(UInt8(0))
    writer.integer(start.value)
    writer.integer(grantedThrough)
    filter.encode(into: &writer)
    TopicPosition.encode(positions, into: &writer)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    pattern = try reader.string("SUBSCRIBE_PATTERN pattern")
    let start: UInt8 = try reader.integer("SUBSCRIBE_PATTERN start")
    let lag: UInt8 = try reader.integer("SUBSCRIBE_PATTERN lag")
    more = try reader.integer("SUBSCRIBE_PATTERN more", as: UInt8.self) != 0
    _ = try reader.integer("SUBSCRIBE_PATTERN reserved", as: UInt8.self)
    let value: UInt64 = try reader.integer("SUBSCRIBE_PATTERN start value")
    grantedThrough = try reader.integer("SUBSCRIBE_PATTERN granted through")
    filter = try RecordFilter(from: &reader)
    positions = try TopicPosition.list(from: &reader)
    self.start = try Subscribe.Start(number: start, value: value)
    self.lag = try Subscribe.lag(lag)
  }
}

/// POSITIONS: more of the places where a subscription to a pattern goes on, for one whose ``SubscribePattern/more`` says so.
///
/// ```
/// u8 more · positions
/// ```
public struct Positions: Frame {
  public static let type = FrameType.positions

  public var names: [FrameName] { positions.map { FrameName(.topic, $0.topic) } }

  public var positions: [TopicPosition]
  /// Whether more follow.
  public var more: Bool

  public init(_ positions: [TopicPosition], more: Bool) {
    self.positions = positions
    self.more = more
  }

  public func encodeBody(into writer: inout ByteWriter) {
    writer.integer(more ? 1 : 0 as UInt8)
    TopicPosition.encode(positions, into: &writer)
  }

  public init(body reader: inout ByteReader) throws(WireError) {
    more = try reader.integer("POSITIONS more", as: UInt8.self) != 0
    positions = try TopicPosition.list(from: &reader)
  }
}

/// A place in one of the topics of a pattern.
///
/// ```
/// positions: list of (string topic · u64 epoch · u64 next offset)
/// ```
public struct TopicPosition: Hashable, Sendable {
  public var topic: String
  public var epoch: UInt64
  /// That of the first record that isn't known yet.
  public var nextOffset: UInt64

  public init(topic: String, epoch: UInt64, nextOffset: UInt64) {
    self.topic = topic
    self.epoch = epoch
    self.nextOffset = nextOffset
  }

  static func encode(_ positions: [TopicPosition], into writer: inout ByteWriter) {
    writer.list(positions) { position, writer in
      writer.string(position.topic)
      writer.integer(position.epoch)
      writer.integer(position.nextOffset)
    }
  }

  static func list(from reader: inout ByteReader) throws(WireError) -> [TopicPosition] {
    try reader.list("position") { reader throws(WireError) in
      TopicPosition(
        topic: try reader.string("position's topic"), epoch: try reader.integer("position's epoch"),
        nextOffset: try reader.integer("position's next offset"))
    }
  }
}
