import SluiceIO
import SluiceLog
import SluiceWire

/// A consumer of all topics that a pattern selects, those made later included, with one demand. Belongs to its connection's loop.
///
/// ```
///  topics ── loopState ──► member ─┐
///  topics ── loopState ──► member ─┼─ whose turn it is ──►  MATCHED, FROM, DELIVER … on one stream
///  topics ── loopState ──► member ─┘        ▲
///                                 one credit
/// ```
final class PatternSubscription: Consumer {
  let pattern: TopicPattern
  /// Its number among those that the registry tells of new topics.
  private let watch: UInt64
  private let start: Subscribe.Start
  private let lag: Subscribe.LagPolicy?

  /// By name. What a topic is called here holds for one epoch of it.
  private(set) var members: [String: PatternMember] = [:]
  private var lastNumber: UInt32 = 0
  /// All members in the order in which they have joined, and some that have left.
  private var joined: [PatternMember] = []
  /// Members of topics whose producers are paced.
  private var paced: [PatternMember] = []
  /// Of those, how many know of the last grant, while some don't.
  private var told = 0
  private var isTelling = false
  /// Nil when every record is wanted.
  private let matcher: RecordMatcher?
  private var turns = FairTurns<PatternMember>()
  /// Members that have left and still stand among those who want turns.
  private var gone = 0
  private var isProducing = false

  /// A search for the topics that were there when it came, and those that were found and are to be joined next; it begins when it has joined
  /// them all.
  private var walk: PatternWalk
  private var found: ArraySlice<Topic> = []
  /// Topics that the search finds and that were told of apart from it.
  private var known: Set<ObjectIdentifier> = []
  /// Where to go on in them.
  private var positions: [String: TopicPosition]
  /// Where to begin in those of which only the store could tell.
  private var starts: [String: Subscribe.Start] = [:]
  /// Topics made meanwhile.
  private var made: [(Topic, TopicEpoch)] = []
  private(set) var hasBegun = false

  /// The number that the stream's frames are about, as its receiver knows it.
  private var subject: UInt32 = 0
  /// Numbers that mean nothing any more, which its receiver doesn't know yet.
  private var departed = ReadyQueue<UInt32>()
  /// Members from the beginning that were not announced yet, or aren't live. Nil when that was told.
  private var unannounced: Int? = 0
  private var awaited: Int? = 0

  init(
    _ frame: SubscribePattern, _ pattern: TopicPattern, stream: UInt32, connection: Connection,
    watch: UInt64, walk: PatternWalk
  ) {
    self.pattern = pattern
    self.watch = watch
    self.walk = walk
    start = frame.start
    lag = frame.lag
    matcher = RecordMatcher(unlessEmpty: frame.filter)
    positions = Dictionary(frame.positions.map { ($0.topic, $0) }) { $1 }
    super.init(stream: stream, connection: connection, granted: frame.grantedThrough)
  }

  // MARK: Demand

  override func raise(to granted: UInt64) -> Bool {
    guard super.raise(to: granted) else { return false }
    guard !paced.isEmpty else { return true }
    // What is granted may go to any of them, so it counts for each.
    told = 0
    if !isTelling {
      isTelling = true
      connection.tellDemand(of: self)
    }
    return true
  }

  /// Tells topics with paced producers of the last grant, as many as the turn's workBudget lasts for. Returns whether that were all.
  func tellDemand() -> Bool {
    while told < paced.count, !connection.workBudget.isExhausted {
      tell(paced[told])
      told += 1
      connection.workBudget.spend(1, of: .pacedTopics)
    }
    isTelling = told < paced.count
    return !isTelling
  }

  private func tell(_ member: PatternMember) {
    member.loopState.readersMoved()
  }

  override func reconsider() throws(WireError) { connection.changeTopics(of: self) }

  override var isOwed: Bool { credit.available > 0 && isBehind }

  override var isBehind: Bool { !hasBegun || members.values.contains { $0.isBehind } }

  // MARK: Topics

