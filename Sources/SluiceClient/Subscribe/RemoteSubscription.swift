import ReactiveCore
import SluiceWire
import Synchronization

/// Between one subscriber and one remote subscription: demand becomes credit, DELIVER becomes values.
///
/// ```
///  subscriber ── request(n), cancel() ──►  total, flags  ── at the end of a turn ──►  DEMAND, CANCEL
///      ▲                                                                                   │
///      └──────── receive(_:) on the loop ◄── batch ◄── backlog (prefetch only) ◄── DELIVER ◄┘
/// ```
///
/// Requests and cancellation may come from any thread, also from within a delivery; they only leave a note and wake the loop, where
/// everything else happens. So deliveries never nest, and no lock is held while the subscriber runs.
// @unchecked: `receiver` is guarded by `lock`; what is marked so is used on the loop only; the rest is atomic or constant.
@usableFromInline
final class RemoteSubscription: Subscription, CustomStringConvertible, @unchecked Sendable {
  enum Phase {
    /// Not known to the loop yet.
    case idle
    /// Waiting for a connection.
    case parked
    /// On a stream.
    case open
    /// The stream is over; what it brought may still wait for demand.
    case drained
    /// Nothing more will be said to the subscriber.
    case over
  }

  private enum Item {
    case records(DeliveredBatch)
    case mark(TopicMark)
    /// The end. Needs no demand, but waits for what is before it.
    case completion(Subscribers.Completion<ClientError>)
  }

  let plan: SubscriptionPlan
  let core: ClientCore

  // From any thread.
  /// What a member of a group has said of its records; nil for whoever has nothing to say.
  let settlements: Settlements?
  private let requested = RequestedTotal()
  /// Cancelled or completed: nothing more is delivered.
  @usableFromInline let isOver = Atomic<Bool>(false)
  /// The loop knows that there is something to look at. True until it has opened the stream, which it does with all that was requested.
  private let isNoted = Atomic<Bool>(true)
  private let lock = Guard()
  private var receiver: Receiver?

  // On the loop only.
  private(set) var phase = Phase.idle
  private(set) var stream: UInt32 = 0
  /// What was received and not asked for yet. Empty unless the client prefetches, or marks used up demand.
  private var backlog = Queue<Item>()
  /// Values handed over: records, and marks where they are wanted.
  private var delivered: UInt64 = 0
  private var marks: UInt64 = 0
  private var granted: UInt64 = 0
  /// Records received, on all streams, and before the present one: what its grants don't count.
  private var received: UInt64 = 0
  private var receivedBefore: UInt64 = 0
  /// Where it is; if it is a pattern's, in each topic.
  private var place: ResumePoint
  private var places: PatternPlaces?
  /// Of the stream's last time mark.
  private var time: Int64 = 0
  /// What its durable cursor is to be told, in the topic's present life; nil without one.
  private(set) var commits: CursorCommits?
  /// Of the life that the present one continues, and up to where: its records may still be committed.
  private var earlier: (commits: CursorCommits, end: UInt64)?
  /// What it was told, on this stream.
  private var committed: UInt64 = 0
  /// The offset behind the last record that was received.
  private var recordsEnd: UInt64 = 0
  private var isCompleted = false
  /// The record that couldn't be decoded, and ended the subscription: it isn't dealt with.
  private var refused = UInt64.max
  /// Where COMMIT goes: the stream, also when the topic has ended on it and the client gives the number to nobody else; 0 while there is none.
  private(set) var commitStream: UInt32 = 0
  /// While it waits for a connection.
  var parking: UInt64?
  /// True while it stands among those whose grants are due.
  var isDue = false
  /// Of a member of a group: what is told of the records that come on the stream, and of those being handed over.
  private var origin = DeliveredBatch.Origin()
  private(set) var handing = DeliveredBatch.Origin()
  /// The broker has answered on this stream.
  private var isJoined = false
  /// How many producers the subscriber knows of; nil before it was told.
  private var knownProducers: UInt32?
  /// Whether the broker is asked how many producers there are.
  private let wantsProducers: Bool

