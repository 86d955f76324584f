import SluiceWire

/// Where a subscription goes on when it needs another stream.
///
/// The position is known from SUBSCRIBED on, not from the first record: a subscription to what is new that is interrupted before anything
/// came goes on where it began, and misses nothing.
struct ResumePoint {
  private let topic: String
  private let lag: Subscribe.LagPolicy?
  private let filter: RecordFilter
  private let cursor: String
  private let ifMissing: Subscribe.IfMissing
  private let settings: TopicSettings
  private var start: Subscribe.Start
  /// Of the topic's life in which `next` means something.
  private var epoch: UInt64 = 0
  /// The first record that wasn't received; nil while nothing is known but the start.
  private var next: UInt64?
  private var isLive = false
  private var isStartingOver = false

  init(_ plan: SubscriptionPlan) {
    topic = plan.topic
    lag = plan.lag.map { $0 == .skip ? .skip : .fail }
    filter = plan.filter
    cursor = plan.cursor?.name ?? ""
    ifMissing = Subscribe.IfMissing(plan.ifMissing)
    settings = plan.settings ?? TopicSettings()
    start = Subscribe.Start(plan.start)
  }

  /// Whether there is a position to go on at.
  var isKnown: Bool { next != nil }

  func subscribe(granted: UInt64) -> Subscribe {
    Subscribe(
      topic: topic, start: next.map { .offset($0) } ?? start, lag: lag, ifMissing: ifMissing,
      epoch: next == nil ? 0 : epoch, grantedThrough: granted, cursor: cursor, filter: filter,
      settings: settings)
  }

  /// What the topic's life is to the one before.
  enum Life: Equatable {
    /// The same, or the first one; or it continues the one before, and nothing was lost that had come.
    case known
    /// It continues the one before up to that offset: what came from there on, the broker has lost.
    case rewound(to: UInt64)
    /// It is another one altogether.
    case another
  }

  /// - Throws: when the broker doesn't go on where it was asked to.
  mutating func subscribed(_ frame: Subscribed) throws(WireError) -> Life {
    if let next {
      // With another epoch the broker says that it continues the one that it was asked for: others it doesn't know.
      guard frame.epoch != epoch || frame.nextOffset >= next else {
        throw WireError(
          .malformedFrame, "SUBSCRIBED begins at \(frame.nextOffset) where offset \(next) was to be next")
      }
      epoch = frame.epoch
      // If it is more, a LAG says so, and until that has come nobody was told of the gap.
      guard frame.nextOffset < next else { return .known }
      self.next = frame.nextOffset
      return .rewound(to: frame.nextOffset)
    }
    epoch = frame.epoch
    defer { isStartingOver = false }
    let life = isStartingOver ? Life.another : .known
    // Until something has come, the broker knows better where the cursor stands.
    guard cursor.isEmpty else { return life }
    if case .offset(let offset) = start, frame.nextOffset > offset { return .known }
    next = frame.nextOffset
    return life
  }

  /// Everything before that offset was received, or is known to be missing.
  mutating func advance(to offset: UInt64) {
    next = offset
  }

  /// Returns whether that is news.
  mutating func live(at offset: UInt64) -> Bool {
    // What a filter has kept back in front of it needn't be looked through again.
    next = max(next ?? offset, offset)
    defer { isLive = true }
    return !isLive
  }

  /// The topic is in another life: all that there is of that is new.
  mutating func startOver() {
    start = .earliest
    next = nil
    epoch = 0
    isStartingOver = true
  }
}
