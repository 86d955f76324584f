import ReactiveCore
import SluiceWire
import Synchronization

/// A subscriber's subscription to a remote topic: demand becomes credit, DELIVER becomes values.
///
/// ```
///  subscriber ── request(n), cancel() ──►  total, flags  ── at the end of a turn ──►  DEMAND, CANCEL
///      ▲                                                                                   │
///      └──────── receive(_:) on the loop ◄── batch ◄── backlog (prefetch only) ◄── DELIVER ◄┘
/// ```
///
/// Requests and cancellation may come from any thread, also from within a delivery; they only set a flag and wake the loop, which does
/// everything else. So deliveries never nest, and no lock is held while the subscriber runs.
// @unchecked: `receiver` is guarded by `lock`; what is marked so is used on the loop only; the rest is atomic or constant.
@usableFromInline
final class RemoteSubscription: Subscription, CustomStringConvertible, @unchecked Sendable {
  enum Phase {
    /// The loop hasn't opened it yet.
    case idle
    case awaitingConnection
    /// It has a stream.
    case open
    /// The stream has ended; the backlog waits for demand.
    case draining
    /// The subscriber gets nothing more.
    case over
  }

  private enum Item {
    case records(DeliveredBatch)
    case mark(TopicMark)
    /// The end. Needs no demand, but is delivered after all earlier items.
    case completion(Subscribers.Completion<ClientError>)
  }

  /// How many events that wait for demand are searched for a topic's `matched` event.
  private static let lookBack = 64

  let plan: SubscriptionPlan
  let core: ClientCore

  // From any thread.
  /// A group member's settlements that weren't sent; nil unless the group's acknowledgement is explicit.
  private let settlements: Settlements?
  private let requested = RequestedTotal()
  /// Cancelled or completed: nothing more is delivered.
  @usableFromInline let isOver = Atomic<Bool>(false)
  /// Whether a `.demand` command is pending. True until the loop has opened the stream with the total requested so far.
  private let isLoopNotified = Atomic<Bool>(true)
  private let lock = Lock()
  private var receiver: Receiver?

  // On the loop only.
  private(set) var phase = Phase.idle
  private(set) var stream: UInt32 = 0
  /// The node that serves the stream; nil for the client's own broker.
  private(set) var node: DirectLink?
  /// Received and not yet requested. Empty unless the client prefetches, or marks used up demand.
  private var backlog = Queue<Item>()
  private var ledger = GrantLedger()
  private var position: SubscriptionPosition
  /// Nil without a durable cursor.
  private var cursor: CursorProgress?
  /// The stream for COMMIT, also after the topic's end; 0 for none.
  var commitStream: UInt32 = 0
  private var isCompleted = false
  /// The record that couldn't be decoded and ended the subscription: it isn't committed.
  private var undecodable = UInt64.max
  /// True while its grants or commits are due on the connection.
  var isDue = false
  /// For a group member: the delivery of the records on the stream, and of those being delivered to the subscriber.
  private var origin = DeliveredBatch.Origin()
  private(set) var delivering = DeliveredBatch.Origin()
  /// The broker has sent SUBSCRIBED on this stream.
  private var isSubscribed = false
  /// The broker has sent SUBSCRIBED on this stream or an earlier one.
  private(set) var wasSubscribed = false
  /// The delays while a limit of the broker refuses the subscription.
  var reopening = Reopening()
  /// The number of producers in the last event about it; nil before.
  private var lastProducers: Int?
  var move: Move?
  var doubts = DoubtfulOpenings()

  @usableFromInline
  init(_ plan: SubscriptionPlan, _ core: ClientCore, _ receiver: Receiver, wantsProducers: Bool = false) {
    self.plan = plan
    self.core = core
    self.receiver = receiver
    position = SubscriptionPosition(plan, wantsProducers: wantsProducers)
    settlements = plan.membership?.options.acknowledgement == .explicit ? Settlements() : nil
    if plan.cursor != nil, !plan.isPattern, plan.membership == nil { cursor = CursorProgress(self) }
  }

  // MARK: From any thread

  /// Opens the stream, unless the subscriber cancelled its subscription when it got it.
  @usableFromInline
  func start() {
    if !isCancelled { core.post(.open(.subscription(self))) }
  }

  @usableFromInline
  func request(_ demand: Subscribers.Demand) {
    precondition(demand > 0, "request(_:) must ask for at least one value")
    if isCancelled { return }
    requested.add(demand)
    notifyLoop()
  }

  /// Makes the loop check the requested total and the commits.
  func notifyLoop() {
    if !isLoopNotified.exchange(true, ordering: .acquiringAndReleasing) { core.post(.demand(self)) }
  }

