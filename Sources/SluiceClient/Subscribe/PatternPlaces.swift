import SluiceWire

/// Where a subscription to a pattern is in each of its topics, on the present stream and when it needs another.
///
/// A value: what the broker says of the topics comes in, checked here, and what the subscriber is to be told comes out.
struct PatternPlaces {
  /// What is known of a topic.
  private struct Place {
    var name: String
    var epoch: UInt64
    /// The first record that wasn't received.
    var next: UInt64
    var gaps: Bool
    /// Of the topic's last time mark.
    var time: Int64 = 0
    var isLive = false
    var isCompleted = false
    /// What the topic is called on the present stream; 0 if that isn't known yet.
    var number: UInt32
  }

  /// What a topic's MATCHED means.
  enum Match: Equatable {
    /// The subscription goes on where it was.
    case known
    case news(TopicNews)
    /// The topic was started anew while there was no connection.
    case restarted(nextOffset: UInt64)
    /// The broker has lost what came from there on.
    case rewound(nextOffset: UInt64)
  }

  private let pattern: String
  private let lag: Subscribe.LagPolicy?
  private let filter: RecordFilter
  private var start: Subscribe.Start

  /// Places that are free are nil.
  private var places: [Place?] = []
  private var free: [Int] = []
  private var names: [String: Int] = [:]
  private var numbers: [UInt32: Int] = [:]
  /// The place that the stream's frames are about; nil for the subscription as a whole.
  private var subject: Int?
  /// The broker has named all topics that there were when the stream began.
  private var isComplete = false
  private var isLive = false

  init(_ plan: SubscriptionPlan) {
    pattern = plan.topic
    lag = plan.lag.map { $0 == .skip ? .skip : .fail }
    filter = plan.filter
    start = Subscribe.Start(plan.start)
  }

  var count: Int { names.count }

  // MARK: A stream begins

  /// The frames that open the next stream, with positions in frames of about `size` bytes at the most.
  mutating func open(granted: UInt64, frameSize size: Int) -> (SubscribePattern, [Positions]) {
    subject = nil
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
      pattern: pattern, start: start, lag: lag, grantedThrough: granted, filter: filter,
      positions: batches[0], more: batches.count > 1)
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
      return .news(begin(frame, at: index))
    }
    guard let place = places[index] else { return .known }
    if place.number != 0 {
      // The topic is in its next life.
      numbers[place.number] = nil
      return .news(begin(frame, at: index))
    }
    guard place.epoch == frame.place.epoch || frame.place.continues else {
      let news = begin(frame, at: index)
      return place.isCompleted ? .news(news) : .restarted(nextOffset: frame.place.nextOffset)
    }
    let isRewound = frame.place.continues && frame.place.nextOffset < place.next
    guard frame.place.nextOffset >= place.next || isRewound else {
      throw WireError(
        .malformedFrame,
        "MATCHED begins at \(frame.place.nextOffset) in \(frame.topic) where offset \(place.next) was to be next"
      )
    }
    // If it is more, a LAG says so, and until that has come nobody was told of the gap.
    places[index]?.number = frame.number
    places[index]?.gaps = frame.place.gaps
    places[index]?.epoch = frame.place.epoch
    numbers[frame.number] = index
    guard isRewound else { return .known }
    places[index]?.next = frame.place.nextOffset
    return .rewound(nextOffset: frame.place.nextOffset)
  }

  private mutating func begin(_ frame: Matched, at index: Int) -> TopicNews {
    places[index] = Place(
      name: frame.topic, epoch: frame.place.epoch, next: frame.place.nextOffset, gaps: frame.place.gaps,
      number: frame.number)
    numbers[frame.number] = index
    return .matched(nextOffset: frame.place.nextOffset)
  }

  /// Returns the name of the topic that is gone.
  mutating func unmatched(_ number: UInt32) throws(WireError) -> String {
    guard let index = numbers[number], let place = places[index] else { throw unknown(number, .unmatched) }
    if subject == index { subject = nil }
    forget(index, place)
    return place.name
  }

  private mutating func forget(_ index: Int, _ place: Place) {
    numbers[place.number] = nil
    names[place.name] = nil
    places[index] = nil
    free.append(index)
  }

  // MARK: What the stream is about

  /// Returns the names of topics that are found to be gone: they were deleted while there was no connection.
  mutating func turn(to number: UInt32) throws(WireError) -> [String] {
    guard number == 0 else {
      guard let index = numbers[number] else { throw unknown(number, .selectTopic) }
      subject = index
      return []
    }
    subject = nil
    guard !isComplete else { return [] }
    isComplete = true
    // What is named from now on, also on the next stream, was made later and is wanted from its first record on.
    start = .offset(0)
    var gone: [String] = []
    for index in places.indices {
      guard let place = places[index], place.number == 0 else { continue }
      forget(index, place)
      gone.append(place.name)
    }
    return gone
  }

  /// Takes note of a batch of the topic that the stream is about.
  ///
  /// - Parameter time: of the batch's last mark, if it has one.
  /// - Returns: the topic's name, and the time of the records before the first mark.
  mutating func deliver(_ header: DeliverHeader, lastMark time: Int64?) throws(WireError) -> (String, Int64) {
    guard let subject, let place = places[subject] else { throw unknown(0, .deliver) }
    guard header.firstOffset == place.next || (place.gaps && header.firstOffset > place.next) else {
      throw WireError(
        .malformedBatch, "offset \(header.firstOffset) of \(place.name) came where \(place.next) was next")
    }
    places[subject]?.next = header.firstOffset &+ UInt64(header.count)
    if let time { places[subject]?.time = time }
    return (place.name, place.time)
  }

  /// Returns what is to be told, if it is news.
  mutating func live(_ frame: Live) -> TopicMark? {
    guard let subject, let place = places[subject] else {
      defer { isLive = true }
      return isLive ? nil : .live(nextOffset: frame.nextOffset)
    }
    places[subject]?.isLive = true
    // Beyond what was replaced meanwhile.
    places[subject]?.next = max(place.next, frame.nextOffset)
    return place.isLive ? nil : .topic(place.name, .live(nextOffset: frame.nextOffset))
  }

  mutating func lagged(_ frame: Lag) throws(WireError) -> TopicMark {
    guard let subject, let place = places[subject] else { throw unknown(0, .lag) }
    guard frame.nextOffset >= place.next else {
      throw WireError(
        .malformedFrame,
        "LAG goes back to offset \(frame.nextOffset) in \(place.name), where \(place.next) was next")
    }
    places[subject]?.next = frame.nextOffset
    return .topic(place.name, .lagged(missed: frame.missed, nextOffset: frame.nextOffset))
  }

  /// The topic that the stream is about has ended. Returns its name, unless that was told on an earlier stream.
  mutating func completed() throws(WireError) -> String? {
    guard let subject, let place = places[subject] else { throw unknown(0, .complete) }
    places[subject]?.isCompleted = true
    return place.isCompleted ? nil : place.name
  }

  private func unknown(_ number: UInt32, _ type: FrameType) -> WireError {
    WireError(
      .malformedFrame,
      number == 0
        ? "\(type) came for pattern \(pattern) without a FROM"
        : "\(type) names topic \(number) of pattern \(pattern), which isn't there")
  }
}