  /// Looks for topics to be joined next, until there are so many, or the turn's workBudget is exhausted.
  func findTopics(atMost count: Int) {
    while found.count < count, !walk.isDone, !connection.workBudget.isExhausted {
      let most = connection.workBudget.left(.names)
      var looks = most
      let topic = walk.next(looks: &looks)
      connection.workBudget.spend(most - looks, of: .names)
      if let topic, isNew(topic) { found.append(topic) }
    }
  }

  private func isNew(_ topic: Topic) -> Bool {
    connection.matchesTopics(named: topic.name) && members[topic.name]?.topic !== topic
      && !known.contains(ObjectIdentifier(topic))
  }

  /// Joins topics that were found, until the turn's workBudget is exhausted. Returns whether that were all.
  func join() throws(WireError) -> Bool {
    while !connection.workBudget.isExhausted, let topic = found.popFirst() {
      connection.workBudget.spend(1, of: .joins)
      try join(topic, startingAt: positions.removeValue(forKey: topic.name), wasThere: true)
    }
    guard found.isEmpty, walk.isDone else { return false }
    found = []
    known = []
    positions = [:]
    starts = [:]
    hasBegun = true
    let topics = made
    made = []
    for (topic, epoch) in topics { try joinFromStart(topic, epoch) }
    return true
  }

  /// Of the topics to be joined next, those of which only the store can tell where to begin.
  func unknownStarts() -> [(topic: Topic, time: Int64)] {
    guard case .time(let time) = start else { return [] }
    return found.compactMap { topic in
      guard positions[topic.name] == nil, starts[topic.name] == nil,
        topic.epoch.needsStore(for: .time(time))
      else { return nil }
      return (topic, time)
    }
  }

  func begin(_ topic: Topic, at offset: UInt64) {
    starts[topic.name] = .offset(offset)
  }

  /// Whether there are topics still to be joined.
  var isJoining: Bool { !hasBegun || !found.isEmpty || !walk.isDone }

  /// Its client may not subscribe to some topics any more.
  func lose(where isLost: (String) -> Bool) {
    found.removeAll { isLost($0.name) }
    made.removeAll { isLost($0.0.name) }
    for member in members.values.sorted(by: { $0.number < $1.number }) where isLost(member.topic.name) {
      topicDeleted(member)
    }
  }

  /// Its client may subscribe to other topics now: those among these that it hasn't are joined as if they had been found first.
  func gain(_ topics: PatternWalk) {
    known = Set(made.map { ObjectIdentifier($0.0) })
    found = []
    walk = topics
  }

  /// A topic was made that the pattern selects.
  func topicMade(_ topic: Topic, _ epoch: TopicEpoch) throws(WireError) {
    guard hasBegun else { return made.append((topic, epoch)) }
    // It may have been gained before this was told.
    if members[topic.name]?.topic === topic { return }
    try joinFromStart(topic, epoch)
  }

  /// Joins a topic from its first record on, also if it has had its end and started over meanwhile.
  private func joinFromStart(_ topic: Topic, _ epoch: TopicEpoch) throws(WireError) {
    try join(topic, startingAt: nil, wasThere: false, endedEpoch: epoch.condition == .ended ? epoch : nil)
  }

