import ReactiveCore
import SluiceWire

/// The position of a subscription in its topic, or in each topic of its pattern: checks the broker's frames, and derives the events for the subscriber. On
/// the loop only.
struct SubscriptionPosition {
  /// The frames that open a stream.
  enum Opening {
    case subscribe(Subscribe)
    case join(JoinGroup)
    case pattern(SubscribePattern, [Positions])
  }

  private let plan: SubscriptionPlan
  private let wantsProducers: Bool
  private var topic: ResumePoint
  private var pattern: PatternPlaces?
  /// The last time mark of the topic.
  private var time: Int64 = 0
  /// The number of producers last reported to the subscriber; nil before.
  private var knownProducers: UInt32?

  init(_ plan: SubscriptionPlan, wantsProducers: Bool) {
    self.plan = plan
    self.wantsProducers = wantsProducers
    topic = ResumePoint(plan)
    pattern = plan.hasPattern ? PatternPlaces(plan) : nil
  }

  /// Returns the frames that continue at this position with the remaining demand, positions of a pattern in frames of about `frameSize` bytes.
  mutating func opening(granted: UInt64, frameSize: Int) -> Opening {
    if let membership = plan.membership { return .join(membership.join(plan, granted: granted)) }
    if let (first, others) = pattern?.open(granted: granted, frameSize: frameSize) {
      return .pattern(first, others)
    }
    var frame = topic.subscribe(granted: granted)
    frame.wantsProducers = wantsProducers
    return .subscribe(frame)
  }

  /// - Throws: if the broker doesn't continue at this position.
  mutating func subscribed(_ frame: Subscribed) throws(WireError) -> ResumePoint.Continuation {
    // The broker keeps the position of a group.
    plan.membership != nil || pattern != nil ? .same : try topic.subscribed(frame)
  }

  /// Handles that the topic has another epoch. Returns whether the subscription continues with its records.
  mutating func startOver() -> Bool {
    guard plan.lag != .fail, topic.isKnown else { return false }
    topic.startOver()
    return true
  }

  mutating func live(_ frame: Live) -> TopicMark? {
    if pattern != nil { return pattern?.live(frame) }
    return topic.live(at: frame.nextOffset) ? .live(nextOffset: frame.nextOffset) : nil
  }

  mutating func producers(_ count: UInt32) -> TopicMark? {
    defer { knownProducers = count }
    // A subscriber expects a producer until an event says otherwise.
    return count != knownProducers && (count == 0 || knownProducers != nil) ? .producers(Int(count)) : nil
  }

  mutating func lagged(_ frame: Lag) throws(WireError) -> TopicMark {
    if let mark = try pattern?.lagged(frame) { return mark }
    topic.advance(to: frame.nextOffset)
    return .lagged(missed: frame.missed, nextOffset: frame.nextOffset)
  }

  /// Takes a batch.
  ///
  /// - Parameter mark: the last time mark in the batch, if any.
  /// - Returns: the batch's topic, and the time of its records before the first mark.
  mutating func deliver(
    _ header: DeliverHeader, lastMark mark: Int64?
  ) throws(WireError) -> (topic: String, time: Int64) {
    if let place = try pattern?.deliver(header, lastMark: mark) { return place }
    topic.advance(to: header.firstOffset + UInt64(header.count))
    defer { time = mark ?? time }
    return (plan.topic, time)
  }

  // MARK: Topics of a pattern

  /// - Throws: ``ClientError/Code/epochChanged`` if the subscription can't continue with the topic; the broker's protocol violation.
  mutating func matched(_ frame: Matched) throws(WireError) -> Result<TopicMark?, ClientError> {
    switch try pattern?.matched(frame) {
    case .change(let change): return .success(.topic(frame.topic, change))
    case .restarted where plan.lag == .fail:
      return .failure(
        ClientError(
          .epochChanged, "topic \(frame.topic) was recreated; subscribe again to get its present records",
          topic: frame.topic))
    case .restarted(let next): return .success(.topic(frame.topic, .restarted(nextOffset: next)))
    case .rewound(let next): return .success(.topic(frame.topic, .rewound(nextOffset: next)))
    case .known, nil: return .success(nil)
    }
  }

  mutating func unmatched(_ number: UInt32) throws(WireError) -> TopicMark? {
    guard let topic = try pattern?.unmatched(number) else { return nil }
    return .topic(topic, .deleted)
  }

