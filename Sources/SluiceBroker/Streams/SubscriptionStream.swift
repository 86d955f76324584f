import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire

/// A subscriber's position in a topic, and its demand. Belongs to its connection's loop.
final class SubscriptionStream: SubscriberStream, TopicSubscriber, StoreConsumer {
  let stream: UInt32
  unowned let streams: StreamMultiplexer
  /// The pattern's member that owns the subscription; nil for one with a stream and a demand of its own.
  @safe @exclusivity(unchecked) unowned var owner: (any SubscriptionOwner)?
  @safe @exclusivity(unchecked) var credit: Credit
  @safe @exclusivity(unchecked) private(set) var place = SubscriberPlace.none
  /// Its index in the loop state's list of all streams.
  var index = 0
  /// The epoch that counts it as attached, which may differ from ``epoch``.
  var attachedEpoch: TopicEpoch?
  let topic: Topic
  let epoch: TopicEpoch
  /// The number of the epoch that the subscriber knows.
  let epochNumber: UInt64
  let loopState: TopicLoopState
  /// Nil for the policy of the topic's settings.
  private let lagPolicy: Subscribe.LagPolicy?
  /// The offset at which replay ends and live begins.
  private let liveOffset: UInt64
  @safe @exclusivity(unchecked) private(set) var isLive = false
  @safe @exclusivity(unchecked) var source: RecordSource
  /// Nil unless the topic is durable.
  private let loader: StoreLoader?
  /// The time of the records that a filter reads.
  @safe @exclusivity(unchecked) private var time = MarkedTime()
  /// The offset after the last sent record, or the start of the subscription.
  @safe @exclusivity(unchecked) private(set) var sentThrough: UInt64
  /// Nil without a durable cursor.
  @safe @exclusivity(unchecked) var durable: DurablePlace?
  /// Its durable cursor isn't on disk yet. Nothing is sent until then.
  var isOpening = false
  /// Whether another node may read for several of its clients through it. Set before it is attached.
  var isShareable = false
  /// The floor that was last sent to the other node.
  private var toldFloor: UInt64 = 0
  private let isFiltered: Bool
  /// Whether records are withheld while the lease of this node is invalid.
  private let mayBeHeld: Bool
  private let tellsProducers: Bool
  /// The number of producers that was last sent to the subscriber.
  private var toldProducers: UInt32?
  /// Its position when its loop state reported last, and how long that has blocked producers.
  private var account: HoldAccount
  /// The time since which there have been records but no demand; nil in any other state.
  @safe @exclusivity(unchecked) private var starvedSince: MonotonicTime?
  /// The last time at which demand arrived for waiting records.
  @safe @exclusivity(unchecked) private var demandArrivedAt: MonotonicTime?

  init(
    stream: UInt32, loopState: TopicLoopState, epoch: TopicEpoch, streams: StreamMultiplexer,
    cursor: LogCursor, liveOffset: UInt64, lag: Subscribe.LagPolicy?, granted: UInt64, isResuming: Bool,
    matcher: RecordMatcher? = nil, wantsProducers: Bool = false
  ) {
    self.stream = stream
    self.streams = streams
    credit = Credit(granted: granted)
    topic = loopState.topic
    self.epoch = epoch
    epochNumber = epoch.number
    self.loopState = loopState
    account = HoldAccount(since: streams.loop.now)
    self.liveOffset = liveOffset
    lagPolicy = lag
    isFiltered = matcher != nil
    mayBeHeld = streams.mayHold(loopState.topic)
    tellsProducers = wantsProducers
    // A subscriber that resumes may have received records that were deleted since.
    let compacted = epoch.newest.map {
      CompactedReader(
        $0, before: liveOffset, deletionsFrom: isResuming ? cursor.nextOffset : liveOffset,
        headroom: WriteBatch.deliverHeader)
    }
    source = RecordSource(epoch, at: cursor, matcher: matcher, compacted: compacted)
    sentThrough = cursor.nextOffset
    loader = StoreLoader(topic.name, topic.storage, on: streams.loop)
    attachedEpoch = epoch
    loader?.consumer = self
  }

  /// Whether offsets may have gaps that aren't losses.
  var leavesGaps: Bool { source.leavesGaps }

