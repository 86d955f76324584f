import SluiceIO
import SluiceWire

/// Reads a topic from its first record to its end, across lost connections and brokers.
final class DurableReader: DurableUser {
  private let plan: DurablePlan.Reader
  private let topic: String
  private let name: String
  private unowned let peer: DurablePeer
  private unowned let oracle: DurableOracle
  private var isSubscribed = false
  private var isAsking = false
  /// The epoch of ``next``; 0 before the first subscription.
  private var epoch: UInt64 = 0
  private var request = Subscribe(topic: "", grantedThrough: 0)
  /// The offset after the last record received.
  private(set) var next: UInt64 = 0
  /// The received records that the broker hasn't declared void, by offset.
  private(set) var history: [UInt64: DurableOracle.Record] = [:]
  private var headWhenAsked: UInt64 = 0
  /// The trim offset of the topic when this reader subscribed.
  private var trimmedWhenAsked: UInt64 = 0
  private var received: UInt64 = 0
  private var granted: UInt64 = 0
  private var committed: UInt64 = 0
  private(set) var ending: Complete.Ending?
  private var isSettling = false

  private static let stream: UInt32 = 1

  init(_ plan: DurablePlan.Reader, topic: String, number: Int, peer: DurablePeer) {
    self.plan = plan
    self.topic = topic
    self.peer = peer
    oracle = peer.oracle
    name = "reader \(number)"
  }

  // MARK: Subscribing

  func connected() { peer.later(within: .milliseconds(20)) { [weak self] in self?.subscribe() } }

  private func subscribe() {
    guard !isSubscribed, !isAsking, ending == nil, peer.isOpen else { return }
    isAsking = true
    received = 0
    granted = isSettling ? Credit.unlimited : peer.random.next(below: 30)
    request = Subscribe(
      topic: topic, start: .earliest, grantedThrough: granted,
      cursor: plan.cursor.map { "\($0)-\(name.dropFirst(7))" } ?? "")
    if plan.resumes, epoch != 0 {
      request.start = .offset(next)
      request.epoch = epoch
    }
    if request.epoch == 0, plan.startsAnywhere { request.start = anyStart }
    headWhenAsked = oracle.truth(topic)?.head ?? 0
    trimmedWhenAsked = oracle.truth(topic)?.answeredTrim ?? 0
    peer.note("\(name) subscribes to \(topic) at \(request.start) of epoch \(request.epoch)")
    peer.send(request, stream: Self.stream)
    think()
  }

  private var anyStart: Subscribe.Start {
    switch peer.random.next(below: 4) {
    case 0: .last(peer.random.next(below: 30))
    case 1: .new
    case 2: .time(oracle.wallClock() - Int64(peer.random.next(below: 3_000)))
    default: .earliest
    }
  }

  private func subscribed(_ frame: Subscribed) {
    isAsking = false
    isSubscribed = true
    guard let truth = oracle.truth(topic) else { return }
    oracle.check(
      frame.nextOffset >= min(trimmedWhenAsked, truth.head),
      "\(name) begins at \(frame.nextOffset) of \(topic), which was trimmed to \(trimmedWhenAsked)")
    if request.epoch != 0 {
      let expected = truth.continued(from: request.epoch, at: next)
      oracle.check(
        frame.epoch == truth.epoch || frame.epoch == request.epoch, "\(name) is told of epoch \(frame.epoch)")
      if frame.epoch == truth.epoch {
        if let expected {
          forget(from: expected)
          if frame.nextOffset > expected { truth.lagged(to: frame.nextOffset, client: name) }
        }
        oracle.check(
          expected.map { frame.nextOffset >= $0 } ?? false,
          "\(name), at \(next) of epoch \(request.epoch), is sent on to \(frame.nextOffset) of \(frame.epoch), where \(expected as Any) is right"
        )
      }
      oracle.check(
        !truth.isSynchronous || frame.nextOffset >= next,
        "\(name) was at \(next) of \(topic), and is sent back to \(frame.nextOffset)")
    }
    if request.epoch == 0 { began(frame, in: truth) }
    oracle.check(
      request.cursor.isEmpty || truth.cursors[request.cursor] != nil,
      "\(name) has a cursor that isn't on disk")
    epoch = frame.epoch
    next = frame.nextOffset
    forget(from: next)
    if !request.cursor.isEmpty { truth.asks(cursor: request.cursor, through: next) }
    if isSettling { commit() }
  }

  /// The subscription starts, perhaps in another epoch than the last one.
  private func began(_ frame: Subscribed, in truth: StoredTruth) {
    if request.cursor.isEmpty {
      truth.began(request.start, at: frame.nextOffset, since: headWhenAsked, client: name)
    } else if epoch != 0 || committed > 0 {
      truth.began(cursor: request.cursor, at: frame.nextOffset, epoch: frame.epoch, client: name)
    }
    // Records of the former epoch may never have reached the disk.
    if epoch != 0, epoch != frame.epoch { forget(from: truth.continued(from: epoch, at: .max) ?? 0) }
  }

