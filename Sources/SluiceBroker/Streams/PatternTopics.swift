import SluiceLog
import SluiceTopics
import SluiceWire

/// The topics that a subscription to a pattern has yet to join: those that were there when it came, which a search finds, and those made since.
struct PatternTopics {
  /// What there is while topics are searched for and joined, as long as that lasts.
  private final class Search {
    var walk: PatternWalk<Topic>
    /// Found, and to be joined next.
    var found: ArraySlice<Topic> = []
    /// Topics that the search finds and that were made meanwhile, too.
    var known: Set<ObjectIdentifier> = []
    /// Where to begin in those of which only the store could tell.
    var starts: [String: Subscribe.Start] = [:]
    var made: [(Topic, TopicEpoch)]

    init(_ walk: PatternWalk<Topic>, made: [(Topic, TopicEpoch)] = []) {
      self.walk = walk
      self.made = made
    }

    var isExhausted: Bool { found.isEmpty && walk.isDone }
  }

  private var search: Search?
  /// Where to go on in topics.
  private var positions: [String: TopicPosition] = [:]
  /// Positions that aren't in the table yet, from the first of `unentered` on.
  private var given: [TopicPosition]
  private var unentered = 0
  /// What the subscription says of all of them.
  private let start: Subscribe.Start
  let lag: Subscribe.LagPolicy?
  /// Bytes that the positions were charged for: those that came, until the subscription has begun, and then those that are kept.
  private(set) var positionBytes: Int
  /// Whether all topics were joined that were there at first. From then on new topics are joined at once.
  private(set) var hasBegun = false

  init(_ walk: PatternWalk<Topic>, _ frame: SubscribePattern) {
    search = Search(walk)
    given = frame.positions
    positions.reserveCapacity(given.count)
    positionBytes = KeptCost.bytes(of: frame.positions)
    start = frame.start
    lag = frame.lag
  }

  /// Whether positions aren't in the table yet. No topic is joined before they are.
  var hasUnentered: Bool { unentered < given.count }

  /// Enters positions in the table.
  ///
  /// - Returns: how many, at most `count`.
  mutating func enterPositions(atMost count: Int) -> Int {
    let end = min(unentered + count, given.count)
    for position in given[unentered..<end] { positions[position.topic] = position }
    let entered = end - unentered
    unentered = end
    if !hasUnentered { (given, unentered) = ([], 0) }
    return entered
  }

  /// Whether all topics were joined that the search finds.
  var isExhausted: Bool { search?.isExhausted ?? true }

  /// Whether the search can find more, and fewer than `count` wait to be joined.
  func needsMore(than count: Int) -> Bool {
    search.map { $0.found.count < count && !$0.walk.isDone } ?? false
  }

  /// Goes on with the search, up to the next topic or the last name.
  ///
  /// - Parameter looks: the most names to look at, which is lowered by those.
  func find(looks: inout Int, where isNew: (Topic) -> Bool) {
    guard let search, let topic = search.walk.next(looks: &looks),
      !search.known.contains(ObjectIdentifier(topic)), isNew(topic)
    else { return }
    search.found.append(topic)
  }

  /// Takes out the next topic that was found, and where to go on in it, if it was known before.
  mutating func next() -> (topic: Topic, position: TopicPosition?)? {
    search?.found.popFirst().map { ($0, positions.removeValue(forKey: $0.name)) }
  }

  /// All topics are joined that were there. Returns those made meanwhile, which are to be joined now.
  ///
  /// - Parameter isAbsent: whether a topic of which the client has sent a position isn't there. The positions of the others are kept, for those that come
  ///   from another node. Nil when none is kept.
  mutating func begin(where isAbsent: ((String) -> Bool)?) -> [(Topic, TopicEpoch)] {
    positions = isAbsent.map { isAbsent in positions.filter { !isAbsent($0.key) } } ?? [:]
    positionBytes = KeptCost.bytes(of: positions.values)
    hasBegun = true
    return search.take()?.made ?? []
  }

  /// A topic moves to another node, and may come back.
  mutating func keep(_ position: TopicPosition) { positions[position.topic] = position }

  /// Where to go on in a topic that has come from another node.
  mutating func takeKept(_ name: String) -> TopicPosition? { positions.removeValue(forKey: name) }

  /// Of the topics that were found, those without a place to begin, since only the store can tell it.
  func unknownStarts() -> [(topic: Topic, time: Int64)] {
    guard case .time(let time) = start, let search else { return [] }
    return search.found.compactMap { topic in
      guard positions[topic.name] == nil, search.starts[topic.name] == nil,
        topic.epoch.needsStore(for: .time(time))
      else { return nil }
      return (topic, time)
    }
  }

  /// Sets where to begin in a topic.
  func begin(_ topic: Topic, at offset: UInt64) {
    search?.starts[topic.name] = .offset(offset)
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
    var (start, number) = (search?.starts[topic.name] ?? start, 0 as UInt64)
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
  func add(_ topic: Topic, _ epoch: TopicEpoch) {
    search?.made.append((topic, epoch))
  }

  func remove(where isLost: (String) -> Bool) {
    search?.found.removeAll { isLost($0.name) }
    search?.made.removeAll { isLost($0.0.name) }
  }

  mutating func removeAll() { search = nil }

  /// Begins another search.
  mutating func search(_ topics: PatternWalk<Topic>) {
    let next = Search(topics, made: search?.made ?? [])
    next.known = Set(next.made.map { ObjectIdentifier($0.0) })
    search = next
  }
}