  /// The offset of the next record to read.
  var nextOffset: UInt64 { source.nextOffset }

  /// Counts records that are about to be sent: their number, their bytes, and the offsets of the first and after the last.
  @inline(__always)
  private func spend(_ count: UInt64, bytes: Int, from first: UInt64, through end: UInt64) {
    _ = credit.spend(count)
    loopState.sent(count, bytes: bytes)
    if durable != nil { durable?.looked(through: first, sent: sentThrough) }
    sentThrough = end
  }

  func demand(through granted: UInt64) {
    let former = credit.granted
    guard credit.raise(to: granted) else { return }
    loopState.requested(from: former, to: granted)
    demandArrived()
    if topic.isPaced { loopState.readersMoved() }
    streams.makeReady(self)
  }

  /// The demand that it uses, which members of a pattern's subscription share.
  var demand: Credit { owner?.demand ?? credit }

  var isOwed: Bool {
    credit.available > 0 && nextOffset < epoch.log.head
  }

  var isBehind: Bool {
    nextOffset < epoch.log.head
  }

  func wait() { loopState.wait(self) }

  func noteDemandExhausted() {
    if starvedSince == nil { starvedSince = streams.loop.now }
  }

  /// Ends a wait for demand. Called when demand arrives or the subscription ends.
  func demandArrived() {
    guard let since = starvedSince.take() else { return }
    demandArrivedAt = streams.loop.now
    loopState.traffic.starved(since: since, until: streams.loop.now)
  }

  var endedCursor: EndedCursor? {
    durable.map { EndedCursor(topic: topic, $0, looked: nextOffset, sent: sentThrough) }
  }

  func release() {
    source.dropStored()
    demandArrived()
    leaveCursor(now: streams.loop.now)
    loopState.remove(self)
    place = .ended
  }

  func move(to place: SubscriberPlace) { self.place = place }

  func woken() {
    place = .none
    if let owner { owner.woken() } else { streams.makeReady(self) }
  }

  func storedRecordsArrived() {
    if case .none = place { woken() }
  }

  func pacingBegan() {
    if let owner { return owner.pacingBegan() }
    guard isShareable else { return }
    // While producers are paced, the demand of each single subscriber counts, so the mirror can't represent its readers.
    let message = "producers of topic \(topic.name) are paced now; subscribe again"
    streams.refuse(stream, Fault(code: .topicMoved, message: message))
  }

  var feedsMirror: Bool { isShareable }

  func floorChanged() {
    guard isShareable, !isOpening, epoch.number == epochNumber else { return }
    // The floor for the mirror's readers, which continue here when the mirror doesn't have their next records.
    let floor = epoch.floor(for: .returning)
    guard floor > toldFloor else { return }
    toldFloor = floor
    streams.send(Floor(floor: floor), stream: stream)
  }

  func topicGone(_ fault: Fault) {
    if let owner { owner.topicGone(fault) } else { streams.refuse(stream, fault) }
  }

  func epochContinued() {
    guard epoch.number != epochNumber else { return }
    if let owner { owner.epochContinued() } else { streams.refuse(stream, .epochContinued(topic.name)) }
  }

  var identity: String { streams.client.identity.name }
  var blockedSince: MonotonicTime? { streams.blockedSince }
  var obstacle: StreamObstacle? { streams.obstacle }

  func reconsider() throws(WireError) { try streams.client.require(.subscribe, on: topic.name) }

  var wantsProducers: Bool { tellsProducers }

  func producersChanged() {
    // If it waits, its loop state wakes it; if it is ready, it is served anyway.
    if tellsProducers, case .none = place { streams.makeReady(self) }
  }

  func report(to positions: inout ReaderPositions) {
    // Producers that continue in another epoch don't wait for subscriptions to this one. An ended epoch without a next one retains the records that its
    // subscriptions have yet to get.
    switch epoch.condition {
    case .open: break
    case .ended: guard topic.settings.scope == .forever else { return }
    case .superseded, .deleted: return
    }
    // While it reads the newest record of each key and isn't live, it doesn't need the log.
    let isCompacted = source.isCompacted
    var position = ReaderPosition(
      nextOffset: isCompacted && !isLive ? .max : nextOffset, available: demand.available, isLive: isLive)
    if isCompacted { position.readsNewestFrom = nextOffset }
    account.position = position
    positions.add(position)
  }

