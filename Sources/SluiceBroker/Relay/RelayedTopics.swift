import SluiceTopics
import SluiceWire

/// The topics of a subscription to a pattern that other nodes serve: the subscriber's position in each, and the stream that may continue it.
///
/// A topic is read from one node's stream at a time, its source. When the topic moves, the next node's stream begins at the subscriber's position if that
/// was sent when the stream was opened. Otherwise the stream is opened again with the position. So no record is lost or sent twice.
///
/// A value without I/O: frames are passed in, and the functions return what to do.
struct RelayedTopics {
  /// How to handle MATCHED.
  enum Match: Hashable {
    /// Send this frame to the subscriber.
    case announce(Matched)
    /// The topic no longer exists. Send UNMATCHED with this number if the subscriber knows one.
    case gone(number: UInt32?)
    /// Ignore it, since another stream is the topic's source.
    case ignore
    /// Open the stream again, since it doesn't begin at the subscriber's position.
    case reopen
  }

  private struct Topic {
    var name: String
    var epoch: UInt64
    /// The offset after the last received record.
    var next: UInt64
    var gaps = false
    /// The topic's number for the subscriber; 0 for none.
    var number: UInt32 = 0
    /// The stream that reads it, and its number there; 0 for none.
    var source: UInt64 = 0
    var sourceNumber: UInt32 = 0
    /// The stream that was opened with the subscriber's present position; 0 for none.
    var told: UInt64 = 0
    /// The stream of the serving node at the last check, if another stream was the source then; 0 for none.
    var missed: UInt64 = 0

    /// Returns whether a stream that begins there continues at the subscriber's position, or reads a new epoch of the topic.
    func accepts(_ place: Subscribed, from stream: UInt64) -> Bool {
      if told == stream { return true }
      let goesOn = (place.epoch == epoch || place.continues) && place.nextOffset == next
      let isAnother = place.epoch != epoch && !place.continues
      return goesOn || source == stream && isAnother
    }
  }

  /// The numbers of one stream.
  private struct Source {
    var numbers: [UInt32: Int] = [:]
    var selected: Int?
  }

  /// Nil at free indices.
  private var topics: [Topic?] = []
  private var free: [Int] = []
  private var names: [String: Int] = [:]
  private var sources: [UInt64: Source] = [:]

  var count: Int { names.count }

  // MARK: Streams

  /// A position in the list of topics. The list is processed in parts, so that the time of a turn doesn't depend on its length.
  struct Walk {
    fileprivate var index = 0
  }

  /// Returns whether a walk has passed all topics.
  func isDone(_ walk: Walk) -> Bool { walk.index >= topics.count }

  /// Returns the next indices, and advances the walk.
  private func indices(_ walk: inout Walk, atMost count: Int) -> Range<Int> {
    let start = min(walk.index, topics.count)
    walk.index = min(start + count, topics.count)
    return start..<walk.index
  }

  /// Reserves capacity for that many topics.
  mutating func reserve(_ count: Int) {
    topics.reserveCapacity(count)
    names.reserveCapacity(count)
  }

  /// Called when a stream begins. It is opened with ``positions(_:atMost:of:where:)``.
  mutating func begin(_ source: UInt64) { sources[source] = Source() }

  /// Returns the next positions with which a stream is opened.
  ///
  /// - Parameters:
  ///   - count: the most topics to check.
  ///   - isThere: returns whether the stream's node serves the topic of that name.
  mutating func positions(
    _ walk: inout Walk, atMost count: Int, of source: UInt64, where isThere: (String) -> Bool
  ) -> [TopicPosition] {
    var positions: [TopicPosition] = []
    for index in indices(&walk, atMost: count) {
      guard let topic = topics[index], isThere(topic.name) else { continue }
      topics[index]?.told = source
      positions.append(TopicPosition(topic: topic.name, epoch: topic.epoch, nextOffset: topic.next))
    }
    return positions
  }

  /// Called when a stream has ended. Its topics wait for another one.
  mutating func end(_ source: UInt64) {
    guard let ended = sources.removeValue(forKey: source) else { return }
    for index in ended.numbers.values where topics[index]?.source == source { topics[index]?.source = 0 }
  }

  /// Streams that don't read topics which their nodes serve.
  struct Neglect: Hashable {
    /// Streams that have to be opened again.
    var reopened: Set<UInt64> = []
    /// Whether to check again, since some topics are read by streams of other nodes, perhaps only until the serving node announces them.
    var looksAgain = false
  }

  /// Checks for topics that another stream should read.
  ///
  /// A node that has lost a topic doesn't report it: the next owner does, by announcing the topic. If the frames of the two arrive in the opposite order,
  /// the former owner's stream becomes the source, and no records arrive. The second check finds that.
  ///
  /// - Parameters:
  ///   - count: the most topics to check.
  ///   - neglect: collects the findings.
  ///   - serving: returns the stream of the node that serves the topic of that name; nil when there is none. Called once for each topic.
  mutating func look(
    _ walk: inout Walk, atMost count: Int, for neglect: inout Neglect, serving: (String) -> UInt64?
  ) {
    for index in indices(&walk, atMost: count) {
      guard let topic = topics[index], let source = serving(topic.name), topic.source != source,
        topic.told != source
      else { continue }
      if topic.source == 0 || topic.missed == source {
        neglect.reopened.insert(source)
      } else {
        topics[index]?.missed = source
        neglect.looksAgain = true
      }
    }
  }