  @usableFromInline
  init(_ plan: SubscriptionPlan, _ core: ClientCore, _ receiver: Receiver, wantsProducers: Bool = false) {
    self.plan = plan
    self.core = core
    self.receiver = receiver
    self.wantsProducers = wantsProducers
    place = ResumePoint(plan)
    if plan.isPattern, plan.membership == nil { places = PatternPlaces(plan) }
    settlements = plan.membership?.options.acknowledgement == .explicit ? Settlements() : nil
    if plan.cursor != nil, !plan.isPattern, plan.membership == nil { commits = CursorCommits(self) }
  }

  // MARK: From any thread

  /// The subscriber knows its subscription: opens the stream, unless it was cancelled at once.
  @usableFromInline
  func start() {
    if !isCancelled { core.post(.open(self)) }
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    precondition(demand > 0, "request(_:) must ask for at least one value")
    if isCancelled { return }
    requested.add(demand)
    if !isNoted.exchange(true, ordering: .acquiringAndReleasing) { core.post(.demand(self)) }
  }

  @usableFromInline
  func cancel() {
    guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
    // Bound to a name: what it holds is the caller's, and is released after the lock.
    let receiver = takeReceiver()
    core.post(.cancel(self))
    _ = consume receiver
  }

  /// The subscriber has dealt with records, as it says itself.
  func commitNoted() {
    if !isNoted.exchange(true, ordering: .acquiringAndReleasing) { core.post(.demand(self)) }
  }

  /// Asked for every value, so it must not cost a call.
  @inlinable
  var isCancelled: Bool {
    @inline(__always) get { isOver.load(ordering: .acquiring) }
  }

  @usableFromInline var description: String { "RemoteTopic(\(plan.topic))" }

  private func takeReceiver() -> Receiver? {
    lock.locked {
      defer { receiver = nil }
      return receiver
    }
  }

  private func currentReceiver() -> Receiver? {
    lock.locked { receiver }
  }

  // MARK: On the loop: demand

  /// Takes note of all that was requested so far.
  func demandNoted() {
    // An exchange like that in `request`: whichever comes second knows what happened before the first.
    _ = isNoted.exchange(false, ordering: .acquiringAndReleasing)
  }

  /// How many records the broker may have sent in all on this stream, to be told it now.
  ///
  /// Marks are the client's own affair: the broker doesn't count them, so what they took of the demand is kept back here.
  func nextGrant() -> UInt64 {
    let total = totalGrant()
    return total == Credit.unlimited ? total : total - receivedBefore
  }

  private func totalGrant() -> UInt64 {
    let requested = requested.value
    if requested == RequestedTotal.unlimited { return Credit.unlimited }
    granted = max(granted, requested > marks ? requested - marks : 0)
    if case .keepFull(let count) = plan.prefetch {
      let full = delivered - marks + UInt64(max(count, 0))
      // In halves, so that not every record costs a grant.
      if full >= granted + UInt64(max(count / 2, 1)) { granted = full }
    }
    return granted
  }

  /// Values that may be handed over now.
  private var owed: Int {
    let requested = requested.value
    if requested == RequestedTotal.unlimited { return .max }
    return Int(requested - delivered)
  }

  // MARK: On the loop: the stream

  /// The frame that opens a stream.
  enum Opening {
    case subscribe(Subscribe)
    case join(JoinGroup)
  }

  /// The frame that goes on where it is, and the demand that is left, with which it does so.
  func opening() -> (frame: Opening, granted: UInt64) {
    demandNoted()
    receivedBefore = received
    origin.delivery = 1
    isJoined = false
    let granted = nextGrant()
    guard let membership = plan.membership else {
      var frame = place.subscribe(granted: granted)
      frame.wantsProducers = wantsProducers
      return (.subscribe(frame), granted)
    }
    return (.join(membership.join(plan, granted: granted)), granted)
  }

  /// The same for a pattern.
  func openingPattern(frameSize: Int) -> (SubscribePattern, [Positions])? {
    guard places != nil else { return nil }
    demandNoted()
    receivedBefore = received
    return places?.open(granted: nextGrant(), frameSize: frameSize)
  }

  func opened(on stream: UInt32) {
    self.stream = stream
    phase = .open
    if commits != nil { commitStream = stream }
    committed = 0
  }

  /// The connection is lost, or not there yet. What was received stays.
  func interrupted() {
    stream = 0
    commitStream = 0
    phase = .parked
    isJoined = false
    settlements?.keep()
  }