  /// Selects the topic that the next frames are about, by its number. Returns the events for topics that were found to be deleted.
  mutating func selectTopic(_ number: UInt32) throws(WireError) -> [TopicMark] {
    try pattern?.select(number).map { .topic($0, .deleted) } ?? []
  }

  mutating func topicEnded(_ ending: Complete.Ending) throws(WireError) -> TopicMark? {
    guard let topic = try pattern?.completed() else { return nil }
    switch ending.completion(of: topic) {
    case .finished: return .topic(topic, .finished)
    case .failure(let error): return .topic(topic, .failed(error))
    }
  }
}

/// The position at which a subscription to one topic continues when it needs another stream.
///
/// The position is known from SUBSCRIBED on, not only from the first record: a subscription to new records that is interrupted before the first one continues
/// at its start, and misses none.
struct ResumePoint {
  private let plan: SubscriptionPlan
  private var start: Subscribe.Start
  /// The topic's epoch to which `next` belongs.
  private var epoch: UInt64 = 0
  /// The first record that wasn't received; nil while only the start is known.
  private var next: UInt64?
  private var isLive = false
  private var isStartingOver = false
  /// Whether the subscription waits for the offset that it named, which may be beyond the topic's end. It then repeats that start after a lost connection,
  /// because an offset with an epoch means that the client knows the records before it.
  private var isWaiting = false

  init(_ plan: SubscriptionPlan) {
    self.plan = plan
    start = Subscribe.Start(plan.start)
  }

  /// Whether there is a position to continue at.
  var isKnown: Bool { next != nil }

  func subscribe(granted: UInt64) -> Subscribe {
    Subscribe(
      topic: plan.topic, start: next.map { .offset($0) } ?? start, lag: Subscribe.LagPolicy(plan.lag),
      ifMissing: Subscribe.IfMissing(plan.ifMissing), epoch: next == nil || isWaiting ? 0 : epoch,
      grantedThrough: granted,
      cursor: plan.cursor?.name ?? "", filter: plan.filter, settings: plan.settings ?? TopicSettings())
  }

  /// How the topic's epoch continues the one before.
  enum Continuation: Equatable {
    /// It is the same or the first one, or continues the previous one without loss of received records.
    case same
    /// It continues the previous one up to that offset: the broker has lost the received records from there on.
    case rewound(to: UInt64)
    /// It is independent of the previous one.
    case restarted
  }

  /// - Throws: if the broker doesn't continue at the requested offset.
  mutating func subscribed(_ frame: Subscribed) throws(WireError) -> Continuation {
    if let next, !isWaiting {
      // Another epoch continues the requested one: the broker refuses unrelated epochs.
      guard frame.epoch != epoch || frame.nextOffset >= next else {
        throw WireError(
          .malformedFrame, "SUBSCRIBED begins at \(frame.nextOffset) where offset \(next) was to be next")
      }
      epoch = frame.epoch
      // If it is more, LAG follows, which reports the gap to the subscriber.
      guard frame.nextOffset < next else { return .same }
      self.next = frame.nextOffset
      return .rewound(to: frame.nextOffset)
    }
    epoch = frame.epoch
    defer { isStartingOver = false }
    let continuation = isStartingOver ? Continuation.restarted : .same
    // Before the first record the broker knows the cursor's position.
    guard plan.cursor?.name.isEmpty ?? true else { return continuation }
    isWaiting = false
    if case .offset(let offset) = start {
      if frame.nextOffset > offset {
        next = nil
        return .same
      }
      isWaiting = offset > 0 && frame.nextOffset >= frame.liveOffset
    }
    next = frame.nextOffset
    return continuation
  }

  /// Notes that all records before that offset were received, or are known to be missing.
  mutating func advance(to offset: UInt64) {
    next = offset
    isWaiting = false
  }

  /// Returns whether the subscription was not live before.
  mutating func live(at offset: UInt64) -> Bool {
    // The records before it that the filter has excluded need not be filtered again.
    isWaiting = isWaiting && offset <= next ?? 0
    next = max(next ?? offset, offset)
    defer { isLive = true }
    return !isLive
  }

  /// Handles that the topic has another epoch, all of whose records are new.
  mutating func startOver() {
    start = .earliest
    next = nil
    isWaiting = false
    epoch = 0
    isStartingOver = true
  }
}
