import SluiceWire

/// The positions of a subscription to a pattern in each of its topics, on the current stream and for the next one.
///
/// A value: its input is the broker's frames about the topics, which it checks; its output is the events for the subscriber.
struct PatternPlaces {
  private struct Place {
    var name: String
    var epoch: UInt64
    /// The first record that wasn't received.
    var next: UInt64
    var gaps: Bool
    /// The topic's last time mark.
    var time: Int64 = 0
    var isLive = false
    var isCompleted = false
    /// The topic's number on the current stream; 0 before MATCHED.
    var number: UInt32
  }

  /// The meaning of MATCHED for the subscription.
  enum Match: Equatable {
    /// The subscription continues at its position.
    case known
    case change(TopicChange)
    /// The topic was started anew while there was no connection.
    case restarted(nextOffset: UInt64)
    /// The broker has lost the received records from there on.
    case rewound(nextOffset: UInt64)
  }

  private let plan: SubscriptionPlan
  private var start: Subscribe.Start

  /// Free places are nil.
  private var places: [Place?] = []
  private var free: [Int] = []
  private var names: [String: Int] = [:]
  private var numbers: [UInt32: Int] = [:]
  /// The place of the topic that the stream's frames are about; nil for the subscription as a whole.
  private var selected: Int?
  /// The broker has named all topics that existed when the stream began.
  private var isComplete = false
  private var isLive = false

  init(_ plan: SubscriptionPlan) {
    self.plan = plan
    start = Subscribe.Start(plan.start)
  }

  var count: Int { names.count }

  // MARK: A stream begins

  /// Returns the frames that open the next stream, with positions in frames of at most about `size` bytes.
  mutating func open(granted: UInt64, frameSize size: Int) -> (SubscribePattern, [Positions]) {
    selected = nil
    isComplete = false
    numbers = [:]
    var batches: [[TopicPosition]] = [[]]
    var bytes = 0
    for index in places.indices {
      guard let place = places[index] else { continue }
      places[index]?.number = 0
      let length = place.name.utf8.count + 24
      if bytes + length > size {
        batches.append([])
        bytes = 0
      }
      bytes += length
      batches[batches.count - 1].append(
        TopicPosition(topic: place.name, epoch: place.epoch, nextOffset: place.next))
    }
    let first = SubscribePattern(
      pattern: plan.topic, start: start, lag: Subscribe.LagPolicy(plan.lag), grantedThrough: granted,
      filter: plan.filter, positions: batches[0], more: batches.count > 1)
    let others = batches.dropFirst().enumerated().map { Positions($1, more: $0 < batches.count - 2) }
    return (first, others)
  }

  // MARK: Topics

  mutating func matched(_ frame: Matched) throws(WireError) -> Match {
    guard frame.number > 0, numbers[frame.number] == nil else {
      throw WireError(
        .malformedFrame, "MATCHED gives a topic the number \(frame.number), which it can't have")
    }
    guard let index = names[frame.topic] else {
      let index = free.popLast() ?? places.count
      if index == places.count { places.append(nil) }
      names[frame.topic] = index
      return .change(begin(frame, at: index))
    }
    guard let place = places[index] else { return .known }
    if place.number != 0 {
      numbers[place.number] = nil
      // The topic has a new epoch, unless another node of the cluster continues with it.
      guard place.epoch == frame.place.epoch || frame.place.continues else {
        return .change(begin(frame, at: index))
      }
      if selected == index { selected = nil }
    }
    guard place.epoch == frame.place.epoch || frame.place.continues else {
      let change = begin(frame, at: index)
      return place.isCompleted ? .change(change) : .restarted(nextOffset: frame.place.nextOffset)
    }
    let isRewound = frame.place.continues && frame.place.nextOffset < place.next
    guard frame.place.nextOffset >= place.next || isRewound else {
      throw WireError(
        .malformedFrame,
        "MATCHED begins at \(frame.place.nextOffset) in \(frame.topic) where offset \(place.next) was to be next"
      )
    }
    // If it is more, LAG follows, which reports the gap to the subscriber.
    places[index]?.number = frame.number
    places[index]?.gaps = frame.place.gaps
    places[index]?.epoch = frame.place.epoch
    numbers[frame.number] = index
    guard isRewound else { return .known }
    places[index]?.next = frame.place.nextOffset
    return .rewound(nextOffset: frame.place.nextOffset)
  }