  private func join(
    _ topic: Topic, startingAt position: TopicPosition?, wasThere: Bool, endedEpoch: TopicEpoch? = nil
  ) throws(WireError) {
    let context = connection.context
    // The next topic of that name may be known already.
    guard context.core.registry.find(topic.name) === topic else { return }
    let former = members[topic.name]
    if former == nil { try connection.addMatch() }
    let loopState = topic.loopState(on: context)
    if topic.isPaced { loopState.protectEverything() }
    let (present, buffered) = topic.attachSubscription(now: context.loop.now)
    let epoch = endedEpoch ?? present
    do {
      let (cursor, missed) = try connection.start(
        startFrame(topic, epoch, position, wasThere: wasThere), topic, epoch, buffered)
      lastNumber += 1
      let member = PatternMember(
        of: self, number: lastNumber, loopState: loopState, epoch: epoch,
        PatternMember.Begin(
          cursor: cursor, missed: missed, lag: lag ?? topic.settings.lag ?? .skip,
          isResuming: position?.epoch == epoch.number,
          continues: position.map { epoch.continuing($0.epoch, at: 0) != nil } ?? false),
        matcher: matcher, isAwaited: wasThere)
      member.attachedEpoch = present
      loopState.add(member)
      // Behind its successor, so that the topic isn't without a subscriber in between.
      if let former { remove(former, isDeleted: former.topic !== topic) }
      members[topic.name] = member
      joined.append(member)
      if topic.isPaced { pace(member) }
      if wasThere {
        unannounced? += 1
        awaited? += 1
      }
      takeTurn(member)
    } catch {
      if former == nil { connection.removeMatches(1) }
      loopState.withdraw(from: present)
      throw error
    }
    // It may have been deleted between the look and the entry in its list.
    if topic.isDeleted { topic.announce(to: [loopState]) }
  }

