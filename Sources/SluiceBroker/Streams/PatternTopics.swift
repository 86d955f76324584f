import SluiceLog
import SluiceTopics
import SluiceWire

/// The topics that a subscription to a pattern has yet to join: existing ones, which a search finds, and those created meanwhile.
struct PatternTopics {
  /// The state of the search for topics. Released when all of them are joined.
  private final class Search {
    var walk: PatternWalk<Topic>
    /// The topics that were found and that are to be joined next.
    var found: ArraySlice<Topic> = []
    /// Topics in `made`, which the search skips.
    var known: Set<ObjectIdentifier> = []
    /// The starts that the store has found, by topic name.
    var starts: [String: Subscribe.Start] = [:]
    var made: [(Topic, TopicEpoch)]

    init(_ walk: PatternWalk<Topic>, made: [(Topic, TopicEpoch)] = []) {
      self.walk = walk
      self.made = made
    }

    var isExhausted: Bool { found.isEmpty && walk.isDone }
  }

  private var search: Search?
  /// The positions at which topics continue, by topic name.
  private var positions: [String: TopicPosition] = [:]
  /// Positions that aren't in the table yet, from index `unentered` on.
  private var given: [TopicPosition]
  private var unentered = 0
  /// The start of the subscription in all topics.
  private let start: Subscribe.Start
  let lag: Subscribe.LagPolicy?
  /// The charged bytes of positions: those received until the subscription has begun, then those that are kept.
  private(set) var positionBytes: Int
  /// Whether all topics that existed at the start were joined. After that, new topics are joined at once.
  private(set) var hasBegun = false

  init(_ walk: PatternWalk<Topic>, _ frame: SubscribePattern) {
    search = Search(walk)
    given = frame.positions
    positions.reserveCapacity(given.count)
    positionBytes = KeptCost.bytes(of: frame.positions)
    start = frame.start
    lag = frame.lag
  }

  /// Whether some positions aren't in the table yet. Topics are joined only after that.
  var hasUnentered: Bool { unentered < given.count }

  /// Enters positions in the table.
  ///
  /// - Returns: the number entered, at most `count`.
  mutating func enterPositions(atMost count: Int) -> Int {
    let end = min(unentered + count, given.count)
    for position in given[unentered..<end] { positions[position.topic] = position }
    let entered = end - unentered
    unentered = end
    if !hasUnentered { (given, unentered) = ([], 0) }
    return entered
  }

  /// Whether all topics that the search finds were joined.
  var isExhausted: Bool { search?.isExhausted ?? true }

  /// Whether the search can find more, and fewer than `count` wait to be joined.
  func needsMore(than count: Int) -> Bool {
    search.map { $0.found.count < count && !$0.walk.isDone } ?? false
  }

  /// Continues the search, up to the next topic or the last name.
  ///
  /// - Parameter looks: the most names to read; reduced by the number of names read.
  func find(looks: inout Int, where isNew: (Topic) -> Bool) {
    guard let search, let topic = search.walk.next(looks: &looks),
      !search.known.contains(ObjectIdentifier(topic)), isNew(topic)
    else { return }
    search.found.append(topic)
  }

  /// Removes and returns the next found topic, with the position at which it continues if the subscriber has sent one.
  mutating func next() -> (topic: Topic, position: TopicPosition?)? {
    search?.found.popFirst().map { ($0, positions.removeValue(forKey: $0.name)) }
  }

  /// Ends the search when all existing topics were joined. Returns the topics created meanwhile, which the caller must join.
  ///
  /// - Parameter isAbsent: returns whether a topic of which the client has sent a position no longer exists. The other positions are kept for topics that
  ///   move to this node. Nil to keep none.
  mutating func begin(where isAbsent: ((String) -> Bool)?) -> [(Topic, TopicEpoch)] {
    positions = isAbsent.map { isAbsent in positions.filter { !isAbsent($0.key) } } ?? [:]
    positionBytes = KeptCost.bytes(of: positions.values)
    hasBegun = true
    return search.take()?.made ?? []
  }

  /// Keeps the position in a topic that moves to another node, for the case that it returns.
  mutating func keep(_ position: TopicPosition) { positions[position.topic] = position }

  /// Removes and returns the position in a topic that has moved to this node; nil if there is none.
  mutating func takeKept(_ name: String) -> TopicPosition? { positions.removeValue(forKey: name) }

  /// Returns the found topics whose starts only the store can find.
  func unknownStarts() -> [(topic: Topic, time: Int64)] {
    guard case .time(let time) = start, let search else { return [] }
    return search.found.compactMap { topic in
      guard positions[topic.name] == nil, search.starts[topic.name] == nil,
        topic.epoch.needsStore(for: .time(time))
      else { return nil }
      return (topic, time)
    }
  }

  /// Sets the start in a topic that the store has found.
  func begin(_ topic: Topic, at offset: UInt64) {
    search?.starts[topic.name] = .offset(offset)
  }

  /// Returns the frame with which a client would subscribe to this topic alone.
  ///
  /// - Parameters:
  ///   - epoch: the topic's epoch.
  ///   - position: the position at which the subscription continues; nil if it didn't read the topic before.
  ///   - wasThere: whether the topic existed at the start of the subscription.
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

  /// Adds a topic that was created before the subscription has begun.
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
