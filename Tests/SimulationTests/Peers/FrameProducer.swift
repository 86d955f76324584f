import SluiceIO
import SluiceWire

/// Publishes unique records as its plan says, within its grants.
final class FrameProducer: StreamUser {
  private let plan: ProducerPlan
  private unowned let peer: SimulatedPeer
  private var remaining: Int
  private var ledger: PublicationLedger?
  private var stream: UInt32 = 0
  private var isOpen = false
  private var isWaiting = false
  private var isEnding = false
  private var isDone = false
  private var isSettling = false
  /// Whether its settings haven't been denied so far.
  private var mayState = true
  private var builder = BatchBuilder()

  init(_ plan: ProducerPlan, peer: SimulatedPeer) {
    self.plan = plan
    self.peer = peer
    remaining = plan.records
  }

  private var oracle: Oracle { peer.oracle }
  private var isKeyed: Bool { peer.simulation.scenario.isKeyed }

  // MARK: Opening

  func connected(_ connection: SimulatedPeer) {
    after(peer.random.next(in: .zero ... .milliseconds(20))) { $0.open() }
  }

  private func open() {
    guard peer.isOpen, ledger == nil, !isDone else { return }
    stream = peer.takeStream(for: self)
    ledger = oracle.makePublication(topic: plan.topic, acknowledges: plan.acknowledges, client: peer.number)
    isOpen = false
    isEnding = false
    peer.note("opens publication \(ledger!.number) to \(plan.topic) on \(stream)")
    var request = PublishOpen(
      topic: plan.topic, acknowledgement: plan.acknowledges ? .received : .none)
    if let stated = peer.simulation.scenario.stated(of: plan.topic), mayState, peer.random.oneIn(2) {
      request.settings = stated
      ledger?.statement = stated
    }
    peer.send(request, stream: stream)
  }

  /// Runs `body` later, unless the connection or the publication has been replaced by then.
  private func after(_ delay: Duration, _ body: @escaping (FrameProducer) -> Void) {
    let (incarnation, ledger) = (peer.incarnation, ledger)
    _ = peer.loop.schedule(after: delay) { [weak self] in
      guard let self, peer.incarnation == incarnation, self.ledger === ledger, peer.phase == .open else {
        return
      }
      body(self)
    }
  }

  // MARK: Publishing

  private func pump() {
    guard isOpen, !isEnding, !isWaiting, let ledger, peer.phase == .open else { return }
    var burst = isSettling ? remaining : peer.random.next(in: plan.burst)
    while burst > 0, remaining > 0, available > 0, !peer.isCrowded { burst -= publish(ledger) }
    if remaining == 0 { return conclude() }
    // Otherwise DEMAND, or room in the outbox, calls this again.
    guard available > 0, !peer.isCrowded else { return }
    isWaiting = true
    after(isSettling ? .milliseconds(1) : peer.random.next(in: plan.pauses)) {
      $0.isWaiting = false
      $0.pump()
    }
  }

  private var available: Int {
    guard let ledger, ledger.bytesGranted > ledger.bytesSent else { return 0 }
    return Int(clamping: ledger.granted &- UInt64(ledger.sent))
  }

  /// Sends one batch. Returns its number of records.
  private func publish(_ ledger: PublicationLedger) -> Int {
    builder.removeAll()
    var starts: [Int] = []
    let most = min(peer.random.next(in: plan.batch), remaining, available)
    let room = Int(peer.welcome?.maximumFrame ?? 0) - PublishHeader.size
    let granted = Int(clamping: ledger.bytesGranted - ledger.bytesSent)
    // The last record may exceed the granted bytes.
    while starts.count < most, builder.bytes.count < granted {
      let size = recordSize(isFirst: starts.isEmpty)
      guard starts.isEmpty || builder.bytes.count + size + 128 <= room else { break }
      starts.append(builder.bytes.count)
      append(publication: ledger.number, sequence: ledger.sent + starts.count - 1, size: size)
    }
    let header = PublishHeader(firstSequence: UInt64(ledger.sent), count: UInt32(starts.count))
    peer.note("publishes \(starts.count) from \(ledger.sent) as \(ledger.number)")
    ledger.send(builder.bytes, starts: starts)
    peer.sendPublish(header, builder.bytes, stream: stream)
    remaining -= starts.count
    return starts.count
  }

