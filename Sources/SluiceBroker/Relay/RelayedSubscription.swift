import SluiceSession
import SluiceTopics
import SluiceWire

/// A subscription, or member of a group, of a topic that another node serves. Belongs to its connection's loop.
///
/// The owner's frames wait here for the subscriber's socket, in their order, with another stream number and their bytes as they came. Of the
/// subscriber's demand the owner gets a ``DemandWindow`` at a time.
final class RelayedSubscription: SubscriberStream, LinkedStream {
  let topic: String
  let stream: UInt32
  private(set) var place = SubscriberPlace.none
  private(set) var credit: Credit
  private unowned let streams: StreamMultiplexer
  private let link: NodeLink
  /// Nil when the stream is over at the owner.
  private var number: UInt32?
  private let isMember: Bool
  /// Commits may follow the topic's end.
  private let commits: Bool
  /// The number that is kept for them.
  private var keptNumber: UInt32?

  private var window = DemandWindow()
  /// The demand that the owner was told, and the records that it has sent.
  private var passed: UInt64
  private var received: UInt64 = 0
  private var waiting = RelayedFrames()
  private var isOver = false

  init(
    _ stream: UInt32, topic: String, granted: UInt64, isMember: Bool, commits: Bool, link: NodeLink,
    on streams: StreamMultiplexer
  ) {
    self.stream = stream
    self.topic = topic
    self.isMember = isMember
    self.commits = commits
    self.link = link
    self.streams = streams
    credit = Credit(granted: granted)
    passed = min(granted, DemandWindow.first)
  }

  /// Opens it at the owner, with the first of its demand.
  func begin(_ frame: Subscribe) {
    var frame = frame
    frame.grantedThrough = passed
    open(frame)
  }

  func begin(_ frame: JoinGroup) {
    var frame = frame
    frame.grantedThrough = passed
    open(frame)
  }

  private func open(_ frame: some Frame) {
    number = link.open(self)
    if let number { link.send(frame, stream: number) }
  }

  func move(to place: SubscriberPlace) { self.place = place }

  // MARK: The subscriber

  func demand(through granted: UInt64) {
    if credit.raise(to: granted) { passDemand() }
  }

  private func passDemand() {
    guard let number, !isOver,
      let through = window.next(granted: credit.granted, written: credit.spent, passed: passed)
    else { return }
    passed = through
    link.send(Demand(grantedThrough: through), stream: number)
  }

  func commit(through offset: UInt64) throws(WireError) {
    guard commits else { throw DurablePlace.isMissing }
    if let number { link.send(Commit(nextOffset: offset), stream: number) }
  }

  func settle(_ frame: Settle) throws(WireError) {
    guard isMember else {
      throw WireError(.unsupported, "SETTLE is for members of a group; this subscription isn't one")
    }
    if let number { link.send(frame, stream: number) }
  }

  func reconsider() throws(WireError) {
    try streams.client.require(isMember ? .joinGroup : .subscribe, on: topic)
  }

  func release() {
    leaveOwner()
    waiting = RelayedFrames()
    place = .ended
  }

  /// Bytes that wait for the subscriber's socket.
  var waitingBytes: Int { waiting.bytes }

  var isOwed: Bool { !waiting.isEmpty }
  var isBehind: Bool { !waiting.isEmpty }

  func produce(into writes: WriteBatch, bytes: Int) -> DeliveryOutcome {
    let start = writes.bytes
    while writes.bytes - start < bytes, writes.hasRoom, let records = waiting.moveFirst(to: writes) {
      _ = credit.spend(records)
    }
    passDemand()
    guard waiting.isEmpty else { return .more }
    return isOver ? .ended : .waiting
  }

  func successor(on streams: StreamMultiplexer) -> (any ServerStream)? {
    keptNumber.take().map { RelayedCommits($0, topic: topic, link: link, on: streams, stream: stream) }
  }

  // MARK: The owner

  func leaveOwner() {
    if let number = number.take() { link.cancel(number) }
  }

  func receive(_ type: FrameType, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool {
    guard !isOver else { throw misplaced(type) }
    var records: UInt64 = 0
    switch type {
    case .deliver:
      let (header, batch) = unsafe try DeliverHeader.decode(body)
      records = UInt64(header.count)
      guard records <= passed - received else {
        throw WireError(
          .demandExceeded,
          "\(records) records of topic \(topic) came, where \(passed - received) more were asked for")
      }
      received += records
      window.received(records, bytes: batch.count)
    case .subscribed, .live, .lag, .producers: break
    case .deliveries where isMember: break
    case .error:
      lost(try unsafe Fault(relayed: body))
      return true
    case .complete: isOver = true
    default: throw misplaced(type)
    }
    unsafe waiting.append(type, body, records: records, stream: stream)
    if !isOver, waiting.bytes > DemandWindow.bound(record: link.maximumRecord) {
      overflowed()
      return false
    }
    streams.makeReady(self)
    guard isOver, let ended = number.take() else { return false }
    guard commits else { return true }
    keptNumber = ended
    link.keep(ended)
    return false
  }

  func lost(_ fault: Fault) {
    number = nil
    end(fault)
  }

  /// Records became so much longer that the window is too large for them: the subscriber begins again where it is, with a small one.
  private func overflowed() {
    leaveOwner()
    end(
      Fault(
        code: .topicMoved,
        message: "more than \(waiting.bytes) bytes of topic \(topic) wait for the subscriber; subscribe again"
      ))
  }

  private func end(_ fault: Fault) {
    guard !isOver else { return }
    isOver = true
    waiting.append(fault, stream: stream)
    streams.makeReady(self)
  }

  private func misplaced(_ type: FrameType) -> WireError {
    WireError(.unexpectedFrame, "\(type) came on a subscription of topic \(topic)")
  }
}

/// A relayed subscription with a durable cursor that was sent the last frame of its stream: its subscriber may still commit the last records.
final class RelayedCommits: ServerStream {
  private unowned let streams: StreamMultiplexer
  private let stream: UInt32
  private let topic: String
  private let link: NodeLink
  private var number: UInt32?

  init(_ number: UInt32, topic: String, link: NodeLink, on streams: StreamMultiplexer, stream: UInt32) {
    self.number = number
    self.topic = topic
    self.link = link
    self.streams = streams
    self.stream = stream
  }

  // The client may use the stream's number for something else, and this is dropped without a call of `release()`.
  deinit { release() }

  var kind: StreamKind { .committing }
  func isDrained(isPatient: Bool) -> Bool { true }

  func release() {
    if let number = number.take() { link.release(number) }
  }

  func reconsider() throws(WireError) {
    if try streams.client.denial(of: .subscribe, on: topic) != nil { streams.releaseStream(stream) }
  }

  func commit(through offset: UInt64) throws(WireError) {
    if let number { link.send(Commit(nextOffset: offset), stream: number) }
  }
}