  func count(_ holds: [HoldLog.Hold], to now: MonotonicTime) {
    account.count(holds, to: now)
  }

  var standing: SubscriberStanding? {
    SubscriberStanding(
      nextOffset: nextOffset, available: demand.available,
      lag: epoch.lag(from: nextOffset, of: .attached), starvedSince: starvedSince)
  }

  func isHolding(open hold: HoldLog.Hold?) -> Bool {
    account.isHolding(open: hold, at: streams.loop.now)
  }

  func shown(open hold: HoldLog.Hold?) -> TopicInfo.Subscription? {
    let user = streams.user(of: stream)
    var info = TopicInfo.Subscription(
      connection: user.connection, client: user.client, stream: stream,
      state: isLive ? .live : .replaying, nextOffset: nextOffset, granted: demand.granted,
      sent: demand.spent, consumer: durable?.name ?? "", node: user.node)
    account.show(in: &info, open: hold, at: streams.loop.now)
    return info
  }

  func produce(into writes: WriteBatch, bytes: Int) -> DeliveryOutcome {
    let outcome = fill(writes, bytes: bytes)
    if durable != nil { placeMoved() }
    return outcome
  }

  @inline(never)
  private func placeMoved() {
    durable?.looked(through: nextOffset, sent: sentThrough)
    storePlace()
  }

  private func fill(_ writes: WriteBatch, bytes: Int) -> DeliveryOutcome {
    if isOpening { return .loading }
    if mayBeHeld, streams.topics.holdsUnsaved { return .waiting }
    if tellsProducers { announceProducers(writes) }
    if topic.isPaced { loopState.readersMoved() }
    let largest = streams.largestBatch
    var budget = bytes
    while true {
      // Checked before the head is read: if the epoch has ended, the head that is read afterwards is final.
      let isOver = epoch.condition != .open
      announceLive(writes)
      let demand = credit.available
      guard budget > 0 && writes.hasRoom || demand == 0 && !isFiltered else { return .more }
      // The LIVE frame stands exactly between replay and live records.
      let limit = isLive ? UInt64.max : liveOffset
      let position = nextOffset
      let step = source.next(
        demand: demand, before: limit, bytes: budget, largest: largest, hint: loopState.hint)
      // Checked after reading: records of an epoch with another number are only for subscribers that know that number.
      guard epoch.number == epochNumber else {
        source.move(to: position, hint: loopState.hint)
        return .waiting
      }
      switch step {
      case .run(let slice, let mark):
        if isFiltered, let matcher = source.matcher {
          if let outcome = send(slice, mark, wantedBy: matcher, writes, &budget) { return outcome }
          continue
        }
        guard unsafe slice.bytes.count <= largest else {
          return tooLong(slice.firstOffset, writes)
        }
        writes.append(slice, mark: mark, stream: stream)
        unsafe spend(
          UInt64(slice.count), bytes: slice.bytes.count, from: slice.firstOffset,
          through: slice.firstOffset + UInt64(slice.count))
        if writes.seeksBatch, isLive { seekBatch(in: slice, writes) }
        unsafe budget -= slice.bytes.count
        loader?.load(source.readAhead())
      case .copies(let copies, let passed):
        guard copies.count > 1 || copies.recordBytes <= largest else {
          return tooLong(copies.firstOffset, writes)
        }
        let before = writes.bytes
        writes.append(copies, stream: stream)
        spend(
          copies.count, bytes: copies.recordBytes, from: copies.firstOffset, through: copies.endOffset)
        writes.passed(passed)
        budget -= passed + writes.bytes - before
      case .passed(let passed):
        writes.passed(passed)
        budget -= passed
      case .demandExhausted: return demandExhausted()
      case .caughtUp: return isOver ? complete(writes) : .waiting
      case .lagged(let missed):
        guard tellLag(missed, writes) else { return .ended }
      case .loading(let request):
        loader?.load(request)
        return .loading
      }
    }
  }