  /// - Throws: when that isn't where it can go on.
  func subscribed(_ frame: Subscribed) throws(WireError) {
    isJoined = true
    if plan.membership != nil {
      // The group knows where it is.
      origin.epoch = frame.epoch
      return
    }
    guard places == nil else { return }
    switch try place.subscribed(frame) {
    case .known: break
    case .another: receive(.restarted(nextOffset: frame.nextOffset))
    case .rewound(let end):
      rewind(to: end)
      receive(.rewound(nextOffset: end))
    }
  }

  /// What came from that offset on isn't in the topic any more, and mustn't be committed: others will have these offsets.
  private func rewind(to end: UInt64) {
    recordsEnd = min(recordsEnd, end)
    guard let commits else { return }
    let next = CursorCommits(self)
    next.advance(to: min(max(commits.value, earlierCommit), end))
    earlier = (commits, end)
    self.commits = next
  }

  private var earlierCommit: UInt64 { earlier.map { min($0.commits.value, $0.end) } ?? 0 }

  /// The topic is in another life. Returns whether the subscription goes on with what is there.
  func startOver() -> Bool {
    guard plan.lag != .fail, place.isKnown else { return false }
    place.startOver()
    // The records that the subscriber still has mean nothing in the new life.
    if commits != nil { commits = CursorCommits(self) }
    earlier = nil
    recordsEnd = 0
    return true
  }

  func live(_ frame: Live) {
    if places != nil {
      if let mark = places?.live(frame) { receive(mark) }
      return
    }
    // It was live before the connection was lost.
    if place.live(at: frame.nextOffset) { receive(.live(nextOffset: frame.nextOffset)) }
  }

  func producers(_ count: UInt32) {
    defer { knownProducers = count }
    // A subscriber expects a producer until an event says otherwise.
    guard count != knownProducers, count == 0 || knownProducers != nil else { return }
    receive(.producers(Int(count)))
  }

  func lagged(_ frame: Lag) throws(WireError) {
    if let mark = try places?.lagged(frame) { return receive(mark) }
    place.advance(to: frame.nextOffset)
    receive(.lagged(missed: frame.missed, nextOffset: frame.nextOffset))
  }

  /// The stream's number isn't this subscription's any more.
  private func left() {
    phase = .drained
    stream = 0
    commitStream = 0
  }

  /// Cancelled by its subscriber: nothing is left to do but to forget.
  func forget() {
    if phase == .drained { core.remove(lingering: self) }
    if phase == .open { commitStream = 0 }
    phase = .over
    backlog.removeAll()
  }

  /// Hands a batch over, as far as there is demand.
  ///
  /// - Throws: when the batch isn't what it says; nothing of it was handed over then.
  func receive(
    _ header: DeliverHeader, _ batch: UnsafeRawBufferPointer, reusing last: inout RecordBuffer?
  ) throws(WireError) {
    let lastTime = try unsafe DeliveredBatch.check(batch, count: header.count)
    var topic = plan.topic
    if places == nil {
      place.advance(to: header.firstOffset + UInt64(header.count))
    } else if let of = try places?.deliver(header, lastMark: lastTime) {
      (topic, time) = of
    }
    defer { time = lastTime ?? time }
    received += UInt64(header.count)
    recordsEnd = header.firstOffset + UInt64(header.count)
    if isCancelled { return }
    let buffer = unsafe RecordBuffer.copy(batch, topic: topic, commits: commits, reusing: &last)
    var records = DeliveredBatch(
      buffer, count: Int(header.count), firstOffset: header.firstOffset, time: time, origin: origin)
    if backlog.isEmpty { deliver(&records) }
    guard records.count > 0, !isCancelled else { return }
    backlog.append(.records(records))
    // The first of them may have brought demand for the others.
    drain()
  }

  /// A topic belongs to the pattern. Returns why the subscription can't go on with it.
  func matched(_ frame: Matched) throws(WireError) -> ClientError? {
    switch try places?.matched(frame) {
    case .news(let news): receive(.topic(frame.topic, news))
    case .restarted(let next):
      guard plan.lag != .fail else {
        return ClientError(
          .epochChanged,
          "topic \(frame.topic) was started anew; subscribe again to get what is there now",
          topic: frame.topic)
      }
      receive(.topic(frame.topic, .restarted(nextOffset: next)))
    case .rewound(let next): receive(.topic(frame.topic, .rewound(nextOffset: next)))
    case .known, nil: break
    }
    return nil
  }

