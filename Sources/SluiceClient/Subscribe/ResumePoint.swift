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
    start = Subscribe.Start(plan.start)
  }

  /// Whether there is a position to go on at.
  var isKnown: Bool { next != nil }

  func subscribe(granted: UInt64) -> Subscribe {
    Subscribe(
      topic: topic, start: next.map { .offset($0) } ?? start, lag: lag, epoch: next == nil ? 0 : epoch,
      grantedThrough: granted, cursor: cursor, filter: filter)
  }

  /// - Returns: whether this is another life of the topic than before.
  /// - Throws: when the broker doesn't go on where it was asked to.
  mutating func subscribed(_ frame: Subscribed) throws(WireError) -> Bool {
    if let next {
      guard frame.epoch == epoch, frame.nextOffset >= next else {
        throw WireError(
          .malformedFrame, "SUBSCRIBED begins at \(frame.nextOffset) where offset \(next) was to be next")
      }
      // If it is more, a LAG says so, and until that has come nobody was told of the gap.
      return false
    }
    epoch = frame.epoch
    // Until something has come, the broker knows better where the cursor stands.
    guard cursor.isEmpty else {
      defer { isStartingOver = false }
      return isStartingOver
    }
    if case .offset(let offset) = start, frame.nextOffset > offset { return false }
    next = frame.nextOffset
    defer { isStartingOver = false }
    return isStartingOver
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