  @usableFromInline
  func cancel() {
    // Bound to a name, so that the caller releases its contents after the lock.
    let receiver = stop()
    _ = consume receiver
  }

  /// Ends a delivery's subscription because of an error in it, and cancels the stream.
  @usableFromInline
  func abandon(_ error: ClientError) {
    undecodable = error.offset ?? .max
    stop()?.completion(.failure(error))
  }

  /// Cancels the stream, once. Returns the receiver, which gets nothing more from here.
  private func stop() -> Receiver? {
    guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return nil }
    let receiver = takeReceiver()
    core.post(.cancel(self))
    return receiver
  }

  /// Read for every value, so it must be inlined.
  @inlinable
  var isCancelled: Bool {
    @inline(__always) get { isOver.load(ordering: .acquiring) }
  }

  @usableFromInline var description: String { "RemoteTopic(\(plan.topic))" }

  private func takeReceiver() -> Receiver? {
    lock.withLock { receiver.take() }
  }

  private func currentReceiver() -> Receiver? {
    lock.withLock { receiver }
  }

  /// Settles records of a group member.
  func settle(_ run: Settlements.Run) {
    guard let settlements, !isCancelled, settlements.add(run) else { return }
    core.post(.settle(self))
  }

  // MARK: On the loop: the stream

  /// Notes that the loop has seen all requests so far.
  func demandNoted() {
    // An exchange like that in `notifyLoop`: the later of the two sees all changes made before the earlier.
    _ = isLoopNotified.exchange(false, ordering: .acquiringAndReleasing)
  }

  /// Returns the total that the broker may have sent on this stream, to be granted now.
  func nextGrant() -> UInt64 {
    ledger.grant(requested.value, plan.prefetch)
  }

  /// Returns the frames that continue at the subscription's position, with the remaining demand.
  func opening(frameSize: Int) -> (SubscriptionPosition.Opening, granted: UInt64) {
    demandNoted()
    ledger.streamBegins()
    origin.delivery = 1
    isSubscribed = false
    let granted = nextGrant()
    return (position.opening(granted: granted, frameSize: frameSize), granted)
  }

  func opened(on stream: UInt32, at node: DirectLink?) {
    self.stream = stream
    self.node = node
    phase = .open
    if cursor != nil { commitStream = stream }
    cursor?.streamBegins()
  }

  /// Handles a lost or missing connection. The backlog stays.
  func interrupted() {
    stream = 0
    node = nil
    commitStream = 0
    phase = .awaitingConnection
    isSubscribed = false
    settlements?.keep()
  }

  /// Handles that the topic has another epoch. Returns whether the subscription continues with its records.
  func startOver() -> Bool {
    guard !needsItsEpoch, position.startOver() else { return false }
    // Commits of earlier records have no effect.
    cursor?.startOver(self)
    return true
  }

  /// Whether records of another epoch would be mistaken for a continuation of those that the subscriber has.
  private var needsItsEpoch: Bool {
    plan.lag == nil && plan.start.isPosition && ledger.hasDelivered && currentReceiver()?.mark == nil
  }

  /// Clears the backlog, since the subscriber gets no more.
  func forget() {
    if phase == .draining { core.removeDraining(self) }
    if phase == .open { commitStream = 0 }
    phase = .over
    backlog.removeAll()
  }

  // MARK: On the loop: frames

  /// - Throws: if the broker doesn't continue at the subscription's position.
  func subscribed(_ frame: Subscribed) throws(WireError) {
    isSubscribed = true
    wasSubscribed = true
    move?.opened(at: core.loop.now)
    if plan.membership != nil { origin.epoch = frame.epoch }
    switch try position.subscribed(frame) {
    case .same: break
    case .restarted: receive(.restarted(nextOffset: frame.nextOffset))
    case .rewound(let end):
      cursor?.rewind(to: end, self)
      receive(.rewound(nextOffset: end))
    }
  }

  /// Applies a frame to the subscription's position, and delivers the resulting event, if any.
  func receive(event body: (inout SubscriptionPosition) throws(WireError) -> TopicMark?) throws(WireError) {
    receive(try body(&position))
  }

  /// Returns the reason why the subscription can't continue with the topic; nil if it can.
  func matched(_ frame: Matched) throws(WireError) -> ClientError? {
    switch try position.matched(frame) {
    case .success(let mark):
      receive(mark)
      return nil
    case .failure(let error): return error
    }
  }

  func selectTopic(_ number: UInt32) throws(WireError) {
    for mark in try position.selectTopic(number) { receive(mark) }
  }

  /// Handles that the next records are delivered to a group member for the `delivery`th time.
  func delivered(again delivery: UInt32) {
    origin.delivery = delivery
  }

  /// Delivers a batch as far as there is demand, and keeps the rest.
  ///
  /// - Throws: when the batch is malformed; none of it was delivered then.
  func receive(
    _ header: DeliverHeader, _ batch: UnsafeRawBufferPointer, reusing last: inout RecordBuffer?
  ) throws(WireError) {
    let lastMark = try unsafe DeliveredBatch.check(batch, count: header.count)
    let (topic, time) = try position.deliver(header, lastMark: lastMark)
    ledger.receive(records: header.count)
    if reopening.isRefused { reopening.taken(at: core.loop.now) }
    cursor?.received(through: header.firstOffset + UInt64(header.count))
    if isCancelled { return }
    let buffer = unsafe RecordBuffer.copy(batch, topic: topic, commits: commits, reusing: &last)
    var records = DeliveredBatch(
      buffer, count: Int(header.count), firstOffset: header.firstOffset, time: time, origin: origin)
    if backlog.isEmpty { deliver(&records) }
    guard records.count > 0, !isCancelled else { return }
    backlog.append(.records(records))
    // The delivered records may have brought demand for the others.
    drain()
  }

  private func receive(_ mark: TopicMark?) {
    guard let mark, !isCancelled else { return }
    if let notice = TopicNotice(mark, of: plan.topic) { core.notices.send(notice) }
    guard currentReceiver()?.mark != nil else { return }
    if case .topic(let name, .deleted) = mark, forgetMatch(of: name) { return }
    if case .mark(let last)? = backlog.last, let joined = last.joined(with: mark) {
      backlog.last = .mark(joined)
    } else {
      backlog.append(.mark(mark))
    }
    drain()
  }

  /// Removes the undelivered event that a pattern's topic has matched: no demand limits how many topics are created and deleted. Returns whether the topic's
  /// deletion then causes no event.
  private func forgetMatch(of topic: String) -> Bool {
    backlog.removeLast(among: Self.lookBack) { item in
      switch item {
      case .mark(.topic(topic, .matched)): true
      case .mark(.topic(topic, _)), .records, .completion: nil
      case .mark: false
      }
    }
  }

  /// The stream has ended.
  func receive(completion: Subscribers.Completion<ClientError>) {
    phase = .draining
    stream = 0
    commitStream = 0
    if isCancelled { return forget() }
    backlog.append(.completion(completion))
    drain()
    if phase == .draining { core.addDraining(self) }
  }

  /// Ends it without its backlog: the client is closed.
  func fail(_ error: ClientError) {
    backlog.removeAll()
    receive(completion: .failure(error))
  }

  // MARK: On the loop: delivery

  /// Delivers the backlog as far as there is demand.
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
        if case .producers(let count) = mark {
          // Several waiting counts have been merged into one, which may equal the previous one.
          guard count != lastProducers else { continue }
          lastProducers = count
        }
        ledger.deliverEvent()
        requested.add(receive(mark))
      case .completion(let completion):
        return complete(completion)
      }
    }
  }

  private var owed: Int { ledger.owed(requested.value) }

  private func deliver(_ records: inout DeliveredBatch) {
    guard let receiver = currentReceiver() else { return }
    let before = records.count
    delivering = records.origin
    requested.add(receiver.records(&records, owed, self))
    ledger.deliver(records: before - records.count)
    // The records' own commits, which may be those of an earlier epoch.
    if records.count < before, plan.cursor?.commit == .automatic {
      records.buffer.commits?.advance(to: min(records.offset, undecodable))
    }
  }

  private func complete(_ completion: Subscribers.Completion<ClientError>) {
    forget()
    guard !isOver.exchange(true, ordering: .acquiringAndReleasing) else { return }
    isCompleted = true
    takeReceiver()?.completion(completion)
  }

  // MARK: On the loop: commits and settlements

  /// The commits of the topic's current epoch; nil without a durable cursor.
  var commits: CursorCommits? { cursor?.commits }

  /// Returns the position to commit, if it has moved since the last one.
  func nextCommit() -> UInt64? {
    // Before SUBSCRIBED it isn't known to which epoch the offsets belong.
    commitStream != 0 && isSubscribed ? cursor?.next() : nil
  }

  /// Whether nothing more will be committed.
  var isDoneCommitting: Bool {
    cursor?.isComplete ?? true || phase == .over && (plan.cursor?.commit != .manual || !isCompleted)
  }

  /// Returns the settlements to send now, on this stream.
  func takeSettlements() -> [Settlements.Run] {
    guard let settlements else { return [] }
    guard isSubscribed, phase == .open else {
      settlements.keep()
      return []
    }
    return settlements.take(of: origin.epoch)
  }
}