  /// A topic of the pattern was deleted.
  func unmatched(_ number: UInt32) throws(WireError) {
    if let topic = try places?.unmatched(number) { receive(.topic(topic, .deleted)) }
  }

  /// What comes next is about the topic with this number.
  func turn(to number: UInt32) throws(WireError) {
    for topic in try places?.turn(to: number) ?? [] { receive(.topic(topic, .deleted)) }
  }

  /// A topic of the pattern has ended.
  func topicEnded(_ ending: Complete.Ending) throws(WireError) {
    guard let topic = try places?.completed() else { return }
    switch ending {
    case .finished: receive(.topic(topic, .finished))
    case .failure(let code, let message):
      receive(.topic(topic, .failed(ClientError(failureOf: topic, code: code, message: message))))
    }
  }

  private func receive(_ mark: TopicMark) {
    guard !isCancelled, currentReceiver()?.mark != nil else { return }
    backlog.append(.mark(mark))
    drain()
  }

  func receive(completion: Subscribers.Completion<ClientError>) {
    left()
    if isCancelled { return forget() }
    backlog.append(.completion(completion))
    drain()
    if phase == .drained { core.add(lingering: self) }
  }

  /// Ends it at once, whatever it still has: the client is closed.
  func fail(_ error: ClientError) {
    backlog.removeAll()
    receive(completion: .failure(error))
  }

  /// Hands over what waits, as far as there is demand.
  func drain() {
    while let item = backlog.first, !isCancelled {
      switch item {
      case .records(var records):
        guard owed > 0 else { return }
        deliver(&records)
        if records.count > 0 { backlog.first = .records(records) } else { backlog.removeFirst() }
      case .mark(let mark):
        guard owed > 0, let receive = currentReceiver()?.mark else { return }
        backlog.removeFirst()
        delivered += 1
        marks += 1
        requested.add(receive(mark))
      case .completion(let completion):
        return complete(completion)
      }
    }
  }

  private func deliver(_ records: inout DeliveredBatch) {
    guard let receiver = currentReceiver() else { return }
    let before = records.count
    handing = records.origin
    requested.add(receiver.records(&records, owed, self))
    delivered += UInt64(before - records.count)
    // By the records' own: they may be of a life that is over.
    if records.count < before, plan.cursor?.commit == .automatic {
      records.buffer.commits?.advance(to: min(records.offset, refused))
    }
  }

  // MARK: On the loop: commits

  /// How far the durable cursor is to be told that the subscriber has come, if that is further than it was told.
  func nextCommit() -> UInt64? {
    // Before the broker has answered it isn't known which records the offsets mean.
    guard commitStream != 0, isJoined, let commits else { return nil }
    // Nobody can have dealt with more.
    let offset = min(max(commits.value, earlierCommit), recordsEnd)
    guard offset > committed else { return nil }
    committed = offset
    return offset
  }

  /// The topic has ended, and COMMIT may still be sent on that stream; 0 when it mayn't any more.
  func commitLate(on stream: UInt32) {
    commitStream = stream
  }

  /// Whether nothing more is to be committed, or by nobody.
  var isDoneCommitting: Bool {
    committed >= recordsEnd || phase == .over && (plan.cursor?.commit != .manual || !isCompleted)
  }

  /// Ends it from within a delivery, by the subscriber's own side: the broker is told to forget it.
  @usableFromInline
  func abandon(_ error: ClientError) {
    refused = error.offset ?? .max
    guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
    let receiver = takeReceiver()
    core.post(.cancel(self))
    receiver?.completion(.failure(error))
  }

  // MARK: Groups

  /// A member says something of a record. From any thread.
  func settle(_ run: Settlements.Run) {
    guard let settlements, !isCancelled, settlements.add(run) else { return }
    core.post(.settle(self))
  }

  /// Records come for another time than before. On the loop.
  func delivered(again delivery: UInt32) {
    origin.delivery = delivery
  }

  /// What is to be told now, on this stream. On the loop.
  func takeSettlements() -> [Settlements.Run] {
    guard let settlements else { return [] }
    guard isJoined, phase == .open else {
      settlements.keep()
      return []
    }
    return settlements.take(of: origin.epoch)
  }

  private func complete(_ completion: Subscribers.Completion<ClientError>) {
    forget()
    guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
    isCompleted = true
    takeReceiver()?.completion(completion)
  }
}
