import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire

/// A subscription to all topics that a pattern selects, those made later included, with one demand. Belongs to its connection's loop.
///
/// ```
///  topics ── loop state ─► member ─┐
///  topics ── loop state ─► member ─┼─ fair turns ──────►  MATCHED, SELECT_TOPIC, DELIVER … on one stream
///  topics ── loop state ─► member ─┘        ▲
///                                 one credit
/// ```
final class PatternStream: SubscriberStream {
  let stream: UInt32
  unowned let streams: StreamMultiplexer
  private(set) var credit: Credit
  private(set) var place = SubscriberPlace.none
  let pattern: TopicPattern
  /// Its number as a watcher of the registry.
  private let watch: UInt64
  private let start: Subscribe.Start
  private let lag: Subscribe.LagPolicy?

  /// By name. A member is for one epoch of its topic.
  private(set) var members: [String: PatternMember] = [:]
  private var lastNumber: UInt32 = 0
  /// All members in the order in which they have joined, and some that have left.
  private var joined: [PatternMember] = []
  /// Members of topics whose producers are paced.
  private var paced: [PatternMember] = []
  /// How many of those know of the last grant, while it is being told.
  private var told = 0
  private var isTelling = false
  /// Nil when every record is wanted.
  private let matcher: RecordMatcher?
  private var turns = FairTurns<PatternMember>()
  /// Members that have left and are still in `turns`.
  private var gone = 0
  private var isProducing = false

  /// To be joined.
  private var topics: PatternTopics
  private var frames: PatternFrames

  init(
    _ frame: SubscribePattern, _ pattern: TopicPattern, stream: UInt32, on streams: StreamMultiplexer,
    watch: UInt64, walk: PatternWalk<Topic>
  ) {
    self.stream = stream
    self.streams = streams
    credit = Credit(granted: frame.grantedThrough)
    self.pattern = pattern
    self.watch = watch
    start = frame.start
    lag = frame.lag
    matcher = RecordMatcher(unlessEmpty: frame.filter)
    topics = PatternTopics(walk, positions: frame.positions)
    frames = PatternFrames(stream: stream)
  }

  // MARK: Demand

  func demand(through granted: UInt64) {
    guard credit.raise(to: granted) else { return }
    if !paced.isEmpty {
      // The grant may be used for any of them, so it counts for each.
      told = 0
      if !isTelling {
        isTelling = true
        tellDemand()
      }
    }
    streams.makeReady(self)
  }

  /// Tells topics with paced producers of the last grant: what the turn's work budget leaves over in the next turn.
  private func tellDemand() {
    guard isOpen else { return }
    while told < paced.count, !streams.client.workBudget.isExhausted {
      tell(paced[told])
      told += 1
      streams.client.workBudget.spend(1, of: .pacedTopics)
    }
    isTelling = told < paced.count
    if isTelling { streams.goOnLater { [self] in tellDemand() } }
  }

  private func tell(_ member: PatternMember) {
    member.loopState.readersMoved()
  }

  func reconsider() throws(WireError) { changeTopics() }

  var isOwed: Bool { credit.available > 0 && isBehind }

  var isBehind: Bool { !hasBegun || members.values.contains { $0.subscription.isBehind } }

  // MARK: Topics

  /// Whether all topics were joined that were there when it came.
  var hasBegun: Bool { topics.hasBegun }

  /// Looks for topics to be joined next, until there are so many, or the turn's work budget is exhausted.
  func findTopics(atMost count: Int) {
    while topics.needsMore(than: count), !streams.client.workBudget.isExhausted {
      let most = streams.client.workBudget.left(.names)
      var looks = most
      topics.find(looks: &looks) { topic in
        streams.client.matchesTopics(named: topic.name) && members[topic.name]?.topic !== topic
      }
      streams.client.workBudget.spend(most - looks, of: .names)
    }
  }

  /// Joins topics that were found, within the turn's work budget. Returns whether that were all.
  func join() throws(WireError) -> Bool {
    while !streams.client.workBudget.isExhausted, let (topic, position) = topics.next() {
      streams.client.workBudget.spend(1, of: .joins)
      try join(topic, startingAt: position, wasThere: true)
    }
    guard topics.isExhausted else { return false }
    for (topic, epoch) in topics.begin() { try joinFromStart(topic, epoch) }
    return true
  }