  private func recordSize(isFirst: Bool) -> Int {
    let limit = min(Int(peer.welcome?.maximumRecord ?? 0) - (isKeyed ? 64 : 0), Noise.longest)
    // The first record of a batch contains its name, which gives the positions of the others.
    let least = isFirst ? PublicationLedger.nameSize : 0
    if peer.random.oneIn(12) || isKeyed && !isFirst && peer.random.oneIn(6) { return least }
    if peer.random.oneIn(60), plan.sizes.upperBound > 512 { return limit }
    return min(max(peer.random.next(in: plan.sizes), least), limit)
  }

  private func append(publication: UInt32, sequence: Int, size: Int) {
    Noise.piece(of: size, choice: UInt64(publication) << 32 | UInt64(sequence)) { noise in
      withUnsafeTemporaryAllocation(byteCount: max(size, 1), alignment: 8) { memory in
        let payload = UnsafeMutableRawBufferPointer(rebasing: memory[..<size])
        payload.copyMemory(from: noise)
        if size >= PublicationLedger.nameSize {
          payload.storeBytes(of: publication.littleEndian, as: UInt32.self)
          payload.storeBytes(of: UInt32(sequence).littleEndian, toByteOffset: 4, as: UInt32.self)
        }
        append(UnsafeRawBufferPointer(payload), sequence: sequence)
      }
    }
  }

  private func append(_ payload: UnsafeRawBufferPointer, sequence: Int) {
    let limit = Int(peer.welcome?.maximumRecord ?? 0)
    guard isKeyed || peer.random.oneIn(8), payload.count + 64 <= limit else {
      return builder.append(payload)
    }
    let number = isKeyed ? Int(peer.random.next(below: 12)) : sequence % 7
    let key = !isKeyed && peer.random.oneIn(3) ? nil : Array("key \(number)".utf8)
    let headers = peer.random.oneIn(2) ? [] : [(Array("n".utf8), Array("\(sequence)".utf8))]
    let append = { (key: UnsafeRawBufferPointer?) in
      do {
        try self.builder.append(key: key, headers: headers, payload: payload)
      } catch {
        self.oracle.fail(self.peer.number, "a record in order is refused: \(error)")
      }
    }
    if let key { key.withUnsafeBytes { append($0) } } else { append(nil) }
  }

  func roomAppeared() {
    pump()
  }

  /// Call it once all records are sent.
  private func conclude() {
    guard !isEnding, let ledger else { return }
    switch plan.finale {
    case .stay: isDone = true
    case .cancel:
      isEnding = true
      peer.note("cancels publication \(ledger.number)")
      ledger.leaves()
      peer.send(Cancel(), stream: stream)
    case .complete: end(.finished)
    case .fail: end(.failure(code: .producerFailure, message: "failed by \(peer.name)"))
    }
  }

  private func end(_ ending: Complete.Ending) {
    isEnding = true
    oracle.asked(toEnd: plan.topic, ending)
    peer.note("ends \(plan.topic): \(ending)")
    askedEnding = ending
    ledger?.leaves()
    peer.send(Complete(ending), stream: stream)
  }

  private var askedEnding: Complete.Ending?

  // MARK: Frames

