import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire

/// A subscription to all topics that a pattern selects, including later ones, with one demand. Belongs to its connection's loop.
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
  /// Passes new topics from the registry to the subscription; and its number there.
  private let watch: PatternWatch
  private let watchNumber: UInt64

  /// Nil before the first topic is joined.
  var members: PatternMembers<PatternMember>?
  /// Nil without a filter.
  let matcher: RecordMatcher?
  /// The parts that exist only in a cluster.
  private final class ClusterPart {
    /// Topics of other nodes; nil for a subscription without any.
    let remote: (any RemoteTopics)?
    /// Demand that another node lends on behalf of its client; nil for a client of this node.
    let loan: NodeLoan?

    /// Nil without both.
    init?(_ remote: (any RemoteTopics)?, _ loan: NodeLoan?) {
      if remote == nil, loan == nil { return nil }
      (self.remote, self.loan) = (remote, loan)
    }
  }

  private let part: ClusterPart?

  /// The topics to be joined.
  var topics: PatternTopics
  @safe @exclusivity(unchecked) var frames: PatternFrames
  private(set) var place = SubscriberPlace.none
  private var isProducing = false
  /// Whether SUBSCRIBED was sent.
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
    // Any of the topics may use the grant, so all paced ones are notified.
    if let members, !members.paced.isEmpty, members.paced.beginTelling() { tellDemand(members) }
    streams.makeReady(self)
  }

  /// Notifies topics with paced producers of the last grant, as many as the turn's work budget allows, and the rest in the next turn.
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

  /// The demand that topics of this node may use.
  private var available: UInt64 {
    guard let remote, credit.available != Credit.unlimited else { return credit.available }
    return credit.available - min(remote.reserved, credit.available)
  }

  var isOwed: Bool { credit.available > 0 && isBehind }

  var isBehind: Bool {
    !isOpened || remote?.hasWaiting ?? false || members?.isBehind ?? false
  }

  // MARK: Another node's client

  /// The demand that paces producers: that of the client as a whole.
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

  /// The number of members that wait for turns.
  var waitingTurns: Int { members?.turns.count ?? 0 }

  /// Queues a member that may have more to send. It gets a turn when the stream does.
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

  /// Finishes a turn and returns its outcome.
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

  /// Waits for another node's topics before the subscription counts as begun, and as live.
  func awaitNode() { frames.awaitNode() }

  /// Ends the subscription with an error.
  func fail(_ fault: Fault) { streams.refuse(stream, fault) }

  /// Serves one member's turn. Returns whether the subscription continues.
  private func serve(_ member: PatternMember, _ share: UInt64, _ writes: WriteBatch, bytes: Int) -> Bool {
    if !member.isAnnounced { frames.announce(member, writes) }
    let selection = frames.select(member, writes)
    member.subscription.credit = Credit(granted: share)
    if share > 0 { member.subscription.demandArrived() }
    let outcome = member.subscription.produce(into: writes, bytes: bytes)
    frames.finish(selection, writes)
    _ = credit.spend(member.subscription.credit.spent)
    // A topic's share of the demand is known only after its use.
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

  /// Called when a topic's terminal event was sent. Joins the topic again if it has started over. Returns whether the subscription continues.
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