  /// What a subscription to this topic alone would ask for.
  private func startFrame(
    _ topic: Topic, _ epoch: TopicEpoch, _ position: TopicPosition?, wasThere: Bool
  ) -> Subscribe {
    let frame = Subscribe(topic: topic.name, start: start, lag: lag, grantedThrough: 0)
    var (start, number) = (starts[topic.name] ?? frame.start, frame.epoch)
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

  func topicDeleted(_ member: PatternMember) {
    guard members[member.topic.name] === member else { return }
    members[member.topic.name] = nil
    connection.removeMatches(1)
    remove(member, isDeleted: true)
    connection.makeReady(self)
  }

  /// The producers of a member's topic are paced.
  func pace(_ member: PatternMember) {
    guard member.pacedIndex == nil else { return }
    member.pacedIndex = paced.count
    paced.append(member)
  }

  /// Gives up a member's place in its topic.
  ///
  /// - Parameter isDeleted: the receiver is told that its number means nothing any more; otherwise the next number for the topic says so.
  private func remove(_ member: PatternMember, isDeleted: Bool) {
    if case .ready = member.place { gone += 1 }
    member.leave()
    member.place = .ended
    dropDeparted()
    if let index = member.pacedIndex {
      let last = paced.removeLast()
      if last !== member {
        paced[index] = last
        last.pacedIndex = index
        if isTelling, index < told { tell(last) }
      }
      member.pacedIndex = nil
    }
    if !member.isAnnounced { announced(member) } else if isDeleted { departed.append(member.number) }
    settled(member)
    // They wait for demand, which may never come.
    if gone > 64, gone > turns.count / 2 {
      turns.removeAll { if case .ended = $0.place { true } else { false } }
      gone = 0
    }
  }

  override func leave() {
    connection.context.core.registry.endWatch(pattern, watch)
    connection.removePattern(matches: members.count)
    connection.workBudget.spend(members.count, of: .departures)
    dropDeparted(all: true)
    let departure = PatternDeparture(joined, of: self)
    members = [:]
    joined = []
    paced = []
    isTelling = false
    turns = FairTurns()
    (found, made) = ([], [])
    departure.goOn()
  }

  /// Drops members that have left from the list of those that have joined, when they are most of it.
  private func dropDeparted(all: Bool = false) {
    guard all || joined.count > 2 * members.count + 64 else { return }
    joined.removeAll { if case .ended = $0.place { true } else { false } }
  }

  // MARK: Turns

  /// How many stand among those who want turns.
  var waitingTurns: Int { turns.count }

  /// There may be more for a member, or from it: it gets its turn when the stream does.
  func takeTurn(_ member: PatternMember) {
    guard case .none = member.place else { return }
    member.place = .ready
    turns.append(member)
    if !isProducing { connection.makeReady(self) }
  }

  override func produce(into writes: WriteBatch, bytes: Int) -> Outcome {
    guard hasBegun else { return .waiting }
    isProducing = true
    defer { isProducing = false }
    let end = writes.work + bytes
    guard tellDeparted(writes) else { return .more }
    tellProgress(writes)
    while writes.work < end, writes.hasRoom, let (member, share) = turns.next(available: credit.available) {
      guard case .ready = member.place else {
        gone -= 1
        continue
      }
      member.place = .none
      guard serve(member, share, writes, bytes: end - writes.work) else { return .ended }
      tellProgress(writes)
    }
    if turns.isTurn(available: credit.available) || !departed.isEmpty { return .more }
    return turns.count > 0 ? .starved : .waiting
  }

  /// One member's turn. Returns whether the subscription goes on.
  private func serve(_ member: PatternMember, _ share: UInt64, _ writes: WriteBatch, bytes: Int) -> Bool {
    if !member.isAnnounced { announce(member, writes) }
    let before = writes.bytes
    turn(to: member.number, writes)
    let start = writes.bytes
    member.credit = Credit(granted: share)
    if share > 0 { member.feed() }
    let outcome = member.produce(into: writes, bytes: bytes)
    _ = credit.spend(member.credit.spent)
    // What was asked for of this topic shows when it is sent.
    if credit.granted != Credit.unlimited {
      member.loopState.traffic.requested(from: 0, to: member.credit.spent)
    }
    member.credit = Credit()
    if writes.bytes > start {
      subject = member.number
    } else if start > before {
      writes.removeLast(start - before)
    }
    if member.isLive { settled(member) }
    switch outcome {
    case .more:
      takeTurn(member)
    case .starved where credit.available > 0:
      takeTurn(member)
    case .starved:
      member.starve()
      member.place = .ready
      turns.starve(member)
    case .waiting:
      member.wait()
    case .loading:
      break
    case .ended:
      return member.isCompleted && completed(member, writes)
    }
    return true
  }

  /// The topic's terminal event was told. If it starts over then, it is joined anew. Returns whether the subscription goes on.
  private func completed(_ member: PatternMember, _ writes: WriteBatch) -> Bool {
    settled(member)
    guard member.topic.epoch !== member.epoch else { return true }
    do {
      try join(member.topic, startingAt: nil, wasThere: false)
      return true
    } catch {
      writes.append(Fault(error), stream: stream)
      return false
    }
  }

  // MARK: Frames

  private func announce(_ member: PatternMember, _ writes: WriteBatch) {
    writes.append(
      Matched(number: member.number, topic: member.topic.name, place: member.beginning), stream: stream)
    announced(member)
    member.isAnnounced = true
    guard member.missedAtStart > 0 else { return }
    member.loopState.traffic.missed(member.missedAtStart)
    turn(to: member.number, writes)
    subject = member.number
    writes.append(
      Lag(missed: member.missedAtStart, nextOffset: member.beginning.nextOffset), stream: stream)
  }

  /// Says what the next frames are about, unless they are about it anyway. The caller notes it.
  private func turn(to number: UInt32, _ writes: WriteBatch) {
    if subject != number { writes.append(SelectTopic(number: number), stream: stream) }
  }

  /// Returns whether there was room.
  private func tellDeparted(_ writes: WriteBatch) -> Bool {
    while writes.hasRoom, let number = departed.popFirst() {
      writes.append(Unmatched(number: number), stream: stream)
    }
    return departed.isEmpty
  }

  private func announced(_ member: PatternMember) {
    if member.isAwaited, !member.isAnnounced { unannounced? -= 1 }
  }

  /// A member is live, or never will be.
  private func settled(_ member: PatternMember) {
    guard member.isAwaited else { return }
    member.isAwaited = false
    awaited? -= 1
  }

  /// Tells once that all topics were announced that were there at first, and once that all of them are live.
  private func tellProgress(_ writes: WriteBatch) {
    if unannounced == 0 {
      unannounced = nil
      writes.append(SelectTopic(number: 0), stream: stream)
      subject = 0
    }
    if awaited == 0, unannounced == nil {
      awaited = nil
      turn(to: 0, writes)
      subject = 0
      writes.append(Live(nextOffset: 0), stream: stream)
    }
  }
}
