import SluiceIO
import SluiceSimulation
import SluiceWire

/// Subscribes, requests records as planned, cancels and resubscribes.
final class FrameSubscriber: StreamUser {
  private let plan: SubscriberPlan
  private unowned let peer: SimulatedPeer
  private(set) var ledger: SubscriptionLedger?
  /// The previous subscription, for resuming.
  private var previous: SubscriptionLedger?
  private var stream: UInt32 = 0
  private var subscriptionsLeft: Int
  private var isThinking = false
  private var isSettling = false
  private var hasLastGrant = false
  /// When the last grant was sent.
  private var grantedAt: MonotonicTime?
  private var grantedBefore: UInt64 = 0
  /// Whether its settings haven't been denied so far.
  private var mayState = true

  init(_ plan: SubscriberPlan, peer: SimulatedPeer) {
    self.plan = plan
    self.peer = peer
    subscriptionsLeft = plan.subscriptions
  }

  private var oracle: Oracle { peer.oracle }

  // MARK: Subscribing

  func connected(_ connection: SimulatedPeer) {
    later(within: .milliseconds(30)) { $0.subscribe() }
  }

  private func subscribe() {
    guard peer.isOpen, ledger == nil, subscriptionsLeft > 0 else { return }
    if !isSettling { subscriptionsLeft -= 1 }
    var request = Subscribe(
      topic: plan.topic, start: plan.start, lag: plan.lag, grantedThrough: firstGrant, filter: plan.filter)
    if let previous, let life = previous.life, plan.resumes {
      request.start = .offset(previous.next)
      request.epoch = life.epoch
    } else if peer.random.oneIn(3) {
      request.start = otherStart
    }
    if let stated = peer.simulation.scenario.stated(of: plan.topic), mayState, peer.random.oneIn(2) {
      request.settings = stated
    }
    stream = peer.takeStream(for: self)
    let ledger = SubscriptionLedger(request, peer: peer.number, oracle: oracle)
    self.ledger = ledger
    oracle.subscriptions.append(ledger)
    isThinking = false
    hasLastGrant = isSettling
    grantedAt = nil
    grantedBefore = request.grantedThrough
    peer.note(
      "subscribes to \(plan.topic) on \(stream): \(request.start), granting \(request.grantedThrough)")
    peer.send(request, stream: stream)
    if plan.demand != .unlimited, !isSettling { think() }
    if plan.cancelOneIn > 0, peer.random.oneIn(plan.cancelOneIn) {
      later(within: .milliseconds(500)) { $0.cancel() }
    }
  }

  private var otherStart: Subscribe.Start {
    let head = oracle.head(of: plan.topic) ?? 0
    switch peer.random.next(below: 6) {
    case 0: return .earliest
    case 1: return .new
    case 2: return .last(peer.random.next(below: 50))
    case 3: return .offset(peer.random.next(below: head + 20))
    case 4: return .time(oracle.wallClock() - Int64(peer.random.next(below: 1_000)))
    default: return .replay
    }
  }

  /// Runs `body` later, unless the connection or the subscription has been replaced by then.
  private func later(within delay: Duration, _ body: @escaping (FrameSubscriber) -> Void) {
    let (incarnation, ledger) = (peer.incarnation, ledger)
    let delay = isSettling ? .milliseconds(1) : peer.random.next(in: .zero...delay)
    _ = peer.loop.schedule(after: delay) { [weak self] in
      guard let self, peer.incarnation == incarnation, self.ledger === ledger, peer.phase == .open else {
        return
      }
      body(self)
    }
  }

  private func cancel() {
    guard let ledger, !ledger.isCancelling, ledger.end == nil else { return }
    peer.note("cancels on \(stream)")
    ledger.cancels()
    peer.send(Cancel(), stream: stream)
    // A late grant is ignored.
  }

  // MARK: Demand

  private var firstGrant: UInt64 {
    if isSettling { return Credit.unlimited }
    switch plan.demand {
    case .unlimited: return peer.random.oneIn(2) ? Credit.unlimited : 0
    case .one: return peer.random.oneIn(2) ? 1 : 0
    case .bursts(let most): return peer.random.oneIn(2) ? peer.random.next(below: UInt64(most) + 1) : 0
    }
  }

  /// Requests more records if they are due.
  private func think() {
    guard let ledger, !isThinking, !hasLastGrant, ledger.granted != Credit.unlimited else { return }
    let outstanding = ledger.granted - min(ledger.granted, ledger.delivered)
    switch plan.demand {
    case .one where outstanding > 0: return
    case .bursts(let most) where outstanding > UInt64(most) / 2: return
    default: break
    }
    guard plan.thinking > .zero, peer.random.oneIn(3) else { return ask() }
    isThinking = true
    later(within: plan.thinking) {
      $0.isThinking = false
      if !$0.hasLastGrant { $0.ask() }
    }
  }

  private func ask() {
    guard let ledger else { return }
    switch plan.demand {
    case .unlimited: grant(Credit.unlimited)
    case .one: grant(ledger.granted + 1)
    case .bursts(let most): grant(ledger.granted + 1 + peer.random.next(below: UInt64(most)))
    }
  }