  /// Of the topics to be joined next, those of which only the store can tell where to begin.
  func unknownStarts() -> [(topic: Topic, time: Int64)] {
    guard case .time(let time) = start else { return [] }
    return topics.unknownStarts(at: time)
  }

  /// The store has told where to begin in a topic.
  func begin(_ topic: Topic, at offset: UInt64) {
    topics.begin(topic, at: offset)
  }

  /// Whether there are topics still to be joined.
  var isJoining: Bool { !hasBegun || !topics.isExhausted }

  /// Leaves topics to which the client may not subscribe any more.
  func lose(where isLost: (String) -> Bool) {
    topics.remove(where: isLost)
    for member in members.values.sorted(by: { $0.number < $1.number }) where isLost(member.topic.name) {
      lose(member)
    }
  }

  /// Joins topics to which the client may subscribe now, as if they had been there at first.
  ///
  /// - Parameter topics: all that the pattern selects.
  func gain(_ topics: PatternWalk<Topic>) {
    self.topics.search(topics)
  }

  /// A topic was made that the pattern selects.
  func topicMade(_ topic: Topic, _ epoch: TopicEpoch) throws(WireError) {
    guard hasBegun else { return topics.add(topic, epoch) }
    // It may have been joined already, after a change of permissions.
    if members[topic.name]?.topic === topic { return }
    try joinFromStart(topic, epoch)
  }

  /// Joins a topic from its first record on, also if it has ended and started over meanwhile.
  private func joinFromStart(_ topic: Topic, _ epoch: TopicEpoch) throws(WireError) {
    try join(topic, startingAt: nil, wasThere: false, endedEpoch: epoch.condition == .ended ? epoch : nil)
  }

  private func join(
    _ topic: Topic, startingAt position: TopicPosition?, wasThere: Bool, endedEpoch: TopicEpoch? = nil
  ) throws(WireError) {
    // It may have been deleted, and another made with its name.
    guard streams.core.registry.find(topic.name) === topic else { return }
    let former = members[topic.name]
    if former == nil { try streams.counts.addMatch() }
    let loopState = topic.loopState(on: streams.topics)
    if topic.isPaced { loopState.protectEverything() }
    let (present, buffered) = topic.attachSubscription(now: streams.loop.now)
    let epoch = endedEpoch ?? present
    do {
      let (cursor, missed) = try epoch.start(
        startFrame(topic, epoch, position, wasThere: wasThere), lag: topic.settings.lag, buffered: buffered,
        wallClock: streams.loop.wallClock)
      lastNumber += 1
      let member = PatternMember(
        of: self, number: lastNumber, loopState: loopState, epoch: epoch,
        PatternMember.Begin(
          cursor: cursor, missed: missed, lag: lag ?? topic.settings.lag ?? .skip,
          isResuming: position?.epoch == epoch.number,
          continues: position.map { epoch.continuing($0.epoch, at: 0) != nil } ?? false),
        matcher: matcher, isAwaited: wasThere)
      member.subscription.attachedEpoch = present
      loopState.add(member.subscription)
      // After its successor has joined, so that the topic isn't without a subscriber in between.
      if let former { remove(former, isDeleted: former.topic !== topic) }
      members[topic.name] = member
      joined.append(member)
      if topic.isPaced { pace(member) }
      if wasThere { frames.await(member) }
      takeTurn(member)
    } catch {
      if former == nil { streams.counts.removeMatches(1) }
      loopState.withdraw(from: present)
      throw error
    }
    // It may have gone between the look and the entry in its list.
    if topic.isGone { topic.notify([loopState]) }
  }

