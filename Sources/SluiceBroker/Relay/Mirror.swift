import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire
import Synchronization

/// The newest records of one topic of another node, read once for all subscribers of this node that read at the topic's head.
///
/// ```
///  owner ── NodeLink ──► Mirror: TopicLog ──► RelayedSubscription, on any loop
///    ▲                      │
///    └── as far as the first reader, and a window more
/// ```
///
/// A reader that needs records which the mirror has dropped returns to a subscription of its own at the owner. So do all readers when the owner has dropped
/// records before they were sent. A trim at the owner also drops the mirror's records.
// @unchecked: `number`, `passed`, `received`, `window`, `batches`, `floor` and `named` belong to `loop`.
final class Mirror: LinkedStream, @unchecked Sendable {
  /// The size of the log in bytes, for readers with a backlog.
  private static let memory: UInt64 = 4 << 20

  private struct State {
    var isOpen = false
    /// The reason why the mirror has ended; nil before, and if it ended with the topic's terminal event.
    var fault: Fault?
    var seats: [MirrorSeat] = []
    /// Initially 1 for the subscription that has created the mirror, until that has joined.
    var readers = 1
    var names = MirrorNames()
    /// Set without readers, or after an error: no reader may join any more.
    var isClosed = false
  }

  let topic: String
  let node: RemoteNode
  let epoch: TopicEpoch
  private let table: MirrorTable
  private let link: NodeLink
  private let loop: any EventLoop
  private var number: UInt32?
  /// The demand that was sent to the owner, and the number of records that the owner has sent.
  private var passed: UInt64 = 0
  private var received: UInt64 = 0
  private var window = DemandWindow(target: 1 << 20, most: 65_536)
  private var batches = MirrorBatches()
  /// The owner's floor: readers get no records before it.
  private var floor: UInt64 = 0
  private let state = Mutex(State())
  /// The client whose name the owner shows for the subscription.
  private var named: Origin
  private let isNaming = Atomic(false)
  /// The position of the first reader, and the position at which more demand is sent to the owner.
  private let first: Atomic<UInt64>
  private let threshold = Atomic(UInt64.max)

  /// - Parameters:
  ///   - offset: the offset of the first record.
  ///   - client: the client whose subscription creates the mirror.
  init(
    of topic: String, epoch: UInt64, from offset: UInt64, for client: Origin, over link: NodeLink,
    on loop: any EventLoop, pool: SegmentPool, in table: MirrorTable
  ) {
    self.topic = topic
    named = client
    self.link = link
    self.loop = loop
    self.table = table
    node = link.node
    first = Atomic(offset)
    self.epoch = TopicEpoch(
      number: epoch,
      log: TopicLog(retention: Retention(bytes: Self.memory), pool: pool, firstOffset: offset))
  }

  var log: TopicLog { epoch.log }

  /// Subscribes at the owner. On its loop.
  ///
  /// - Returns: false when the link has no room.
  func begin() -> Bool {
    number = link.open(self)
    guard let number else { return false }
    passed = window.records
    link.send(named, stream: number)
    link.send(
      Subscribe(
        topic: topic, start: .offset(log.head), lag: .skip, ifMissing: .fail, epoch: epoch.number,
        grantedThrough: passed), stream: number)
    return true
  }

  // MARK: Readers, from any thread

  /// Adds a reader whose next record has the offset `offset`.
  ///
  /// - Returns: the seat at which it waits for records; nil when the mirror doesn't have the records from that offset on.
  func join(
    at offset: UInt64, _ node: RemoteNode, epoch: UInt64, for client: Origin, on loop: any EventLoop
  ) -> MirrorSeat? {
    guard node == self.node, epoch == self.epoch.number, offset >= log.oldestOffset else { return nil }
    let seat: MirrorSeat? = state.withLock { state in
      guard state.isOpen, !state.isClosed else { return nil }
      state.readers += 1
      state.names.add(client)
      if let seat = state.seats.first(where: { $0.loop === loop }) { return seat }
      let seat = MirrorSeat(on: loop)
      state.seats.append(seat)
      return seat
    }
    // The reader may be ahead of the records received here.
    if seat != nil {
      advanced(to: offset)
      nameSoon()
    }
    return seat
  }

  /// Removes a reader. Without readers, the subscription at the owner is cancelled.
  ///
  /// - Parameter client: the client for which the reader has joined; nil for the subscription that has created the mirror.
  func leave(_ client: Origin?) {
    let isLast = state.withLock { state in
      if let client { state.names.remove(client) }
      state.readers -= 1
      guard state.readers == 0, !state.isClosed else { return false }
      state.isClosed = true
      return true
    }
    guard isLast else { return nameSoon() }
    table.remove(self)
    loop.execute { [self] in leaveOwner() }
  }

  /// Called when a reader has reached `offset`.
  func advanced(to offset: UInt64) {
    guard offset > first.load(ordering: .relaxed) else { return }
    first.max(offset, ordering: .sequentiallyConsistent)
    guard offset >= threshold.load(ordering: .sequentiallyConsistent) else { return }
    threshold.store(.max, ordering: .sequentiallyConsistent)
    if loop.isCurrent { passDemand() } else { loop.execute { [self] in passDemand() } }
  }