  private func grant(_ through: UInt64) {
    guard let ledger, ledger.end == nil, !ledger.isCancelling, through > 0 else { return }
    let before = ledger.granted
    grantedBefore = before
    grantedAt = peer.loop.now
    ledger.grants(through)
    peer.note("grants \(through) on \(stream)")
    peer.send(Demand(grantedThrough: through), stream: stream)
    guard plan.repeatsGrants else { return }
    // Repeating an earlier grant has no effect.
    for _ in 0..<peer.random.next(in: 0...2) {
      let stale = peer.random.oneIn(2) ? through : min(before, through)
      if stale > 0 { peer.send(Demand(grantedThrough: stale), stream: stream) }
    }
  }

  // MARK: Frames

  func received(_ header: FrameHeader, _ body: UnsafeRawBufferPointer, on stream: UInt32) throws(WireError)
    -> Bool
  {
    guard let ledger, stream == self.stream else {
      oracle.fail(peer.number, "\(header.type) on stream \(stream), whose subscription is over")
      return false
    }
    switch header.type {
    case .subscribed: ledger.subscribed(try Subscribed(body: body))
    case .deliver:
      let (front, batch) = try DeliverHeader.decode(body)
      let flaw = peer.simulation.flaw
      let isFlawed = flaw.map { peer.random.oneIn($0.frequency) } ?? false
      if !isFlawed || flaw?.deliver(front, batch, to: ledger) == false { ledger.deliver(front, batch) }
      if !ledger.isCancelling { react(ledger) }
    case .live: ledger.live(try Live(body: body))
    case .lag: ledger.lag(try Lag(body: body))
    case .complete:
      ledger.completed(try Complete(body: body))
      if !ledger.isCancelling { return over(again: 4) }
    case .error:
      let fault = try Fault(body: body)
      ledger.failed(fault)
      if fault.code == .topicExists { mayState = false }
      if !ledger.isCancelling { return over(again: fault.code == .topicDeleted ? 1 : 2) }
    case .cancelled:
      ledger.cancelled()
      return over(again: 2)
    default:
      oracle.fail(peer.number, "\(header.type) on a subscription")
    }
    return false
  }

  private func react(_ ledger: SubscriptionLedger) {
    if plan.cancelOneIn > 0, !isSettling, peer.random.oneIn(plan.cancelOneIn * 20) { return cancel() }
    think()
  }

  /// The subscription has ended; starts another one with a probability of 1 in `again`.
  private func over(again: Int) -> Bool {
    previous = ledger?.end.map { if case .cancelled = $0 { true } else { false } } == true ? ledger : nil
    ledger = nil
    if peer.random.oneIn(again), !isSettling { later(within: .milliseconds(100)) { $0.subscribe() } }
    return true
  }

  func disconnected(inOrder: Bool) {
    guard let ledger else { return }
    if inOrder { checkDrained(ledger) }
    ledger.cutOff()
    previous = ledger.life == nil ? nil : ledger
    self.ledger = nil
  }

  /// After an orderly shutdown, all granted and available records have been delivered.
  private func checkDrained(_ ledger: SubscriptionLedger) {
    guard ledger.life?.head != nil, ledger.life?.isPresent == true, !ledger.isCancelling,
      ledger.end == nil,
      !oracle.brokerRanOutOfTime, !oracle.excusesTimeouts, !peer.isDisturbed
    else { return }
    // The end may be read long after it was sent.
    guard let closing = peer.closing else {
      return oracle.fail(peer.number, "read an end that the broker didn't send")
    }
    // A grant may have crossed the broker's GOAWAY.
    let recently = peer.simulation.farewellTime
    let granted = grantedAt.map { closing.time - $0 < recently } == true ? grantedBefore : ledger.granted
    guard let hasAll = ledger.hasAll else { return }
    oracle.check(
      hasAll || ledger.delivered >= granted, peer.number, "the broker stopped, and left \(ledger.state)")
    guard hasAll else {
      // The broker lets the client request the rest as long as it receives frames from it. The last frames may have been read too late.
      let silence = closing.silence
      let crossing = peer.simulation.scenario.conditions.latency.upperBound * 3
      return oracle.check(
        silence > .milliseconds(400) || silence < crossing, peer.number,
        "the broker stopped \(silence) after it was spoken to, and left \(ledger.state)")
    }
    oracle.check(ledger.isLive, peer.number, "the broker stopped without LIVE, and left \(ledger.state)")
    oracle.check(
      oracle.isOpen(plan.topic), peer.number, "the broker stopped without COMPLETE, and left \(ledger.state)")
  }

  // MARK: Settling

  func settle() {
    isSettling = true
    if ledger == nil { return later(within: .zero) { $0.subscribe() } }
    later(within: .zero) { subscriber in
      guard let ledger = subscriber.ledger, !ledger.isCancelling, ledger.end == nil else { return }
      subscriber.hasLastGrant = true
      switch subscriber.peer.random.next(below: 8) {
      case 0: break
      case 1...2 where ledger.granted < 1 << 32:
        subscriber.grant(ledger.granted + subscriber.peer.random.next(below: 40) + 1)
      default: subscriber.grant(Credit.unlimited)
      }
    }
  }

  var unsettled: String? {
    guard let ledger else { return nil }
    return ledger.isSatisfied ? nil : ledger.state
  }
}