  /// The frame that a subscription to this topic alone would send.
  private func startFrame(
    _ topic: Topic, _ epoch: TopicEpoch, _ position: TopicPosition?, wasThere: Bool
  ) -> Subscribe {
    let frame = Subscribe(topic: topic.name, start: start, lag: lag, grantedThrough: 0)
    var (start, number) = (topics.start(in: topic) ?? frame.start, frame.epoch)
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

  /// A topic was deleted, or another node serves it. The client's positions tell where a topic that has moved goes on.
  func topicGone(_ member: PatternMember, _ fault: Fault) {
    if fault.code == .topicMoved { streams.refuse(stream, fault) } else { lose(member) }
  }

  private func lose(_ member: PatternMember) {
    guard members[member.topic.name] === member else { return }
    members[member.topic.name] = nil
    streams.counts.removeMatches(1)
    remove(member, isDeleted: true)
    streams.makeReady(self)
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
    if case .ready = member.subscription.place { gone += 1 }
    member.subscription.release()
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
    frames.departed(member, isDeleted: isDeleted)
    // Members that wait for demand would stay in `turns` for as long as there is none.
    if gone > 64, gone > turns.count / 2 {
      turns.removeAll { if case .ended = $0.subscription.place { true } else { false } }
      gone = 0
    }
  }

  func move(to place: SubscriberPlace) { self.place = place }

  func release() {
    streams.core.registry.endWatch(pattern, watch)
    streams.counts.removePattern(matches: members.count)
    streams.client.workBudget.spend(members.count, of: .departures)
    dropDeparted(all: true)
    let departure = PatternDeparture(joined, of: self)
    members = [:]
    joined = []
    paced = []
    isTelling = false
    turns = FairTurns()
    topics.removeAll()
    place = .ended
    departure.goOn()
  }

  /// Drops members that have left from `joined`, when they are most of it.
  private func dropDeparted(all: Bool = false) {
    guard all || joined.count > 2 * members.count + 64 else { return }
    joined.removeAll { if case .ended = $0.subscription.place { true } else { false } }
  }

  // MARK: Turns

  /// How many members want turns.
  var waitingTurns: Int { turns.count }

  /// There may be more for a member: it gets a turn when the stream does.
  func takeTurn(_ member: PatternMember) {
    guard case .none = member.subscription.place else { return }
    member.subscription.move(to: .ready)
    turns.append(member)
    if !isProducing { streams.makeReady(self) }
  }

  func produce(into writes: WriteBatch, bytes: Int) -> DeliveryOutcome {
    guard hasBegun else { return .waiting }
    isProducing = true
    defer { isProducing = false }
    let end = writes.work + bytes
    guard frames.tellDeparted(writes) else { return .more }
    frames.tellProgress(writes)
    while writes.work < end, writes.hasRoom, let (member, share) = turns.next(available: credit.available) {
      guard case .ready = member.subscription.place else {
        gone -= 1
        continue
      }
      member.subscription.move(to: .none)
      guard serve(member, share, writes, bytes: end - writes.work) else { return .ended }
      frames.tellProgress(writes)
    }
    if turns.isTurn(available: credit.available) || frames.hasDeparted { return .more }
    return turns.count > 0 ? .starved : .waiting
  }

  /// One member's turn. Returns whether the subscription goes on.
  private func serve(_ member: PatternMember, _ share: UInt64, _ writes: WriteBatch, bytes: Int) -> Bool {
    if !member.isAnnounced { frames.announce(member, writes) }
    let selection = frames.select(member, writes)
    member.subscription.credit = Credit(granted: share)
    if share > 0 { member.subscription.demandArrived() }
    let outcome = member.subscription.produce(into: writes, bytes: bytes)
    frames.finish(selection, writes)
    _ = credit.spend(member.subscription.credit.spent)
    // A topic's share of the demand is known when it is used.
    if credit.granted != Credit.unlimited {
      member.loopState.traffic.requested(from: 0, to: member.subscription.credit.spent)
    }
    member.subscription.credit = Credit()
    if member.subscription.isLive { frames.settled(member) }
    switch outcome {
    case .more:
      takeTurn(member)
    case .starved where credit.available > 0:
      takeTurn(member)
    case .starved:
      member.subscription.noteDemandExhausted()
      member.subscription.move(to: .ready)
      turns.demandExhausted(member)
    case .waiting:
      member.subscription.wait()
    case .loading:
      break
    case .ended:
      return member.isCompleted && completed(member, writes)
    }
    return true
  }

  /// The topic's terminal event was told. If it starts over then, it is joined anew. Returns whether the subscription goes on.
  private func completed(_ member: PatternMember, _ writes: WriteBatch) -> Bool {
    frames.settled(member)
    guard member.topic.epoch !== member.subscription.epoch else { return true }
    do {
      try join(member.topic, startingAt: nil, wasThere: false)
      return true
    } catch {
      writes.append(Fault(error), stream: stream)
      return false
    }
  }
}
