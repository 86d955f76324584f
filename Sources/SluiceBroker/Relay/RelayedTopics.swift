import SluiceTopics
import SluiceWire

/// The topics of a subscription to a pattern that other nodes serve: where the subscriber is in each, and which node may go on.
///
/// A topic is read from one node's stream at a time. When it moves, the next node begins either where the subscriber is, because it was told so when its stream
/// was opened, or elsewhere: then its stream is opened again with the subscriber's position. So no record is missed, and none is passed on twice.
///
/// A value without I/O: frames go in, and what is to be done comes out.
struct RelayedTopics {
  /// What to do about MATCHED.
  enum Match: Hashable {
    /// The subscriber is told.
    case announce(Matched)
    /// The topic isn't there any more. The subscriber is told if it knows the topic by a number.
    case gone(number: UInt32?)
    /// It is about a topic that another stream goes on with.
    case ignore
    /// The stream is opened again, since it goes on elsewhere than the subscriber.
    case reopen
  }

  private struct Topic {
    var name: String
    var epoch: UInt64
    /// The first record that hasn't come.
    var next: UInt64
    var gaps = false
    /// By which the subscriber knows it; 0 for none.
    var number: UInt32 = 0
    /// The stream that goes on with it, and its number there; 0 for none.
    var source: UInt64 = 0
    var sourceNumber: UInt32 = 0
    /// The stream that was opened with the subscriber's position in it, as it is now; 0 for none.
    var told: UInt64 = 0
    /// The stream of the node that serves it, when the last look found that another one goes on with it; 0 for none.
    var missed: UInt64 = 0

    /// Whether a stream that has begun there goes on where the subscriber is, or with another life of the topic.
    func accepts(_ place: Subscribed, from stream: UInt64) -> Bool {
      if told == stream { return true }
      let goesOn = (place.epoch == epoch || place.continues) && place.nextOffset == next
      let isAnother = place.epoch != epoch && !place.continues
      return goesOn || source == stream && isAnother
    }
  }

  /// What is known of a stream.
  private struct Source {
    var numbers: [UInt32: Int] = [:]
    var selected: Int?
  }

  /// Free places are nil.
  private var topics: [Topic?] = []
  private var free: [Int] = []
  private var names: [String: Int] = [:]
  private var sources: [UInt64: Source] = [:]

  var count: Int { names.count }

  // MARK: Streams

  /// A place in the topics, which are looked at a part at a time: their number doesn't decide how long a turn takes.
  struct Walk {
    fileprivate var index = 0
  }

  /// Whether a walk has passed all topics.
  func isDone(_ walk: Walk) -> Bool { walk.index >= topics.count }

  /// Takes the next places, and moves the walk behind them.
  private func indices(_ walk: inout Walk, atMost count: Int) -> Range<Int> {
    let start = min(walk.index, topics.count)
    walk.index = min(start + count, topics.count)
    return start..<walk.index
  }

  /// Makes room for so many topics.
  mutating func reserve(_ count: Int) {
    topics.reserveCapacity(count)
    names.reserveCapacity(count)
  }

  /// A stream begins. It is opened with ``positions(_:atMost:of:where:)``.
  mutating func begin(_ source: UInt64) { sources[source] = Source() }

  /// The next positions with which a stream is opened.
  ///
  /// - Parameters:
  ///   - count: the most topics to look at.
  ///   - isThere: whether the stream's node serves the topic of that name.
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

  /// A stream is over. Its topics wait for another.
  mutating func end(_ source: UInt64) {
    guard let ended = sources.removeValue(forKey: source) else { return }
    for index in ended.numbers.values where topics[index]?.source == source { topics[index]?.source = 0 }
  }

  /// What there is to do about streams that don't go on with topics that their nodes serve.
  struct Neglect: Hashable {
    /// Streams that don't do so by themselves: they are opened again.
    var reopened: Set<UInt64> = []
    /// Other nodes' streams go on with some topics, perhaps only until the right one tells of them.
    var looksAgain = false
  }

  /// Looks for topics with which another stream should go on.
  ///
  /// A node that has lost a topic doesn't say so: the next one does, by going on with it. When what the two have sent arrives in the other order, the former
  /// node's stream has the topic, and nothing comes of it any more. The second look finds that.
  ///
  /// - Parameters:
  ///   - count: the most topics to look at.
  ///   - neglect: takes what is found.
  ///   - serving: the stream of the node that serves the topic of that name; nil when there is none. Called once for each topic.
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

  // MARK: Topics of this node

  /// A topic comes, with the subscriber's position in it.
  ///
  /// - Parameter number: by which the subscriber knows it; 0 for none.
  mutating func add(_ position: TopicPosition, number: UInt32) {
    if let index = names[position.topic] { forget(index) }
    _ = enter(Topic(name: position.topic, epoch: position.epoch, next: position.nextOffset, number: number))
  }

  /// A topic is this node's. Returns where the subscriber is in it.
  mutating func take(_ name: String) -> TopicPosition? {
    guard let index = names[name], let topic = topics[index] else { return nil }
    forget(index)
    return TopicPosition(topic: topic.name, epoch: topic.epoch, nextOffset: topic.next)
  }

  /// Forgets the topics that no stream goes on with, and that the subscriber doesn't know.
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

  /// - Parameter number: makes the number by which the subscriber will know the topic.
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

  /// Returns the number by which the subscriber knows the topic, of which it is told; nil when another stream goes on with the topic.
  mutating func unmatched(_ number: UInt32, from source: UInt64) -> UInt32? {
    guard let index = sources[source]?.numbers[number], let topic = topics[index] else { return nil }
    forget(index)
    return topic.number
  }

  /// The frames that follow are about a topic.
  mutating func select(_ number: UInt32, from source: UInt64) {
    let index = sources[source]?.numbers[number]
    sources[source]?.selected = index
  }

  /// Records have come.
  ///
  /// - Returns: the number of the topic; nil when another stream goes on with it, and the records are to be dropped.
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

  /// The selected topic has ended. Returns its number, as ``deliver(_:from:)``.
  func completed(from source: UInt64) -> UInt32? { selected(source)?.1.number }

  /// Whether the frames of a stream are about a topic.
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
