import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire

/// One member of a group: sends the records that the ``Group`` assigns to it.
// @unchecked: belongs to its connection's loop, except for `number` and `seenRevocations`, which are used under the group's lock. Other loops only pass it
// to its loop state, which wakes it on its loop.
final class GroupStream: SubscriberStream, TopicSubscriber, LoopGroupMember, StoreConsumer,
  @unchecked Sendable
{
  let stream: UInt32
  unowned let streams: StreamMultiplexer
  private(set) var credit: Credit
  private(set) var place = SubscriberPlace.none
  /// Its index in the loop state's list of all streams.
  var index = 0
  /// The epoch that counts it as attached, which may differ from the epoch that it reads.
  var attachedEpoch: TopicEpoch?
  let group: Group
  let loopState: TopicLoopState
  /// Its number in the group.
  var number = 0
  var seenRevocations: UInt64 = 0

  /// Records that were assigned to it and that it hasn't sent.
  private var inHand: [GroupState.Assignment] = []
  /// The number of records that it has sent and not yet reported to the group.
  private var sent: UInt64 = 0
  var source: RecordSource
  /// Nil unless the topic is durable.
  private let loader: StoreLoader?
  /// Whether all records, stored or not, are withheld while the lease of this node of a cluster is invalid: another node may own the topic, and its members
  /// may have settled them.
  private let mayBeHeld: Bool
  /// Whether the lease was invalid at the last attempt to send records.
  private var isHeld = false
  /// The delivery count that the client assumes for records.
  private var toldDelivery: UInt32 = 1

  private init(
    stream: UInt32, loopState: TopicLoopState, group: Group, streams: StreamMultiplexer, granted: UInt64
  ) {
    self.stream = stream
    self.streams = streams
    credit = Credit(granted: granted)
    self.group = group
    self.loopState = loopState
    mayBeHeld = streams.isClustered
    source = RecordSource(group.epoch, at: LogCursor(unplacedAt: 0))
    loader = StoreLoader(group.topic.name, group.epoch.storage, on: streams.loop)
    loader?.consumer = self
  }

  // MARK: Opening

  static func open(_ stream: UInt32, _ frame: JoinGroup, on streams: StreamMultiplexer) throws(WireError) {
    let topic = try streams.client.topic(for: frame)
    let isAsked = topic.findStart(frame.start, streams.pending(stream)) { streams, start in
      var frame = frame
      frame.start = start
      frame.grantedThrough = streams.session.granted(stream) ?? frame.grantedThrough
      streams.attempt(stream) { () throws(WireError) in try joinStored(stream, frame, topic, on: streams) }
    }
    if !isAsked { try joinStored(stream, frame, topic, on: streams) }
  }

  /// Joins a group of a durable topic once the group and the number of the topic's epoch are on disk. After a crash the broker wouldn't know them otherwise.
  private static func joinStored(
    _ stream: UInt32, _ frame: JoinGroup, _ topic: Topic, on streams: StreamMultiplexer
  ) throws(WireError) {
    try frame.validate()
    let isNew = !topic.hasGroup(frame.group)
    guard topic.storage != nil, isNew || topic.isEpochUnsaved else {
      return try join(stream, frame, on: streams)
    }
    if isNew {
      if let fault = topic.storageRefusal { throw WireError(fault) }
      _ = try topic.group(
        for: frame, by: streams.client.keeper, buffered: topic.bufferedFrom, on: streams.topics)
    }
    let continuation = streams.pending(stream)
    topic.whenCommitted(of: isNew ? frame.group : nil) { fault in
      continuation.resume { streams in
        if let fault { return streams.refuse(stream, fault) }
        var frame = frame
        // The client may have requested more meanwhile.
        frame.grantedThrough = streams.session.granted(stream) ?? frame.grantedThrough
        streams.attempt(stream) { () throws(WireError) in try join(stream, frame, on: streams) }
      }
    }
  }

  private static func join(
    _ stream: UInt32, _ frame: JoinGroup, on streams: StreamMultiplexer
  ) throws(WireError) {
    // Looks the topic up again: it may have been recreated while the store was searching.
    let topic = try streams.client.topic(for: frame)
    guard topic.settings.compact != true else {
      throw WireError(
        .unsupported,
        "topic \(frame.topic) keeps the newest record of each key, and a group has to get them all; join one of a topic that isn't compact"
      )
    }
    try topic.withSubscription(on: streams.topics) { loopState, epoch, buffered throws(WireError) in
      let (member, place) = try enter(stream, frame, topic, loopState, buffered, on: streams)
      member.attachedEpoch = epoch
      loopState.add(member, of: member.group)
      streams.attach(member, to: stream)
      streams.send(
        Subscribed(
          epoch: member.group.epoch.number, nextOffset: place.next, liveOffset: place.live, gaps: true),
        stream: stream)
      streams.send(Live(nextOffset: place.next), stream: stream)
      streams.makeReady(member)
    }
  }

  /// Returns a member of the group, which is created if it doesn't exist.
  private static func enter(
    _ stream: UInt32, _ frame: JoinGroup, _ topic: Topic, _ loopState: TopicLoopState, _ buffered: UInt64?,
    on streams: StreamMultiplexer
  ) throws(WireError) -> (member: GroupStream, place: (next: UInt64, live: UInt64)) {
    while true {
      let group = try topic.group(
        for: frame, by: streams.client.keeper, buffered: buffered, on: streams.topics)
      let member = GroupStream(
        stream: stream, loopState: loopState, group: group, streams: streams, granted: frame.grantedThrough)
      // The group may have been deleted or moved since the look-up: it is then looked up again.
      let floor = min(group.epoch.floor(now: streams.loop.wallClock), buffered ?? .max)
      if let place = group.join(member, from: floor, now: streams.loop.now) { return (member, place) }
    }
  }

  // MARK: Demand and verdicts

  func demand(through granted: UInt64) {
    let former = credit.granted
    guard credit.raise(to: granted) else { return }
    loopState.requested(from: former, to: granted)
    streams.makeReady(self)
  }

  /// Settles records until the turn's work budget is used up. The rest is settled in the next turn, even if the member has left by then.
  func settle(_ frame: Settle) { Self.settle(frame, in: group, on: streams) }

  private static func settle(_ frame: Settle, in group: Group, on streams: StreamMultiplexer) {
    let (looked, rest) = group.settle(
      frame, atMost: streams.client.workBudget.left(.groupRecords), on: streams.topics)
    streams.client.workBudget.spend(looked, of: .groupRecords)
    if let rest { streams.goOnLater { [unowned streams] in settle(rest, in: group, on: streams) } }
  }

  func call() { loopState.call(self) }

  /// Called by the group through the loop state.
  func called() {
    if case .none = place { streams.makeReady(self) }
  }

  func reconsider() throws(WireError) {
    try streams.client.require(.joinGroup, on: group.topic.name)
    let deadLetters = group.settings.deadLetters
    if !deadLetters.isEmpty { try streams.client.require(.publishOpen, on: deadLetters) }
  }

  func move(to place: SubscriberPlace) { self.place = place }

  func release() {
    source.dropStored()
    let looked = group.leave(self, unsent: inHand, on: streams.topics)
    streams.client.workBudget.spend(looked, of: .groupRecords)
    inHand = []
    loopState.remove(self, of: group)
    place = .ended
  }

  /// The group calls a member when it has something new. A member that withholds its records waits for the topic to be woken instead, which also happens
  /// when the lease is valid again.
  func wait() {
    if isHeld { loopState.wait(self) }
  }

  func woken() {
    place = .none
    streams.makeReady(self)
  }

  func storedRecordsArrived() {
    if case .none = place { woken() }
  }

  /// The broker keeps a member's position, regardless of the epoch's number.
  func epochContinued() {}

  func topicGone(_ fault: Fault) { streams.refuse(stream, fault) }

  // Its group reports its position, and counts how long it blocks producers.
  var wantsProducers: Bool { false }
  func producersChanged() {}
  func pacingBegan() {}
  func report(to positions: inout ReaderPositions) {}
  func count(_ holds: [HoldLog.Hold], to now: MonotonicTime) {}

  var identity: String { streams.client.identity.name }
  var blockedSince: MonotonicTime? { streams.blockedSince }
  var obstacle: StreamObstacle? { streams.obstacle }

  var isOwed: Bool {
    !inHand.isEmpty || (credit.available > 0 && group.hasMore)
  }

  var isBehind: Bool { !inHand.isEmpty || group.hasMore }

  var standing: SubscriberStanding? {
    let next = group.shownFrontier
    return SubscriberStanding(
      nextOffset: next, available: credit.available, lag: group.epoch.lag(from: next, of: .attached))
  }

  func isHolding(open hold: HoldLog.Hold?) -> Bool {
    group.flow.isHolding(open: hold, at: streams.loop.now)
  }

  func shown(open hold: HoldLog.Hold?) -> TopicInfo.Subscription? {
    let user = streams.user(of: stream)
    var info = TopicInfo.Subscription(
      connection: user.connection, client: user.client, stream: stream, state: .live,
      nextOffset: group.shownFrontier, granted: credit.granted, sent: credit.spent,
      consumer: group.name, node: user.node)
    group.flow.show(in: &info, open: hold, at: streams.loop.now)
    return info
  }

  // MARK: Producing

  func produce(into writes: WriteBatch, bytes: Int) -> DeliveryOutcome {
    isHeld = mayBeHeld && streams.topics.holdsUnsaved
    if isHeld { return .waiting }
    var budget = bytes
    while true {
      guard budget > 0, writes.hasRoom else { return .more }
      // Called even if records are in hand, since the group may have revoked some of them.
      let answer = group.exchange(
        self, sent: sent, inHand: &inHand, available: credit.available,
        on: streams.topics)
      sent = 0
      switch answer {
      case .records(let runs): inHand += runs
      case .missed(let count, let next):
        loopState.traffic.missed(count)
        writes.append(Lag(missed: count, nextOffset: next), stream: stream)
        continue
      case .nothing:
        guard !inHand.isEmpty else { return .waiting }
      case .finished:
        guard let ending = group.epoch.ending else { return .waiting }
        writes.append(Complete(ending), stream: stream)
        return .ended
      case .fault(let fault):
        writes.append(fault, stream: stream)
        return .ended
      }
      var done = 0
      defer { inHand.removeFirst(done) }
      while done < inHand.count {
        guard budget > 0, writes.hasRoom else { return .more }
        if let outcome = send(&inHand[done], into: writes, &budget) { return outcome }
        if inHand[done].count == 0 { done += 1 }
      }
    }
  }

  /// Sends the next records of a run, and removes them from it.
  ///
  /// - Returns: nil when the caller may continue; otherwise the reason why it can't.
  private func send(
    _ run: inout GroupState.Assignment, into writes: WriteBatch, _ budget: inout Int
  ) -> DeliveryOutcome? {
    let largest = streams.largestBatch
    source.move(to: run.first, hint: loopState.hint)
    switch source.next(
      demand: UInt64(run.count), bytes: budget, largest: largest, hint: loopState.hint)
    {
    case .run(let slice, let mark):
      guard unsafe slice.bytes.count <= largest else {
        return tooLong(slice.firstOffset, of: group.topic.name, writes)
      }
      if run.delivery != toldDelivery {
        toldDelivery = run.delivery
        writes.append(Deliveries(count: run.delivery), stream: stream)
      }
      writes.appendSmall(slice, mark: mark, stream: stream)
      unsafe loopState.sent(UInt64(slice.count), bytes: slice.bytes.count)
      unsafe budget -= slice.bytes.count
      spend(UInt64(slice.count), of: &run)
    case .loading(let request):
      loader?.load(request)
      return .loading
    case .lagged:
      let oldest = source.nextOffset
      var gone = run
      gone.count = UInt32(min(UInt64(run.count), oldest - run.first))
      let missed = UInt64(gone.count) + group.lost([gone], before: oldest, on: streams.topics)
      sent += UInt64(gone.count)
      run.first += UInt64(gone.count)
      run.count -= gone.count
      loopState.traffic.missed(missed)
      writes.append(Lag(missed: missed, nextOffset: oldest), stream: stream)
    case .passed: break
    case .caughtUp, .demandExhausted, .copies:
      // The group assigns only records that are in the log; but the log of a deleted topic is empty.
      spend(0, of: &run)
      run.count = 0
    }
    return nil
  }

  private func spend(_ count: UInt64, of run: inout GroupState.Assignment) {
    _ = credit.spend(count)
    sent += count
    run.first += count
    run.count -= UInt32(count)
  }
}
