import SluiceIO
import SluiceLog
import SluiceWire

/// One consumer's cursor into a topic, and its demand. Belongs to its connection's loop.
class Subscription: Consumer {
  let topic: Topic
  let epoch: TopicEpoch
  let loopState: TopicLoopState
  /// Nil for what the topic's settings say.
  private let lagPolicy: Subscribe.LagPolicy?
  /// Where replay ends and live begins.
  private let liveOffset: UInt64
  private(set) var isLive = false
  var cursor: LogCursor
  /// Nil unless late subscribers to the topic get the newest record of each key.
  var newest: CompactedReader?
  /// Nil unless the topic is durable.
  let storeReader: StoreReader?
  /// Nil when every record is wanted.
  private var filtered: FilteredReading?
  /// The offset behind the last record that was sent, or where it began.
  private var filteredThrough: UInt64
  /// Nil without a durable cursor.
  var durable: DurablePlace?
  /// Its durable cursor isn't on disk yet: nothing is sent before.
  var isOpening = false
  private let tellsProducers: Bool
  /// The number of producers that it was told last.
  private var toldProducers: UInt32?
  /// Where it stood at the end of the last turn in which its loopState reported, and how long that has limited producers.
  private var account: HoldAccount
  /// Since when there have been records for it, and no demand; nil while that isn't so.
  private var starvedSince: MonotonicTime?
  /// When it last got demand for records that were there.
  private var fedAt: MonotonicTime?

  init(
    stream: UInt32, loopState: TopicLoopState, epoch: TopicEpoch, connection: Connection, cursor: LogCursor,
    liveOffset: UInt64, lag: Subscribe.LagPolicy?, granted: UInt64, isResuming: Bool,
    matcher: RecordMatcher? = nil, wantsProducers: Bool = false
  ) {
    topic = loopState.topic
    self.epoch = epoch
    self.loopState = loopState
    account = HoldAccount(since: connection.context.loop.now)
    self.cursor = cursor
    self.liveOffset = liveOffset
    lagPolicy = lag
    tellsProducers = wantsProducers
    // Who goes on may have records that were deleted since; who begins has none.
    newest = epoch.newest.map {
      CompactedReader($0, before: liveOffset, deletionsFrom: isResuming ? cursor.nextOffset : liveOffset)
    }
    filtered = matcher.map { FilteredReading($0) }
    filteredThrough = cursor.nextOffset
    storeReader = StoreReader(loopState.topic, on: connection.context.loop)
    super.init(stream: stream, connection: connection, granted: granted)
    storeReader?.consumer = self
    attachedEpoch = epoch
  }

  /// Whether offsets may leave gaps that are no losses.
  var leavesGaps: Bool { newest != nil || filtered != nil }

  /// Records before that offset were sent, as far as they are wanted; those behind it weren't.
  var sentThrough: UInt64 { filtered == nil ? cursor.nextOffset : filteredThrough }

  /// Records up to that offset, and so many bytes of them, are about to be sent.
  func spend(_ count: UInt64, bytes: Int, through offset: UInt64) {
    _ = credit.spend(count)
    loopState.traffic.sent(count, bytes: bytes)
    filteredThrough = offset
  }

  override func raise(to granted: UInt64) -> Bool {
    let former = credit.granted
    guard super.raise(to: granted) else { return false }
    loopState.traffic.requested(from: former, to: granted)
    feed()
    if topic.isPaced { loopState.readersMoved() }
    return true
  }

  /// What it was granted and what it has used of that, also where others use it, too.
  var demand: Credit { credit }

  override var isOwed: Bool {
    credit.available > 0 && cursor.nextOffset < epoch.log.head
  }

  override var isBehind: Bool {
    cursor.nextOffset < epoch.log.head
  }

  override func wait() { loopState.wait(self) }

  override func starve() {
    if starvedSince == nil { starvedSince = connection.context.loop.now }
  }

  /// It has demand, or is over.
  func feed() {
    guard let since = starvedSince.take() else { return }
    fedAt = connection.context.loop.now
    loopState.traffic.starved(since: since, until: connection.context.loop.now)
  }

  override var endedCursor: EndedCursor? {
    durable.map { EndedCursor(topic: topic, ticket: $0.ticket, sentThrough: cursor.nextOffset) }
  }

  override func leave() {
    storeReader?.drop()
    feed()
    leaveCursor(now: connection.context.loop.now)
    loopState.remove(self)
  }

  override func reconsider() throws(WireError) { try connection.require(.subscribe, on: topic.name) }

  override var wantsProducers: Bool { tellsProducers }

  override func newsCame() {
    // What waits is woken by its loopState, and what is ready is asked anyway.
    if tellsProducers, case .none = place { connection.makeReady(self) }
  }

  override func report(to positions: inout ReaderPositions) {
    // Producers that go on in another epoch don't wait for subscriptions to this one. A epoch that has ended and that no other epoch follows keeps what
    // its subscriptions are owed.
    switch epoch.condition {
    case .open: break
    case .ended: guard topic.settings.scope == .forever else { return }
    case .superseded, .deleted: return
    }
    var position = ReaderPosition(nextOffset: needsLogFrom, available: demand.available, isLive: isLive)
    if readsNewest { position.readsNewestFrom = cursor.nextOffset }
    account.position = position
    positions.add(position)
  }

