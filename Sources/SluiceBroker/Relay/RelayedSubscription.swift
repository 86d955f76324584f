import SluiceSession
import SluiceTopics
import SluiceWire

/// A subscription, or member of a group, of a topic that another node serves. Belongs to its connection's loop.
///
/// The owner's frames wait here for the subscriber's socket, in order, with another stream number and unchanged bodies. The subscriber's demand is passed to
/// the owner a ``DemandWindow`` at a time. At the head of a topic that can be shared, it reads from a ``Mirror`` instead.
final class RelayedSubscription: SubscriberStream, LinkedStream {
  let topic: String
  let stream: UInt32
  private(set) var place = SubscriberPlace.none
  private(set) var credit: Credit
  unowned let streams: StreamMultiplexer
  private unowned let relay: NodeRelay
  private var link: NodeLink
  /// Nil while it has no subscription at the owner.
  private var number: UInt32?
  /// The subscriber's frame; nil for a member of a group.
  private let frame: Subscribe?
  /// The stream number that is kept for commits after the topic's end.
  private var keptNumber: UInt32?

  private var window = DemandWindow()
  /// The records requested from the owner, and those received, including earlier subscriptions at the owner.
  private var passed: UInt64
  private var received: UInt64 = 0
  /// The records received before the present subscription at the owner began.
  private var base: UInt64 = 0
  private var waiting = RelayedFrames()
  /// The bytes of `waiting` that are counted in the connection's buffer.
  private var counted = 0
  private var isOver = false
  /// Whether the owner has sent SUBSCRIBED.
  private var isOpen = false

  // Sharing
  private var epoch: UInt64 = 0
  private var nextOffset: UInt64 = 0
  private var isShareable = false
  /// Whether LIVE was sent to the subscriber, and whether the present subscription at the owner has reached its head.
  private var wasLive = false
  private var isAtHead = false
  /// Its entry in the table of mirrors while it is at the head with a subscription of its own.
  private var candidate: StreamContinuation?
  /// The mirror that it has created, until that is open.
  private var begun: Mirror?
  private var reader: MirrorReader?
  /// Its index among the waiting readers.
  var waitIndex: Int?

  /// - Parameter frame: nil for a member of a group.
  init(
    _ stream: UInt32, topic: String, granted: UInt64, _ frame: Subscribe?, link: NodeLink,
    on streams: StreamMultiplexer, for relay: NodeRelay
  ) {
    self.stream = stream
    self.topic = topic
    self.frame = frame
    self.link = link
    self.streams = streams
    self.relay = relay
    credit = Credit(granted: granted)
    passed = min(granted, DemandWindow.first)
  }

  private var isMember: Bool { frame == nil }
  private var commits: Bool { frame.map { !$0.cursor.isEmpty } ?? false }

  /// Opens it at the owner, with the first part of its demand.
  func begin(_ frame: Subscribe) {
    var frame = frame
    frame.grantedThrough = passed - base
    open(frame)
  }

  func begin(_ frame: JoinGroup) {
    var frame = frame
    frame.grantedThrough = passed
    open(frame)
  }

  private func open(_ frame: some Frame) {
    number = link.open(self)
    guard let number else { return }
    link.send(streams.origin, stream: number)
    link.send(frame, stream: number)
  }

  func move(to place: SubscriberPlace) { self.place = place }

  // MARK: The subscriber

  func demand(through granted: UInt64) {
    let wasStarved = credit.available == 0
    guard credit.raise(to: granted) else { return }
    if wasStarved, let reader, reader.isBehind, !reader.mirror.isFed {
      // Records that it hadn't requested may have been trimmed at the owner, and the mirror gets no more trims.
      if let fault = reader.mirror.fault { end(fault) } else { subscribeAgain() }
      return
    }
    if reader == nil { passDemand() } else { streams.makeReady(self) }
  }

