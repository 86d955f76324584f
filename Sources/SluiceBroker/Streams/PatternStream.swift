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
  var lastNumber: UInt32 = 0
  unowned let streams: StreamMultiplexer
  @safe @exclusivity(unchecked) private(set) var credit: Credit
  let pattern: TopicPattern
  /// What the registry tells of new topics, and its number there.
  private let watch: PatternWatch
  private let watchNumber: UInt64

  /// Nil before the first one joins.
  var members: PatternMembers<PatternMember>?
  /// Nil when every record is wanted.
  let matcher: RecordMatcher?
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
  var topics: PatternTopics
  @safe @exclusivity(unchecked) var frames: PatternFrames
  private(set) var place = SubscriberPlace.none
  private var isProducing = false
  /// The client was sent SUBSCRIBED.
  var isOpened = false

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

  var remote: (any RemoteTopics)? { part?.remote }
  var loan: NodeLoan? { part?.loan }

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
  private func tellDemand(_ members: PatternMembers<PatternMember>) {
    guard isOpen else { return }
    while members.paced.hasMoreToTell, !streams.client.workBudget.isExhausted {
      tell(members.paced.nextToTell())
      streams.client.workBudget.spend(1, of: .pacedTopics)
    }
    if members.paced.goesOnTelling() { streams.goOnLater { [self] in tellDemand(members) } }
  }

  func tell(_ member: PatternMember) {
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

  // MARK: Place and end

  func move(to place: SubscriberPlace) { self.place = place }

  func release() {
    watch.end()
    streams.core.registry.endWatch(pattern, watchNumber)
    let count = members?.count ?? 0
    streams.counts.removePattern(matches: count + (remote?.count ?? 0))
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
    guard !member.awaitsEpoch, case .none = member.subscription.place else { return }
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
      switch members?.turns.next(available: available, written: remote?.written)
        ?? PatternTurns<PatternMember>.Next.none
      {
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