  /// The reason why the mirror has ended; nil before, and if it ended with the topic's terminal event.
  var fault: Fault? { state.withLock { $0.fault } }

  /// Whether the owner still sends records and its floor.
  var isFed: Bool { fault == nil && epoch.condition == .open }

  // MARK: The owner, on its loop

  /// Sends the name of a reader's client to the owner soon, if it has changed.
  private func nameSoon() {
    guard !isNaming.exchange(true, ordering: .acquiringAndReleasing) else { return }
    loop.execute { [self] in
      isNaming.store(false, ordering: .sequentiallyConsistent)
      guard let number, let name = state.withLock({ $0.names.origin(of: named.node) }), name != named else {
        return
      }
      named = name
      link.send(name, stream: number)
    }
  }

  private func passDemand() {
    guard let number else { return }
    let (head, ahead) = (log.head, window.records)
    var first = first.load(ordering: .sequentiallyConsistent)
    while true {
      let next = first + max(ahead / 4, 1)
      threshold.store(next, ordering: .sequentiallyConsistent)
      // A reader that has advanced meanwhile hasn't seen the new threshold.
      first = self.first.load(ordering: .sequentiallyConsistent)
      if first < next { break }
    }
    let through = received + (first + ahead > head ? first + ahead - head : 0)
    guard through > passed else { return }
    passed = through
    link.send(Demand(grantedThrough: through), stream: number)
  }

  func receive(_ type: FrameType, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool {
    switch type {
    case .subscribed:
      let frame = try unsafe Subscribed(body: body)
      guard frame.epoch == epoch.number, frame.isShareable else {
        leaveOwner()
        fail(.topicMoved(topic))
        return false
      }
      // A LAG with the number of missing records follows.
      log.skip(to: frame.nextOffset)
      first.max(log.head, ordering: .sequentiallyConsistent)
      passDemand()
      state.withLock { $0.isOpen = true }
      table.opened(self)
    case .deliver: try unsafe deliver(body)
    case .live, .producers: return false
    case .lag:
      log.skip(to: try unsafe Lag(body: body).nextOffset)
      first.max(log.head, ordering: .sequentiallyConsistent)
      passDemand()
    case .floor:
      floor = max(floor, try unsafe Floor(body: body).floor)
      log.trim(to: floor)
    case .complete:
      let ending = try unsafe Complete(body: body).ending
      number = nil
      epoch.end(ending)
      table.remove(self)
      wake()
      return true
    case .error:
      lost(try unsafe Fault(relayed: body))
      return true
    default: throw WireError(.unexpectedFrame, "\(type) came on a subscription of topic \(topic)")
    }
    wake()
    return false
  }

  private func deliver(_ body: UnsafeRawBufferPointer) throws(WireError) {
    let (header, batch) = unsafe try DeliverHeader.decode(body)
    let count = UInt64(header.count)
    guard count <= passed - received else {
      throw WireError(
        .demandExceeded,
        "\(count) records of topic \(topic) came, but only \(passed - received) more were requested"
      )
    }
    guard header.firstOffset == log.head else {
      throw WireError(
        .malformedBatch,
        "offset \(header.firstOffset) of topic \(topic) came where \(log.head) was next")
    }
    received += count
    window.received(count, bytes: batch.count)
    try unsafe batches.append(batch, count: header.count, to: log)
    if header.firstOffset < floor { log.trim(to: floor) }
  }

  func leaveOwner() {
    if let number = number.take() { link.cancel(number) }
  }

  func lost(_ fault: Fault) {
    number = nil
    fail(fault)
  }

  private func fail(_ fault: Fault) {
    table.remove(self)
    state.withLock { state in
      state.isClosed = true
      state.fault = state.fault ?? fault
    }
    wake()
  }

  private func wake() {
    let seats = state.withLock { $0.seats }
    for seat in seats { seat.wake() }
  }
}

/// The readers of a ``Mirror`` on one loop that have read all its records.
// @unchecked: `waiting` belongs to `loop`.
final class MirrorSeat: @unchecked Sendable {
  let loop: any EventLoop
  private let isWoken = Atomic(false)
  private var waiting: [RelayedSubscription] = []

  init(on loop: any EventLoop) { self.loop = loop }

  /// Wakes the waiting readers. From any thread.
  func wake() {
    if loop.isCurrent { return woken() }
    if !isWoken.exchange(true, ordering: .acquiringAndReleasing) { loop.execute { [self] in woken() } }
  }

  private func woken() {
    isWoken.store(false, ordering: .sequentiallyConsistent)
    let readers = waiting
    waiting.removeAll(keepingCapacity: true)
    for reader in readers { reader.woken() }
  }

  /// Adds a reader that is woken by the next change. On the loop.
  func wait(_ reader: RelayedSubscription) {
    reader.waitIndex = waiting.count
    waiting.append(reader)
  }

  /// Removes a reader that no longer waits. On the loop.
  func remove(_ reader: RelayedSubscription, at index: Int) {
    waiting.removeUnordered(at: index)?.waitIndex = index
  }
}