  override func count(_ holds: [HoldLog.Hold], to now: MonotonicTime) {
    account.count(holds, to: now)
  }

  override var standing: Standing? {
    let head = epoch.log.head
    return Standing(
      nextOffset: cursor.nextOffset, available: demand.available,
      lag: head > cursor.nextOffset ? head - cursor.nextOffset : 0, starvedSince: starvedSince)
  }

  override func isHolding(open hold: HoldLog.Hold?) -> Bool {
    account.isHolding(open: hold, at: connection.context.loop.now)
  }

  override func shown(open hold: HoldLog.Hold?) -> TopicInfo.Subscription? {
    var info = TopicInfo.Subscription(
      connection: connection.id, client: connection.clientName, stream: stream,
      state: isLive ? .live : .replaying, nextOffset: cursor.nextOffset, granted: demand.granted,
      sent: demand.spent)
    account.show(in: &info, open: hold, at: connection.context.loop.now)
    return info
  }

  override func produce(into writes: WriteBatch, bytes: Int) -> Outcome {
    if isOpening { return .loading }
    if tellsProducers { announceProducers(writes) }
    let log = epoch.log
    var budget = bytes
    if topic.isPaced { loopState.readersMoved() }
    if var reading = filtered.take() {
      defer { filtered = reading }
      return produce(by: &reading, into: writes, bytes: bytes)
    }
    while true {
      // Before the head is read: when this says that the topic is over, the head that is read next is final.
      let isOver = epoch.condition != .open
      if let outcome = produceNewest(into: writes, &budget) { return outcome }
      announceLive(writes)
      var wanted = credit.available
      if wanted == 0 {
        if cursor.nextOffset < log.head { return starved() }
        return isOver ? complete(writes) : .waiting
      }
      guard budget > 0, writes.hasRoom else { return .more }
      // The marker stands exactly between the two.
      if !isLive { wanted = min(wanted, liveOffset - cursor.nextOffset) }
      let largest = connection.largestBatch
      switch log.next(&cursor, records: wanted, bytes: min(budget, largest), hint: hint()) {
      case .slice(let slice):
        saw(slice.segment)
        let mark = cursor.pendingTimeMark.take()
        guard unsafe slice.bytes.count <= largest else { return tooLongForClient(slice.firstOffset, writes) }
        writes.append(slice, mark: mark, stream: stream)
        _ = credit.spend(UInt64(slice.count))
        unsafe loopState.traffic.sent(UInt64(slice.count), bytes: slice.bytes.count)
        if writes.seeksBatch, isLive { seekBatch(in: slice, writes) }
        unsafe budget -= slice.bytes.count
      case .caughtUp:
        return isOver ? complete(writes) : .waiting
      case .lagged(let missed):
        if readNewest(insteadOf: missed) { continue }
        if let outcome = readStored(insteadOf: missed, writes) {
          if case .more = outcome { continue }
          return outcome
        }
        guard tellLag(missed, writes) else { return .ended }
      }
    }
  }

  /// Looks for the batch whose way is measured, unless it had to wait for demand.
  @inline(never)
  private func seekBatch(in slice: LogSlice, _ writes: WriteBatch) {
    let end = slice.firstOffset + UInt64(slice.count)
    guard let start = topic.sampledBatch.take(slice.firstOffset..<end) else { return }
    if fedAt.map({ $0 <= start }) ?? true { writes.found(batchAppendedAt: start) }
  }

  /// Tells that replay ends here, if it does and that wasn't told.
  @inline(__always)
  func announceLive(_ writes: WriteBatch) {
    guard !isLive, cursor.nextOffset >= liveOffset else { return }
    isLive = true
    writes.append(Live(nextOffset: cursor.nextOffset), stream: stream)
  }

  @inline(never)
  private func announceProducers(_ writes: WriteBatch) {
    let count = topic.producerCount
    guard count != toldProducers else { return }
    toldProducers = count
    writes.append(Producers(count: count), stream: stream)
  }

  /// How many records may be sent before ``announceLive(_:)`` has its turn again.
  var recordsToLive: UInt64 { isLive ? .max : liveOffset - cursor.nextOffset }

  /// Returns whether the subscription goes on.
  func tellLag(_ missed: UInt64, _ writes: WriteBatch) -> Bool {
    loopState.traffic.missed(missed)
    guard lagPolicy ?? topic.settings.lag ?? .skip == .skip else {
      writes.append(
        Fault(
          code: .lagged,
          message:
            "\(missed) records of \(topic.name) were dropped before they were asked for; subscribe again"),
        stream: stream)
      return false
    }
    writes.append(Lag(missed: missed, nextOffset: cursor.nextOffset), stream: stream)
    return true
  }

  func tooLongForClient(_ offset: UInt64, _ writes: WriteBatch) -> Outcome {
    writes.append(
      Fault(
        code: .recordTooLarge,
        message: "the record at offset \(offset) of \(topic.name) is longer than the client's frames may be"),
      stream: stream)
    return .ended
  }

  /// All is sent, and the topic is over: says how it ended.
  func complete(_ writes: WriteBatch) -> Outcome {
    // A deleted topic has no ending; the connection hears of that by itself.
    guard let ending = epoch.ending else { return .waiting }
    writes.append(Complete(ending), stream: stream)
    return .ended
  }
}