  func received(_ header: FrameHeader, _ body: UnsafeRawBufferPointer, on stream: UInt32) throws(WireError)
    -> Bool
  {
    guard let ledger, stream == self.stream else {
      oracle.fail(peer.number, "\(header.type) on stream \(stream), whose publication is over")
      return false
    }
    switch header.type {
    case .publishOpened:
      ledger.opened(try PublishOpened(body: body))
      isOpen = true
      pump()
    case .demand:
      ledger.demanded(try Demand(body: body))
      pump()
    case .ack: ledger.acknowledged(try Ack(body: body))
    case .cancelled:
      oracle.check(isEnding, peer.number, "CANCELLED for publication \(ledger.number), which isn't ending")
      cancelled(ledger)
      return true
    case .complete:
      let ending = try Complete(body: body).ending
      ledger.life?.told(ending, at: nil, client: peer.number)
      // The reply to CANCEL is still due; for a COMPLETE that lost a race, this is the reply.
      if isEnding, askedEnding == nil { return false }
      over(done: true)
      return true
    case .error:
      let fault = try Fault(body: body)
      refused(fault, ledger)
      return !(isEnding && askedEnding == nil)
    default:
      oracle.fail(peer.number, "\(header.type) on a publication")
    }
    return false
  }

  private func cancelled(_ ledger: PublicationLedger) {
    if let askedEnding {
      ledger.life?.told(askedEnding, at: nil, client: peer.number)
      oracle.check(
        !plan.acknowledges || ledger.acknowledged == ledger.sent, peer.number,
        "publication \(ledger.number) has ended, with \(ledger.acknowledged) of \(ledger.sent) acknowledged")
    }
    if !peer.hasGoAway { ledger.confirmed() }
    over(done: true)
  }

  private func refused(_ fault: Fault, _ ledger: PublicationLedger) {
    switch fault.code {
    case .topicDeleted:
      oracle.check(
        oracle.deletedTopics.contains(plan.topic), peer.number,
        "the topic is said to be deleted, but no client deleted it")
      if isEnding, askedEnding == nil { return }
      over(done: isEnding || peer.random.oneIn(2))
      after(.milliseconds(5)) { $0.open() }
    case .topicEnded:
      oracle.check(
        !oracle.isOpen(plan.topic) || oracle.mayHaveRestarted(plan.topic), peer.number,
        "topic-ended, while \(plan.topic) goes on")
      over(done: true)
    case .topicExists:
      ledger.refusedStatement()
      mayState = false
      if isEnding, askedEnding == nil { return }
      over(done: false)
      after(.milliseconds(5)) { $0.open() }
    case .shuttingDown:
      oracle.check(oracle.brokerIsStopping, peer.number, "shutting-down from a broker that isn't stopping")
      over(done: false)
    default:
      oracle.fail(peer.number, "publication \(ledger.number) ended with \(fault.code): \(fault.message)")
      over(done: true)
    }
  }

  private func over(done: Bool) {
    ledger?.ended()
    ledger = nil
    isOpen = false
    isEnding = false
    isWaiting = false
    askedEnding = nil
    if done { isDone = true }
  }

  func disconnected(inOrder: Bool) {
    over(done: false)
    if !plan.continues { isDone = true }
  }

  // MARK: Settling

  func settle() {
    isSettling = true
    isWaiting = false
    if ledger == nil, !isDone { after(.zero) { $0.open() } } else { after(.zero) { $0.pump() } }
  }

  var unsettled: String? {
    if peer.hasGoAway { return nil }
    guard let ledger else { return isDone ? nil : "a publication to \(plan.topic) isn't open" }
    let title = "publication \(ledger.number) to \(plan.topic)"
    if !isOpen { return "\(title) isn't answered" }
    if isEnding { return "\(title) is ending" }
    if remaining > 0, available > 0 || !peer.oracle.mayHoldUp(plan.topic) {
      return "\(title) has \(remaining) to send, \(available) granted"
    }
    guard !ledger.acknowledges || ledger.acknowledged == ledger.sent else {
      return "\(title) has \(ledger.acknowledged) of \(ledger.sent) acknowledged"
    }
    return nil
  }
}
