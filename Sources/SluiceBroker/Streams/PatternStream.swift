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
  private var lastNumber: UInt32 = 0
  unowned let streams: StreamMultiplexer
  @safe @exclusivity(unchecked) private(set) var credit: Credit
  let pattern: TopicPattern
  /// What the registry tells of new topics, and its number there.
  private let watch: PatternWatch
  private let watchNumber: UInt64

  /// Nil before the first one joins.
  private var members: PatternMembers?
  /// Nil when every record is wanted.
  private let matcher: RecordMatcher?
  /// What there is in a cluster only.
  private final class ClusterPart {
    /// Topics of other nodes; nil where there are none.
    let remote: (any RemoteTopics)?
    /// For another node, which lends of its client's demand; nil for a client.
    let loan: NodeLoan?

    /// Nil where there is neither.
    init?(_ remote: (any RemoteTopics)?, _ loan: NodeLoan?) {
      if remote == nil, loan == nil { return nil }
      (self.remote, self.loan) = (remote, loan)
    }
  }

  private let part: ClusterPart?

  /// To be joined.
  private var topics: PatternTopics
  @safe @exclusivity(unchecked) private var frames: PatternFrames
  private(set) var place = SubscriberPlace.none
  private var isProducing = false
  /// The client was sent SUBSCRIBED.
  private var isOpened = false

  init(
    _ frame: SubscribePattern, _ pattern: TopicPattern, stream: UInt32, on streams: StreamMultiplexer,
    _ watch: PatternWatch, _ watchNumber: UInt64, walk: PatternWalk<Topic>, _ shards: ServedShards,
    _ remote: (any RemoteTopics)?
  ) {
    part = ClusterPart(remote, streams.client.isNode ? NodeLoan(shards: shards) : nil)
    self.stream = stream
    self.streams = streams
    credit = Credit(granted: frame.grantedThrough)
    self.pattern = pattern
    self.watch = watch
    self.watchNumber = watchNumber
    matcher = RecordMatcher(unlessEmpty: frame.filter)
    topics = PatternTopics(walk, frame)
    frames = PatternFrames(stream: stream)
    watch.begin(self)
  }

  private var remote: (any RemoteTopics)? { part?.remote }
  private var loan: NodeLoan? { part?.loan }

  // MARK: Demand

  func demand(through granted: UInt64) {
    guard credit.raise(to: granted) else { return }
    remote?.demandChanged()
    demandRaised()
  }

  private func demandRaised() {
    // The grant may be used for any of them, so it counts for each.
    if let members, !members.paced.isEmpty, members.paced.beginTelling() { tellDemand(members) }
    streams.makeReady(self)
  }

  /// Tells topics with paced producers of the last grant: what the turn's work budget leaves over in the next turn.
  private func tellDemand(_ members: PatternMembers) {
    guard isOpen else { return }
    while members.paced.hasMoreToTell, !streams.client.workBudget.isExhausted {
      tell(members.paced.nextToTell())
      streams.client.workBudget.spend(1, of: .pacedTopics)
    }
    if members.paced.goesOnTelling() { streams.goOnLater { [self] in tellDemand(members) } }
  }

  private func tell(_ member: PatternMember) {
    member.loopState.readersMoved()
  }

  func reconsider() throws(WireError) { changeTopics() }

  /// What topics may use that this node serves.
  private var available: UInt64 {
    guard let remote, credit.available != Credit.unlimited else { return credit.available }
    return credit.available - min(remote.reserved, credit.available)
  }

  var isOwed: Bool { credit.available > 0 && isBehind }

  var isBehind: Bool {
    !isOpened || remote?.hasWaiting ?? false || members?.isBehind ?? false
  }

  // MARK: Another node's client

  /// The demand that producers follow: that of the client as a whole.
  var pacingDemand: Credit { loan?.pacingDemand(spent: credit.spent) ?? credit }

  func lend(_ frame: Lend) throws(WireError) {
    guard let loan else {
      throw WireError(.unsupported, "LEND is for nodes of the broker's cluster; send DEMAND")
    }
    loan.take(frame, raising: &credit)
    demandRaised()
  }

  // MARK: Topics

  /// Whether all topics were joined that were there when it came.
  var hasBegun: Bool { topics.hasBegun }

  /// Looks for topics to be joined next, until there are so many, or the turn's work budget is exhausted.
  func findTopics(atMost count: Int) {
    while topics.needsMore(than: count), !streams.client.workBudget.isExhausted {
      let most = streams.client.workBudget.left(.names)
      var looks = most
      topics.find(looks: &looks) { topic in
        streams.client.matchesTopics(named: topic.name) && members?[topic.name]?.topic !== topic
      }
      streams.client.workBudget.spend(most - looks, of: .names)
    }
  }

  /// Tells the client that the subscription has begun, once the topics of all nodes are known.
  func begin() {
    guard hasBegun, remote?.hasBegun ?? true else { return }
    if !isOpened {
      isOpened = true
      let shards = loan?.shards.set ?? ShardSet()
      streams.send(
        Subscribed(epoch: 0, nextOffset: shards.count, liveOffset: shards.hash), stream: stream)
      if let loan, loan.isPaced { streams.send(loan.offer(waits: false), stream: stream) }
    }
    streams.makeReady(self)
  }

  /// Joins topics that were found, within the turn's work budget. Returns whether that were all.
  func join() throws(WireError) -> Bool {
    while !streams.client.workBudget.isExhausted, let (topic, position) = topics.next() {
      streams.client.workBudget.spend(1, of: .joins)
      try join(topic, startingAt: position, wasThere: true)
    }
    guard topics.isExhausted else { return false }
    for (topic, epoch) in topics.begin(where: loan == nil ? nil : isAbsent) {
      try joinFromStart(topic, epoch)
    }
    return true
  }

  /// Whether a topic isn't there of which another node has sent a position: that node is told so. Positions in topics that this node doesn't serve are kept
  /// for when it does.
  private func isAbsent(_ name: String) -> Bool {
    guard let loan else { return false }
    let registry = streams.core.registry
    guard let shard = registry.routes?.shard(of: name),
      registry.servedShards.hasKept(shard, since: loan.shards)
    else { return false }
    if members?[name] == nil { loan.isAbsent(name, as: newNumber()) }
    return true
  }

  /// A number for a topic.
  func newNumber() -> UInt32 {
    lastNumber += 1
    return lastNumber
  }

  /// Of the topics to be joined next, those of which only the store can tell where to begin.
  func unknownStarts() -> [(topic: Topic, time: Int64)] { topics.unknownStarts() }

  /// The store has told where to begin in a topic.
  func begin(_ topic: Topic, at offset: UInt64) {
    topics.begin(topic, at: offset)
  }

  /// Whether there are topics still to be joined.
  var isJoining: Bool { !hasBegun || !topics.isExhausted }

  /// Leaves topics to which the client may not subscribe any more.
  func lose(where isLost: (String) -> Bool) {
    topics.remove(where: isLost)
    for member in members?.sorted ?? [] where isLost(member.topic.name) { lose(member) }
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
    if members?[topic.name]?.topic === topic { return }
    try joinFromStart(topic, epoch)
  }

  /// Joins a topic from its first record on, also if it has ended and started over meanwhile.
  private func joinFromStart(_ topic: Topic, _ epoch: TopicEpoch) throws(WireError) {
    guard streams.core.registry.find(topic.name) === topic else { return }
    // A topic that has gone and come back, of which the departure isn't told yet.
    if remote != nil || loan != nil, let former = members?[topic.name], former.topic !== topic {
      return try join(topic, startingAt: position(of: former), wasThere: false, after: former.begins)
    }
    if let (position, after) = remote?.take(topic.name) {
      return try join(topic, startingAt: position, wasThere: false, after: after)
    }
    if let position = topics.takeKept(topic.name) {
      return try join(topic, startingAt: position, wasThere: false)
    }
    try join(topic, startingAt: nil, wasThere: false, endedEpoch: epoch.condition == .ended ? epoch : nil)
  }

  private func join(
    _ topic: Topic, startingAt position: TopicPosition?, wasThere: Bool, endedEpoch: TopicEpoch? = nil,
    after frame: UInt64 = 0
  ) throws(WireError) {
    // It may have been deleted, and another made with its name.
    guard streams.core.registry.find(topic.name) === topic else { return }
    let former = members?[topic.name]
    if former == nil { try streams.counts.addMatch(streams.core, isLimited: loan == nil) }
    let loopState = topic.loopState(on: streams.topics)
    if topic.isPaced { loopState.protectEverything() }
    let (present, buffered) = topic.attachSubscription(now: streams.loop.now)
    let epoch = endedEpoch ?? present
    do {
      let (cursor, missed) = try epoch.start(
        topics.frame(toSubscribeTo: topic, epoch, position, wasThere: wasThere), lag: topic.settings.lag,
        buffered: buffered,
        wallClock: streams.loop.wallClock)
      let member = PatternMember(
        of: self, number: newNumber(), loopState: loopState, epoch: epoch,
        PatternMember.Begin(
          cursor: cursor, missed: missed, lag: topics.lag ?? topic.settings.lag ?? .skip,
          isResuming: position?.epoch == epoch.number,
          continues: position.map { epoch.continuing($0.epoch, at: 0) != nil } ?? false),
        matcher: matcher, isAwaited: wasThere)
      member.begins = frame
      member.subscription.attachedEpoch = present
      loopState.add(member.subscription)
      // After its successor has joined, so that the topic isn't without a subscriber in between.
      if let former { remove(former, isDeleted: former.topic !== topic && position == nil) }
      makeMembers().add(member)
      if topic.isPaced { pace(member) }
      if wasThere { frames.await(member) }
      takeTurn(member)
    } catch {
      if former == nil { streams.counts.removeMatches(1, streams.core) }
      loopState.withdraw(from: present)
      throw error
    }
    // It may have gone between the look and the entry in its list.
    if topic.isGone { topic.notify([loopState]) }
  }

  private func makeMembers() -> PatternMembers {
    if let members { return members }
    let made = PatternMembers()
    members = made
    return made
  }

  /// A topic was deleted, or another node serves it.
  func topicGone(_ member: PatternMember, _ fault: Fault) {
    guard fault.code == .topicMoved else { return lose(member) }
    streams.attempt(stream) { () throws(WireError) in try move(member) }
  }

  /// Another node serves a topic that this one thinks its own, of which it isn't told yet that it moves.
  func giveUp(_ name: String) throws(WireError) {
    if let member = members?[name] { try move(member) }
  }

  private func position(of member: PatternMember) -> TopicPosition {
    TopicPosition(
      topic: member.topic.name, epoch: member.subscription.epoch.number,
      nextOffset: member.subscription.sentThrough)
  }

  /// A topic moves to another node: there it goes on where it is, and so it does here if it comes back.
  private func move(_ member: PatternMember) throws(WireError) {
    guard let members, members.remove(member) else { return }
    let position = position(of: member)
    streams.counts.removeMatches(1, streams.core)
    remove(member, isDeleted: false)
    if let remote {
      try remote.left(position, number: member.isAnnounced ? member.number : 0)
    } else {
      topics.keep(position)
    }
  }

  private func lose(_ member: PatternMember) {
    guard let members, members.remove(member) else { return }
    streams.counts.removeMatches(1, streams.core)
    remove(member, isDeleted: true)
    streams.makeReady(self)
  }

  /// The producers of a member's topic are paced.
  func pace(_ member: PatternMember) {
    guard let members, members.paced.add(member), let offer = loan?.paced(), isOpened else { return }
    streams.send(offer, stream: stream)
  }

  /// Gives up a member's place in its topic.
  ///
  /// - Parameter isDeleted: the receiver is told that its number means nothing any more; otherwise the next number for the topic says so.
  private func remove(_ member: PatternMember, isDeleted: Bool) {
    if let untold = members?.release(member) { tell(untold) }
    frames.departed(member, isDeleted: isDeleted)
  }

  func move(to place: SubscriberPlace) { self.place = place }

  func release() {
    watch.end()
    streams.core.registry.endWatch(pattern, watchNumber)
    let count = members?.count ?? 0
    streams.counts.removePattern(matches: count + (remote?.count ?? 0), streams.core)
    remote?.release()
    streams.client.workBudget.spend(count, of: .departures)
    let departure = PatternDeparture(members?.takeAll() ?? [], of: self)
    members = nil
    topics.removeAll()
    place = .ended
    departure.goOn()
  }

  // MARK: Turns

  /// How many members want turns.
  var waitingTurns: Int { members?.turns.count ?? 0 }

  /// There may be more for a member: it gets a turn when the stream does.
  func takeTurn(_ member: PatternMember) {
    guard case .none = member.subscription.place else { return }
    member.subscription.move(to: .ready)
    members?.turns.append(member)
    if !isProducing { streams.makeReady(self) }
  }

  func produce(into writes: WriteBatch, bytes: Int) -> DeliveryOutcome {
    guard isOpened else { return .waiting }
    isProducing = true
    defer { isProducing = false }
    let end = writes.work + bytes
    guard frames.tellDeparted(writes), loan?.tellAbsent(writes, stream: stream) ?? true else { return .more }
    frames.tellProgress(writes)
    var isUsed = false
    producing: while writes.work < end, writes.hasRoom {
      let passed = remote?.write(into: writes, &frames) ?? .none
      switch passed {
      case .none: break
      case .written(let records):
        _ = credit.spend(records)
        frames.tellProgress(writes)
      case .end: return .ended
      }
      let (member, share): (PatternMember, UInt64)
      switch members?.turns.next(available: available, written: remote?.written) ?? PatternTurns.Next.none {
      case .member(let next, let itsShare): (member, share) = (next, itsShare)
      case .passedOver: continue
      case .none:
        if passed == .none { break producing }
        continue
      }
      member.subscription.move(to: .none)
      let spent = credit.spent
      guard serve(member, share, writes, bytes: end - writes.work) else { return .ended }
      if credit.spent > spent { isUsed = true }
      frames.tellProgress(writes)
    }
    return outcome(isUsed: isUsed, writes)
  }

  /// What is left to do after a turn.
  private func outcome(isUsed: Bool, _ writes: WriteBatch) -> DeliveryOutcome {
    if let remote {
      members?.turns.goOn(remote.written)
      remote.turnEnded(isUsed: isUsed, waits: waitingTurns > 0 && available == 0)
      if remote.hasWaiting { return .more }
    }
    if let loan, loan.isRecalled {
      writes.append(loan.giveBack(&credit, waits: waitingTurns > 0), stream: stream)
    }
    if members?.turns.isTurn(available: available) ?? false || frames.hasDeparted { return .more }
    guard waitingTurns > 0 else { return .waiting }
    if let offer = loan?.exhausted() { writes.append(offer, stream: stream) }
    return .starved
  }

  // MARK: Other nodes

  /// Another node's topics have to be told of, too, before the subscription has begun, and is live.
  func awaitNode() { frames.awaitNode() }

  /// Ends the subscription with an error.
  func fail(_ fault: Fault) { streams.refuse(stream, fault) }

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
      member.loopState.requested(from: 0, to: member.subscription.credit.spent)
    }
    member.subscription.credit = Credit()
    if member.subscription.isLive { frames.settled(member) }
    switch outcome {
    case .more:
      takeTurn(member)
    case .starved where available > 0:
      takeTurn(member)
    case .starved:
      member.subscription.noteDemandExhausted()
      member.subscription.move(to: .ready)
      members?.turns.demandExhausted(member)
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
