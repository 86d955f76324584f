import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire

/// One subscription of a group: sends what the ``Group`` gives it.
// @unchecked: belongs to its connection's loop, but for `number` and `seenRevocations`, which are used with the group's lock held. Other loops only
// pass it on to its loop state, which has it woken on the loop.
final class GroupMember: Consumer, StoreConsumer, LoopGroupMember, @unchecked Sendable {
  let group: Group
  let loopState: TopicLoopState
  /// Its number in the group.
  var number = 0
  var seenRevocations: UInt64 = 0

  /// Records that it was given and hasn't sent.
  private var inHand: [GroupState.Assignment] = []
  /// Records that it has sent, of which the group doesn't know yet.
  private var sent: UInt64 = 0
  var source: RecordSource
  /// Nil unless the topic is durable.
  private let loader: StoreLoader?
  /// The delivery that the client takes records for.
  private var toldDelivery: UInt32 = 1

  init(stream: UInt32, loopState: TopicLoopState, group: Group, connection: Connection, granted: UInt64) {
    self.group = group
    self.loopState = loopState
    source = RecordSource(group.epoch, at: LogCursor(unplacedAt: 0))
    loader = StoreLoader(group.topic.name, group.epoch.storage, on: connection.context.loop)
    super.init(stream: stream, connection: connection, granted: granted)
    loader?.consumer = self
  }

  override func raise(to granted: UInt64) -> Bool {
    let former = credit.granted
    guard super.raise(to: granted) else { return false }
    loopState.traffic.requested(from: former, to: granted)
    return true
  }

  func call() { loopState.call(self) }

  /// Called by the group, by way of the loop state.
  func called() {
    if case .none = place { connection.makeReady(self) }
  }

  override func reconsider() throws(WireError) {
    try connection.require(.joinGroup, on: group.topic.name)
    let deadLetters = group.settings.deadLetters
    if !deadLetters.isEmpty { try connection.require(.publishOpen, on: deadLetters) }
  }

  override func leave() {
    source.dropStored()
    let looked = group.leave(self, unsent: inHand, on: connection.context.topics)
    connection.workBudget.spend(looked, of: .groupRecords)
    inHand = []
    loopState.remove(self, of: group)
  }

  override var isOwed: Bool {
    !inHand.isEmpty || (credit.available > 0 && group.hasMore)
  }

  override var isBehind: Bool { !inHand.isEmpty || group.hasMore }

  override var standing: SubscriberStanding? {
    let next = group.shownFrontier
    let head = group.epoch.log.head
    return SubscriberStanding(
      nextOffset: next, available: credit.available, lag: head > next ? head - next : 0)
  }

  override func isHolding(open hold: HoldLog.Hold?) -> Bool {
    group.flow.isHolding(open: hold, at: connection.context.loop.now)
  }

  override func shown(open hold: HoldLog.Hold?) -> TopicInfo.Subscription? {
    var info = TopicInfo.Subscription(
      connection: connection.id, client: connection.clientName, stream: stream, state: .live,
      nextOffset: group.shownFrontier, granted: credit.granted, sent: credit.spent)
    group.flow.show(in: &info, open: hold, at: connection.context.loop.now)
    return info
  }

  // MARK: Producing

  override func produce(into writes: WriteBatch, bytes: Int) -> Outcome {
    var budget = bytes
    while true {
      guard budget > 0, writes.hasRoom else { return .more }
      // Also when there is something in hand: what was taken back meanwhile must not be sent.
      let answer = group.exchange(
        self, sent: sent, inHand: &inHand, available: credit.available,
        on: connection.context.topics)
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

  /// Sends the next records of a run, and takes them off it.
  ///
  /// - Returns: nil when it can go on; otherwise why it can't.
  private func send(
    _ run: inout GroupState.Assignment, into writes: WriteBatch, _ budget: inout Int
  ) -> Outcome? {
    let largest = connection.largestBatch
    source.move(to: run.first, hint: loopState.hint)
    switch source.next(
      demand: UInt64(run.count), bytes: budget, largest: largest, hint: &loopState.hint)
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
      unsafe loopState.traffic.sent(UInt64(slice.count), bytes: slice.bytes.count)
      unsafe budget -= slice.bytes.count
      spend(UInt64(slice.count), of: &run)
    case .loading(let request):
      loader?.load(request)
      return .loading
    case .lagged:
      let oldest = source.nextOffset
      var gone = run
      gone.count = UInt32(min(UInt64(run.count), oldest - run.first))
      let missed = UInt64(gone.count) + group.lost([gone], before: oldest, on: connection.context.topics)
      sent += UInt64(gone.count)
      run.first += UInt64(gone.count)
      run.count -= gone.count
      loopState.traffic.missed(missed)
      writes.append(Lag(missed: missed, nextOffset: oldest), stream: stream)
    case .passed: break
    case .caughtUp, .demandExhausted, .copies:
      // Nothing is given out that isn't in the log; but the log of a deleted topic is empty.
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
