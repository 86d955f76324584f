import SluiceWire

/// Where a subscription goes on when it needs another stream.
///
/// The position is known from SUBSCRIBED on, not from the first record: a subscription to what is new that is interrupted before anything
/// came goes on where it began, and misses nothing.
struct ResumePoint {
  private let topic: String
  private let lag: Subscribe.LagPolicy?
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
    start = Subscribe.Start(plan.start)
  }

  /// Whether there is a position to go on at.
  var isKnown: Bool { next != nil }

  func subscribe(granted: UInt64) -> Subscribe {
    guard let next else {
      return Subscribe(topic: topic, start: start, lag: lag, grantedThrough: granted)
    }
    return Subscribe(topic: topic, start: .offset(next), lag: lag, epoch: epoch, grantedThrough: granted)
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
  mutating func live() -> Bool {
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
