import SluiceLog
import SluiceTopics
import SluiceWire

/// The topics that a subscription to a pattern has yet to join: those that were there when it came, which a search finds, and those made since.
struct PatternTopics {
  private var walk: PatternWalk<Topic>
  /// Found, and to be joined next.
  private var found: ArraySlice<Topic> = []
  /// Topics that the search finds and that were made meanwhile, too.
  private var known: Set<ObjectIdentifier> = []
  /// Where to go on in them.
  private var positions: [String: TopicPosition]
  /// Where to begin in those of which only the store could tell.
  private var starts: [String: Subscribe.Start] = [:]
  private var made: [(Topic, TopicEpoch)] = []
  /// Whether all topics were joined that were there at first. From then on new topics are joined at once.
  private(set) var hasBegun = false
  /// What the subscription says of all of them.
  private let start: Subscribe.Start
  private let lag: Subscribe.LagPolicy?

  init(_ walk: PatternWalk<Topic>, _ frame: SubscribePattern) {
    self.walk = walk
    positions = Dictionary(frame.positions.map { ($0.topic, $0) }) { $1 }
    start = frame.start
    lag = frame.lag
  }

  /// Whether all topics were joined that the search finds.
  var isExhausted: Bool { found.isEmpty && walk.isDone }

  /// Whether the search can find more, and fewer than `count` wait to be joined.
  func needsMore(than count: Int) -> Bool { found.count < count && !walk.isDone }

  /// Goes on with the search, up to the next topic or the last name.
  ///
  /// - Parameter looks: the most names to look at, which is lowered by those.
  mutating func find(looks: inout Int, where isNew: (Topic) -> Bool) {
    guard let topic = walk.next(looks: &looks), !known.contains(ObjectIdentifier(topic)), isNew(topic) else {
      return
    }
    found.append(topic)
  }

  /// Takes out the next topic that was found, and where to go on in it, if it was known before.
  mutating func next() -> (topic: Topic, position: TopicPosition?)? {
    found.popFirst().map { ($0, positions.removeValue(forKey: $0.name)) }
  }

  /// All topics are joined that were there. Returns those made meanwhile, which are to be joined now.
  ///
  /// - Parameter isAbsent: whether a topic of which the client has sent a position isn't there. The positions of the others are kept, for those that come
  ///   from another node. Nil when none is kept.
  mutating func begin(where isAbsent: ((String) -> Bool)?) -> [(Topic, TopicEpoch)] {
    defer { made = [] }
    found = []
    known = []
    positions = isAbsent.map { isAbsent in positions.filter { !isAbsent($0.key) } } ?? [:]
    starts = [:]
    hasBegun = true
    return made
  }

  /// A topic moves to another node, and may come back.
  mutating func keep(_ position: TopicPosition) { positions[position.topic] = position }

  /// Where to go on in a topic that has come from another node.
  mutating func takeKept(_ name: String) -> TopicPosition? { positions.removeValue(forKey: name) }

  /// Of the topics that were found, those without a place to begin, since only the store can tell it.
  func unknownStarts() -> [(topic: Topic, time: Int64)] {
    guard case .time(let time) = start else { return [] }
    return found.compactMap { topic in
      guard positions[topic.name] == nil, starts[topic.name] == nil,
        topic.epoch.needsStore(for: .time(time))
      else { return nil }
      return (topic, time)
    }
  }

  /// Sets where to begin in a topic.
  mutating func begin(_ topic: Topic, at offset: UInt64) {
    starts[topic.name] = .offset(offset)
  }

  /// The frame that a subscription to this topic alone would send.
  ///
  /// - Parameters:
  ///   - epoch: of the topic.
  ///   - position: where the subscription goes on in the topic; nil if it wasn't there before.
  ///   - wasThere: whether the topic was there when the subscription came.
  func frame(
    toSubscribeTo topic: Topic, _ epoch: TopicEpoch, _ position: TopicPosition?, wasThere: Bool
  ) -> Subscribe {
    var (start, number) = (starts[topic.name] ?? start, 0 as UInt64)
    if let position {
      let offset =
        position.epoch == epoch.number
        ? position.nextOffset : epoch.continuing(position.epoch, at: position.nextOffset)
      (start, number) = offset.map { (.offset($0), epoch.number) } ?? (.earliest, 0)
    } else if !wasThere {
      (start, number) = (.offset(0), epoch.number)
    }
    return Subscribe(topic: topic.name, start: start, lag: lag, epoch: number, grantedThrough: 0)
  }

  /// A topic was made before the subscription has begun.
  mutating func add(_ topic: Topic, _ epoch: TopicEpoch) {
    made.append((topic, epoch))
  }

  mutating func remove(where isLost: (String) -> Bool) {
    found.removeAll { isLost($0.name) }
    made.removeAll { isLost($0.0.name) }
  }

  mutating func removeAll() {
    (found, made) = ([], [])
  }

  /// Begins another search.
  mutating func search(_ topics: PatternWalk<Topic>) {
    known = Set(made.map { ObjectIdentifier($0.0) })
    found = []
    walk = topics
  }
}