  private mutating func begin(_ frame: Matched, at index: Int) -> TopicChange {
    places[index] = Place(
      name: frame.topic, epoch: frame.place.epoch, next: frame.place.nextOffset, gaps: frame.place.gaps,
      number: frame.number)
    numbers[frame.number] = index
    return .matched(nextOffset: frame.place.nextOffset)
  }

  /// Returns the name of the topic that no longer matches.
  mutating func unmatched(_ number: UInt32) throws(WireError) -> String {
    guard let index = numbers[number], let place = places[index] else { throw unknown(number, .unmatched) }
    if selected == index { selected = nil }
    forget(index, place)
    return place.name
  }

  private mutating func forget(_ index: Int, _ place: Place) {
    numbers[place.number] = nil
    names[place.name] = nil
    places[index] = nil
    free.append(index)
  }

  // MARK: The selected topic

  /// Returns the names of topics that were deleted while there was no connection.
  mutating func select(_ number: UInt32) throws(WireError) -> [String] {
    guard number == 0 else {
      guard let index = numbers[number] else { throw unknown(number, .selectTopic) }
      selected = index
      return []
    }
    selected = nil
    guard !isComplete else { return [] }
    isComplete = true
    // Topics named later, also on the next stream, were created later and are received from their first record on.
    start = .offset(0)
    var gone: [String] = []
    for index in places.indices {
      guard let place = places[index], place.number == 0 else { continue }
      forget(index, place)
      gone.append(place.name)
    }
    return gone
  }

  /// As ``SubscriptionPosition/deliver(_:lastMark:)``, for the selected topic.
  mutating func deliver(
    _ header: DeliverHeader, lastMark time: Int64?
  ) throws(WireError) -> (topic: String, time: Int64) {
    guard let selected, let place = places[selected] else { throw unknown(0, .deliver) }
    guard header.firstOffset == place.next || (place.gaps && header.firstOffset > place.next) else {
      throw WireError(
        .malformedBatch, "offset \(header.firstOffset) of \(place.name) came where \(place.next) was next")
    }
    places[selected]?.next = header.firstOffset &+ UInt64(header.count)
    if let time { places[selected]?.time = time }
    return (place.name, place.time)
  }

  mutating func live(_ frame: Live) -> TopicMark? {
    guard let selected, let place = places[selected] else {
      defer { isLive = true }
      return isLive ? nil : .live(nextOffset: frame.nextOffset)
    }
    places[selected]?.isLive = true
    // Behind the records that were replaced by newer ones.
    places[selected]?.next = max(place.next, frame.nextOffset)
    return place.isLive ? nil : .topic(place.name, .live(nextOffset: frame.nextOffset))
  }

  mutating func lagged(_ frame: Lag) throws(WireError) -> TopicMark {
    guard let selected, let place = places[selected] else { throw unknown(0, .lag) }
    guard frame.nextOffset >= place.next else {
      throw WireError(
        .malformedFrame,
        "LAG goes back to offset \(frame.nextOffset) in \(place.name), where \(place.next) was next")
    }
    places[selected]?.next = frame.nextOffset
    return .topic(place.name, .lagged(missed: frame.missed, nextOffset: frame.nextOffset))
  }

  /// Handles the end of the selected topic. Returns its name, unless the subscriber got this end on an earlier stream.
  mutating func completed() throws(WireError) -> String? {
    guard let selected, let place = places[selected] else { throw unknown(0, .complete) }
    places[selected]?.isCompleted = true
    return place.isCompleted ? nil : place.name
  }

  private func unknown(_ number: UInt32, _ type: FrameType) -> WireError {
    WireError(
      .malformedFrame,
      number == 0
        ? "\(type) came for pattern \(plan.topic) without a \(FrameType.selectTopic)"
        : "\(type) names topic \(number) of pattern \(plan.topic), which isn't known")
  }
}