  private func passDemand() {
    guard let number, !isOver,
      let through = window.next(granted: credit.granted, written: credit.spent, passed: passed)
    else { return }
    passed = through
    link.send(Demand(grantedThrough: through - base), stream: number)
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
    leaveMirror()
    waiting = RelayedFrames()
    countWaiting()
    place = .ended
  }

  private func countWaiting() {
    streams.relayed(waiting.bytes - counted)
    counted = waiting.bytes
  }

  /// Bytes that wait for the subscriber's socket.
  var waitingBytes: Int { waiting.bytes }

  /// Whether it reads from a mirror.
  var isShared: Bool { reader != nil }

  var isOwed: Bool { !waiting.isEmpty || reader.map { $0.isBehind && credit.available > 0 } ?? false }
  var isBehind: Bool { !waiting.isEmpty || reader?.isBehind ?? false }

  func produce(into writes: WriteBatch, bytes: Int) -> DeliveryOutcome {
    let start = writes.bytes
    while writes.bytes - start < bytes, writes.hasRoom, let records = waiting.moveFirst(to: writes) {
      _ = credit.spend(records)
    }
    countWaiting()
    guard waiting.isEmpty else { return .more }
    guard !isOver else { return .ended }
    guard reader != nil else {
      passDemand()
      return .waiting
    }
    return read(into: writes, bytes: bytes - (writes.bytes - start))
  }

  private func read(into writes: WriteBatch, bytes: Int) -> DeliveryOutcome {
    let outcome = reader?.produce(
      into: writes, bytes: bytes, credit: &credit, stream: stream, largest: streams.largestBatch)
    switch outcome {
    case nil, .more: return .more
    case .waiting: return .waiting
    case .starved: return .starved
    case .ended: return .ended
    case .behind:
      subscribeAgain()
      return isOver ? .more : .waiting
    }
  }

  func wait() {
    if let reader, waitIndex == nil { reader.seat.wait(self) }
  }

  func successor(on streams: StreamMultiplexer) -> (any ServerStream)? {
    keptNumber.take().map { RelayedCommits($0, topic: topic, link: link, on: streams, stream: stream) }
  }

  // MARK: The owner

  func leaveOwner() {
    if let number = number.take() { link.cancel(number) }
    if let candidate = candidate.take() { relay.mirrors.leave(candidate, of: topic) }
  }

  func receive(_ type: FrameType, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool {
    guard !isOver, type == .error || isOpen == (type != .subscribed) else { throw misplaced(type) }
    var records: UInt64 = 0
    var isTold = true
    switch type {
    case .deliver: records = try unsafe delivered(body)
    case .subscribed:
      isTold = false
      if var frame = try unsafe subscribed(Subscribed(body: body)) {
        // Only nodes use this flag.
        frame.isShareable = false
        waiting.append(frame, stream: stream)
      }
    case .live:
      unsafe nextOffset = try Live(body: body).nextOffset
      isTold = !wasLive
      (wasLive, isAtHead) = (true, true)
    case .lag: unsafe nextOffset = try Lag(body: body).nextOffset
    case .producers: _ = try unsafe Producers(body: body)
    // The floor doesn't concern frames that wait here: their records were requested before.
    case .floor:
      _ = try unsafe Floor(body: body)
      isTold = false
    case .deliveries where isMember: _ = try unsafe Deliveries(body: body)
    case .error:
      lost(try unsafe Fault(relayed: body))
      return true
    case .complete:
      _ = try unsafe Complete(body: body)
      isOver = true
    default: throw misplaced(type)
    }
    if isTold { unsafe waiting.append(type, body, records: records, stream: stream) }
    countWaiting()
    streams.makeReady(self)
    if isOver { return ended() }
    if waiting.bytes > DemandWindow.bound(record: link.maximumRecord) { overflowed() }
    if isAtHead, isShareable { share() }
    return false
  }

  private func delivered(_ body: UnsafeRawBufferPointer) throws(WireError) -> UInt64 {
    let (header, batch) = unsafe try DeliverHeader.decode(body)
    let records = UInt64(header.count)
    guard records <= passed - received else {
      throw WireError(
        .demandExceeded,
        "\(records) records of topic \(topic) came, but only \(passed - received) more were requested")
    }
    received += records
    nextOffset = header.firstOffset + records
    window.received(records, bytes: batch.count)
    return records
  }

  /// Returns the frame for the subscriber; nil when the subscriber got one before.
  private func subscribed(_ frame: Subscribed) -> Subscribed? {
    isOpen = true
    isShareable = frame.isShareable && self.frame?.wantsProducers == false
    nextOffset = frame.nextOffset
    if epoch == 0 {
      epoch = frame.epoch
      return frame
    }
    if epoch != frame.epoch {
      leaveOwner()
      end(.topicMoved(topic))
    }
    return nil
  }

  /// Called when the owner has sent the last frame. Returns whether the number is free.
  private func ended() -> Bool {
    guard let ended = number.take() else { return false }
    leaveOwner()
    guard commits else { return true }
    keptNumber = ended
    link.keep(ended)
    return false
  }

  func lost(_ fault: Fault) {
    number = nil
    leaveOwner()
    end(fault)
  }

  /// Ends the subscription because records have become so much longer that they exceed the memory for the window. The subscriber continues at its position
  /// with a small window.
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
    countWaiting()
    streams.makeReady(self)
  }