  /// Sends the records of a run that match the filter. The others use no demand, so the cursor moves up to the next match even without demand. They count as
  /// work, so that a filter with few matches doesn't delay other subscriptions.
  ///
  /// - Returns: nil when the caller may continue.
  @inline(never)
  private func send(
    _ slice: LogSlice, _ mark: Int64?, wantedBy matcher: RecordMatcher, _ writes: WriteBatch,
    _ budget: inout Int
  ) -> DeliveryOutcome? {
    let largest = streams.largestBatch
    if let mark { time.current = mark }
    var runs = unsafe MatchingRuns(slice.bytes, matcher, time: time)
    var sent = 0
    var goesOn = true
    var tooLongOffset: UInt64?
    while goesOn, let run = runs.next(records: credit.available, bytes: largest) {
      let part = slice.part(run.bytes, firstRecord: run.firstRecord, count: run.count)
      guard run.bytes.count <= largest else {
        tooLongOffset = part.firstOffset
        break
      }
      writes.appendSmall(part, mark: run.mark, stream: stream)
      spend(
        UInt64(run.count), bytes: run.bytes.count, from: part.firstOffset,
        through: part.firstOffset + UInt64(run.count))
      sent += run.bytes.count
      goesOn = writes.hasRoom
    }
    time = runs.time
    unsafe source.stepBack(records: slice.count - runs.records, bytes: slice.bytes.count - runs.position)
    if let tooLongOffset { return tooLong(tooLongOffset, writes) }
    writes.passed(runs.position - sent)
    budget -= runs.position
    if credit.available > 0 { loader?.load(source.readAhead()) }
    return goesOn && !runs.isAtEnd ? demandExhausted() : nil
  }

  /// Ends the stream. The cursor stays before the record, for a client that accepts longer frames.
  private func tooLong(_ offset: UInt64, _ writes: WriteBatch) -> DeliveryOutcome {
    durable?.stop(at: offset)
    return tooLong(offset, of: topic.name, writes)
  }

  /// Called when there are records but no demand.
  private func demandExhausted() -> DeliveryOutcome {
    source.dropStoredIfCrowded()
    return .starved
  }

  /// Samples the latency of a batch, unless the batch had to wait for demand.
  @inline(never)
  private func seekBatch(in slice: LogSlice, _ writes: WriteBatch) {
    let end = slice.firstOffset + UInt64(slice.count)
    guard let start = topic.sampledBatch.take(slice.firstOffset..<end) else { return }
    if demandArrivedAt.map({ $0 <= start }) ?? true { writes.found(batchAppendedAt: start) }
  }

  /// Marks the end of the replay, once.
  @inline(__always)
  private func announceLive(_ writes: WriteBatch) {
    guard !isLive, nextOffset >= liveOffset else { return }
    isLive = true
    writes.append(Live(nextOffset: nextOffset), stream: stream)
  }

  @inline(never)
  private func announceProducers(_ writes: WriteBatch) {
    let count = topic.producerCount
    guard count != toldProducers else { return }
    toldProducers = count
    writes.append(Producers(count: count), stream: stream)
  }

  /// Returns whether the subscription continues.
  private func tellLag(_ missed: UInt64, _ writes: WriteBatch) -> Bool {
    loopState.traffic.missed(missed)
    guard lagPolicy ?? topic.settings.lag ?? .skip == .skip else {
      writes.append(
        Fault(
          code: .lagged,
          message:
            "\(missed) records of \(topic.name) were dropped before they were requested; subscribe again"),
        stream: stream)
      return false
    }
    writes.append(Lag(missed: missed, nextOffset: nextOffset), stream: stream)
    return true
  }

  /// Sends the topic's terminal event after all records were sent.
  func complete(_ writes: WriteBatch) -> DeliveryOutcome {
    // A deleted topic has no terminal event; `topicGone` ends the stream instead.
    guard let ending = epoch.ending else { return .waiting }
    writes.append(Complete(ending), stream: stream)
    owner?.completed()
    return .ended
  }
}

/// The owner of a subscription that shares its demand with others: a member of a pattern's subscription.
protocol SubscriptionOwner: AnyObject {
  var demand: Credit { get }

  /// Called when there may be more for the subscription.
  func woken()
  /// Called when the topic's producers become paced.
  func pacingBegan()
  func topicGone(_ fault: Fault)
  /// Called when the number of the topic's epoch has changed, which the subscriber doesn't know.
  func epochContinued()
  /// Called when the topic's terminal event was sent.
  func completed()
}