  // MARK: Topics that move from and to this node

  /// Adds a topic, with the subscriber's position in it.
  ///
  /// - Parameter number: the topic's number for the subscriber; 0 for none.
  mutating func add(_ position: TopicPosition, number: UInt32) {
    if let index = names[position.topic] { forget(index) }
    _ = enter(Topic(name: position.topic, epoch: position.epoch, next: position.nextOffset, number: number))
  }

  /// Removes a topic that this node now serves. Returns the subscriber's position in it.
  mutating func take(_ name: String) -> TopicPosition? {
    guard let index = names[name], let topic = topics[index] else { return nil }
    forget(index)
    return TopicPosition(topic: topic.name, epoch: topic.epoch, nextOffset: topic.next)
  }

  /// Removes the topics that have no source and that the subscriber doesn't know.
  mutating func dropUnknown() {
    for index in topics.indices {
      if let topic = topics[index], topic.source == 0, topic.number == 0 { forget(index) }
    }
  }

  private mutating func enter(_ topic: Topic) -> Int {
    let index = free.popLast() ?? topics.count
    if index == topics.count { topics.append(nil) }
    topics[index] = topic
    names[topic.name] = index
    return index
  }

  private mutating func forget(_ index: Int) {
    guard let topic = topics[index] else { return }
    if topic.source != 0 { sources[topic.source]?.numbers[topic.sourceNumber] = nil }
    if topic.source != 0, sources[topic.source]?.selected == index { sources[topic.source]?.selected = nil }
    names[topic.name] = nil
    topics[index] = nil
    free.append(index)
  }

  // MARK: Frames

  /// - Parameter number: makes a number of the topic for the subscriber.
  mutating func matched(
    _ frame: Matched, from source: UInt64, number: () -> UInt32
  ) throws(WireError) -> Match {
    guard frame.number > 0, sources[source]?.numbers[frame.number] == nil else {
      throw WireError(
        .malformedFrame, "MATCHED gives a topic the number \(frame.number), which it can't have")
    }
    let known = names[frame.topic].flatMap { index in topics[index].map { (index, $0) } }
    if frame.place.epoch == 0 {
      guard let (index, topic) = known, topic.source == 0 || topic.source == source else { return .ignore }
      forget(index)
      return .gone(number: topic.number == 0 ? nil : topic.number)
    }
    if let (_, topic) = known, !topic.accepts(frame.place, from: source) { return .reopen }
    if let (index, _) = known { forget(index) }
    var topic = Topic(name: frame.topic, epoch: frame.place.epoch, next: frame.place.nextOffset)
    topic.gaps = frame.place.gaps
    topic.number = number()
    (topic.source, topic.sourceNumber) = (source, frame.number)
    let index = enter(topic)
    sources[source]?.numbers[frame.number] = index
    var place = frame.place
    place.isShareable = false
    return .announce(Matched(number: topic.number, topic: frame.topic, place: place))
  }

  /// Removes a topic. Returns its number for UNMATCHED to the subscriber; nil when another stream is the topic's source.
  mutating func unmatched(_ number: UInt32, from source: UInt64) -> UInt32? {
    guard let index = sources[source]?.numbers[number], let topic = topics[index] else { return nil }
    forget(index)
    return topic.number
  }

  /// Selects the topic of the following frames.
  mutating func select(_ number: UInt32, from source: UInt64) {
    let index = sources[source]?.numbers[number]
    sources[source]?.selected = index
  }

  /// Advances a topic by received records.
  ///
  /// - Returns: the number of the topic; nil when another stream is its source, so that the records have to be dropped.
  mutating func deliver(_ header: DeliverHeader, from source: UInt64) throws(WireError) -> UInt32? {
    guard let (index, topic) = selected(source) else { return nil }
    guard header.firstOffset == topic.next || (topic.gaps && header.firstOffset > topic.next) else {
      throw WireError(
        .malformedBatch, "offset \(header.firstOffset) of \(topic.name) came where \(topic.next) was next")
    }
    return move(index, to: header.firstOffset &+ UInt64(header.count))
  }

  mutating func live(_ frame: Live, from source: UInt64) -> UInt32? {
    guard let (index, topic) = selected(source) else { return nil }
    return move(index, to: max(topic.next, frame.nextOffset))
  }

  mutating func lagged(_ frame: Lag, from source: UInt64) throws(WireError) -> UInt32? {
    guard let (index, topic) = selected(source) else { return nil }
    guard frame.nextOffset >= topic.next else {
      throw WireError(
        .malformedFrame,
        "LAG goes back to offset \(frame.nextOffset) in \(topic.name), where \(topic.next) was next")
    }
    return move(index, to: frame.nextOffset)
  }

  /// Called for the terminal event of the selected topic. Returns its number, like ``deliver(_:from:)``.
  func completed(from source: UInt64) -> UInt32? { selected(source)?.1.number }

  /// Returns whether the frames of a stream are about a topic.
  func isSelected(_ source: UInt64) -> Bool { sources[source]?.selected != nil }

  private func selected(_ source: UInt64) -> (Int, Topic)? {
    guard let index = sources[source]?.selected, let topic = topics[index], topic.source == source else {
      return nil
    }
    return (index, topic)
  }

  private mutating func move(_ index: Int, to next: UInt64) -> UInt32? {
    if topics[index]?.next != next { topics[index]?.told = 0 }
    topics[index]?.next = next
    return topics[index]?.number
  }
}