  private func misplaced(_ type: FrameType) -> WireError {
    WireError(.unexpectedFrame, "\(type) came on a subscription of topic \(topic)")
  }
}

// The mirror. There is no gap between the subscription at the owner and the mirror: each begins at the offset where the other has ended.
extension RelayedSubscription {
  /// Joins the topic's mirror, or creates one if there are other subscriptions at the head.
  private func share() {
    guard number != nil, !isOver else { return }
    if candidate == nil {
      let entered = streams.continuation(of: stream)
      candidate = entered
      relay.mirrors.enter(entered, of: topic)
    }
    switch relay.mirrors.place(in: topic) {
    case .alone: break
    case .mirror(let mirror): join(mirror)
    case .first:
      guard begun == nil else { break }
      begun = relay.beginMirror(
        of: topic, epoch: epoch, from: nextOffset, for: streams.origin, over: link)
    }
  }

  private func join(_ mirror: Mirror) {
    guard let seat = mirror.join(at: nextOffset, link.node, epoch: epoch, for: streams.origin, on: relay.loop)
    else { return }
    reader = MirrorReader(mirror, seat, at: nextOffset)
    leaveOwner()
    streams.makeReady(self)
  }

  /// Called when the topic's mirror is open.
  func mirrorOpened() {
    if number != nil, isAtHead, !isOver { share() }
    begun.take()?.leave(nil)
  }

  /// Called when the mirror has changed or ended.
  func woken() {
    waitIndex = nil
    streams.makeReady(self)
  }

  /// Subscribes at the owner at its position, since the mirror has dropped the next records.
  private func subscribeAgain() {
    nextOffset = reader?.nextOffset ?? nextOffset
    leaveMirror()
    (isAtHead, isOpen) = (false, false)
    guard var frame, let next = relay.link(to: link.node, of: topic, for: streams) else {
      return end(.topicMoved(topic))
    }
    link = next
    (frame.start, frame.epoch, frame.ifMissing) = (.offset(nextOffset), epoch, .fail)
    frame.settings = TopicSettings()
    received = credit.spent
    base = received
    passed = min(credit.granted, received + DemandWindow.first)
    window = DemandWindow()
    begin(frame)
  }

  private func leaveMirror() {
    begun.take()?.leave(nil)
    guard let reader = reader.take() else { return }
    if let index = waitIndex.take() { reader.seat.remove(self, at: index) }
    reader.mirror.leave(streams.origin)
  }
}
