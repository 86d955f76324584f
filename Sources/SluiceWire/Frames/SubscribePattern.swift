/// SUBSCRIBE_PATTERN: opens one subscription to all topics whose names match a pattern, those created later included, on a stream that isn't in
/// use. One demand for all of them. Answered by ``Subscribed``, whose fields mean nothing here, or ``Fault``.
///
/// ```
/// string pattern · u8 start · u8 lag (2 as each topic's settings say) · u8 more · u8 0 · u64 start value
/// u64 granted through · filter · positions
/// ```
///
/// Topics that are created later are read from their first record.
public struct SubscribePattern: LaidOutFrame {
  public static let type = FrameType.subscribePattern

  public var pattern: String
  /// The start in existing topics without a position of their own.
  public var start: Subscribe.Start
  /// Nil for what each topic's settings say.
  public var lag: Subscribe.LagPolicy?
  /// The demand to begin with: see ``Demand``. 0 is allowed here.
  public var grantedThrough: UInt64
  public var filter: RecordFilter
  /// The positions at which to continue in topics that were read before. One that has been started anew since is read
  /// from what is there now.
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

  public static let layout = FrameLayout(
    { (head: Self, positions) in
      var frame = head
      frame.positions = positions
      return frame
    }, Field.part(\.self, head, visitNames: head.visitNames),
    Field.list("position", \Self.positions, TopicPosition.layout))

  /// The fields in front of the positions.
  private static let head = FrameLayout(
    {
      Self(
        pattern: $0, start: Subscribe.Start(number: $1, value: $4), lag: $2, grantedThrough: $5, filter: $6,
        more: $3)
    },
    Field.name(.pattern, "SUBSCRIBE_PATTERN pattern", \Self.pattern),
    Field.start("SUBSCRIBE_PATTERN start", \Self.start), Field.lag("SUBSCRIBE_PATTERN lag", \Self.lag),
    Field.flag("SUBSCRIBE_PATTERN more", \Self.more).padded(reserved: ("SUBSCRIBE_PATTERN reserved", 1)),
    Field.integer("SUBSCRIBE_PATTERN start value", \Self.start.value),
    Field.integer("SUBSCRIBE_PATTERN granted through", \Self.grantedThrough), Field.filter(\Self.filter))

  /// Reads a frame without its positions, which a reader has.
  package static func long(
    _ body: UnsafeRawBufferPointer
  ) throws(WireError) -> (frame: SubscribePattern, positions: PositionsReader) {
    var reader = unsafe ByteReader(body)
    let frame = try head.decode(&reader)
    return (frame, try PositionsReader(list: reader, more: frame.more))
  }
}

/// POSITIONS: more positions at which a subscription to a pattern continues, if its ``SubscribePattern/more`` announces
/// them.
///
/// ```
/// u8 more · positions
/// ```
public struct Positions: LaidOutFrame {
  public static let type = FrameType.positions

  public var positions: [TopicPosition]
  /// Whether more follow.
  public var more: Bool

  public init(_ positions: [TopicPosition], more: Bool) {
    self.positions = positions
    self.more = more
  }

  public static let layout = FrameLayout(
    { Self($1, more: $0) }, Field.flag("POSITIONS more", \Self.more),
    Field.list("position", \Self.positions, TopicPosition.layout))
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

  static let layout = FrameLayout(
    Self.init, Field.name(.topic, "position's topic", \Self.topic),
    Field.integer("position's epoch", \Self.epoch),
    Field.integer("position's next offset", \Self.nextOffset))
}