  /// Drops received records from `offset` on, which are void.
  private func forget(from offset: UInt64) {
    history = history.filter { $0.key < offset }
  }

  // MARK: Demand

  private func think() {
    guard granted != Credit.unlimited else { return }
    peer.later(within: .milliseconds(80)) { [weak self] in
      guard let self, isSubscribed || isAsking else { return }
      if isSettling {
        grant(Credit.unlimited)
      } else if granted < received + 20 {
        grant(granted + 1 + peer.random.next(below: 40))
      }
      think()
    }
  }

  private func grant(_ through: UInt64) {
    granted = through
    peer.send(Demand(grantedThrough: through), stream: Self.stream)
  }

  // MARK: Frames

  func received(_ header: FrameHeader, _ body: UnsafeRawBufferPointer) throws(WireError) -> Bool {
    switch header.type {
    case .subscribed: subscribed(try Subscribed(body: body))
    case .deliver:
      let (front, batch) = try DeliverHeader.decode(body)
      deliver(front, batch)
    case .live: _ = try Live(body: body)
    case .lag:
      let lag = try Lag(body: body)
      oracle.check(lag.nextOffset >= next, "\(name) lags backwards")
      oracle.truth(topic)?.lagged(to: lag.nextOffset, client: name)
      next = max(next, lag.nextOffset)
    case .complete:
      let ending = try Complete(body: body).ending
      let truth = oracle.truth(topic)
      truth?.told(ending, client: name)
      oracle.check(next == truth?.head, "\(name) is told the end at \(next) of \(truth?.head ?? 0)")
      self.ending = ending
      isSubscribed = false
    case .error: refused(try Fault(body: body))
    default: oracle.fail("\(header.type) on a subscription")
    }
    return false
  }

  private func deliver(_ front: DeliverHeader, _ batch: UnsafeRawBufferPointer) {
    oracle.check(
      front.firstOffset == next, "\(name) of \(topic) gets record \(front.firstOffset) where \(next) is next")
    next = front.firstOffset
    let records = oracle.records(in: batch)
    oracle.check(records.count == Int(front.count), "\(name) gets \(records.count) of \(front.count) records")
    for record in records {
      oracle.truth(topic)?.saw(record, at: next, epoch: epoch, by: name)
      history[next] = record
      next += 1
      received += 1
    }
    oracle.check(received <= granted, "\(name) gets \(received) records, where it granted \(granted)")
    commit()
  }

  private func commit() {
    guard plan.cursor != nil, isSettling || peer.random.oneIn(3) else { return }
    let through = next
    oracle.truth(topic)?.asks(cursor: request.cursor, through: through)
    committed = max(committed, through)
    peer.send(Commit(nextOffset: through), stream: Self.stream)
  }

  private func refused(_ fault: Fault) {
    isSubscribed = false
    isAsking = false
    switch fault.code {
    case .storageFull, .storageFailed:
      oracle.check(
        plan.cursor != nil && request.epoch == 0, "\(name) needs no disk, and is refused: \(fault.message)")
      peer.later(within: .milliseconds(100)) { [weak self] in self?.subscribe() }
    case .shuttingDown, .storageFull, .storageFailed:
      peer.later(within: .milliseconds(100)) { [weak self] in self?.subscribe() }
    case .epochChanged where oracle.truth(topic)?.isForgotten(request.epoch) ?? true:
      startOver()
    default: oracle.fail("\(name) of \(topic) ended with \(fault.code): \(fault.message)")
    }
  }

  private func startOver() {
    (epoch, next) = (0, 0)
    forget(from: 0)
    peer.later(within: .milliseconds(100)) { [weak self] in self?.subscribe() }
  }

  func disconnected() {
    isSubscribed = false
    isAsking = false
    // The last commit may not have arrived, and isn't repeated.
    if ending != nil { oracle.truth(topic)?.doubts(cursor: request.cursor) }
  }

  // MARK: The end

  func settle() {
    isSettling = true
    guard isSubscribed else { return subscribe() }
    grant(Credit.unlimited)
    commit()
  }

  var unsettled: String? {
    guard ending == nil else { return nil }
    let head = oracle.truth(topic)?.head ?? 0
    guard isSubscribed, next >= head, oracle.truth(topic)?.ending == nil else {
      return "\(name) of \(topic) is \(isSubscribed ? "" : "not subscribed, ")at \(next) of \(head)"
    }
    return nil
  }

  /// Checks that the received records are those on disk.
  func audit() {
    guard let truth = oracle.truth(topic) else { return oracle.fail("there is no \(topic)") }
    for (offset, record) in history.sorted(by: { $0.key < $1.key }) {
      guard offset < truth.head, truth.log[Int(offset)] == record else {
        return oracle.fail("\(name) has another record \(offset) of \(topic) than there is in the end")
      }
    }
    oracle.check(next == truth.head, "\(name) ends at \(next) of \(truth.head)")
  }
}
