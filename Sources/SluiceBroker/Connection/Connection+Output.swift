import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

// Writes answers, requested records, and producers' acknowledgements and grants. At the end of a turn.
extension Connection {
  /// The bytes that a connection writes before the next one has its turn.
  private static let turnBudget = 1 << 20
  /// The portion in bytes of each of several ready subscriptions.
  private static let portion = 64 << 10

  /// Writes pending output until the transport takes no more or the turn's budget is used up. Called at the end of a turn.
  func flush() {
    writeOut()
    if !answers.isEmpty || !pending.isEmpty || buffered != 0 { countBuffered() }
  }

  /// Bytes of a PING.
  private static let pingSize = Ping(token: 0).encoded(stream: 0).count

  private func writeOut() {
    if case .closed = phase { return }
    if !pending.isEmpty {
      let waited = pending.byteCount
      switch pending.write(to: stream) {
      case .failure(let error): return streamFailed(error)
      // The transport took pending bytes, so the client has read some. That counts as a sign of life: a PING may take long to reach the client behind unread
      // bytes, and a client whose input is paused until it has read its answers can't be heard. For a PING alone only its answer counts.
      case .success(let count):
        context.topics.traffic.bytesSent &+= count
        if count > 0, waited > Self.pingSize { keepalive.heard(at: context.loop.now.nanoseconds) }
        if count > 0 { stalledSince = pending.isEmpty ? nil : context.loop.now }
      }
      guard pending.isEmpty else { return }
    }
    if workBudget.isExhausted || !unfinishedWork.isEmpty, case .open = phase { resumeWork() }
    settlePublications()
    let writes = context.writes
    var budget = Self.turnBudget
    while budget > 0 {
      writes.append(&answers)
      serveSubscriptions(writes)
      budget -= writes.takePassed()
      guard !writes.isEmpty else { break }
      budget -= writes.bytes
      context.topics.traffic.bytesSent &+= writes.bytes
      let appendedAt = writes.takeSample()
      switch writes.write(to: stream) {
      case .success(let rest):
        pending = rest
        if !rest.isEmpty {
          stalledSince = context.loop.now
          context.topics.traffic.bytesSent &-= rest.byteCount
        }
      case .failure(let error): return streamFailed(error)
      }
      if let appendedAt { context.delivered(appendedAt: appendedAt) }
      // The answers are written. Records still to come, which may be endless, must not keep the client's input paused.
      if waitsForAnswers, case .open = phase { resumeReading() }
      guard pending.isEmpty else { return }
    }
    if !readySubscriptions.isEmpty { return isHeldByRate ? () : context.makeReady(self) }
    if case .finishing = phase { return close() }
  }

  private func serveSubscriptions(_ writes: WriteBatch) {
    isHeldByRate = false
    if readySubscriptions.isEmpty { return }
    var limit = core.configuration.limits.writeBatch
    if account?.delivering != nil {
      let room = deliveryRoom(atMost: limit)
      isHeldByRate = room == 0
      if isHeldByRate { return }
      limit = min(limit, writes.work + room)
    }
    let before = writes.bytes
    var records: UInt64 = 0
    defer {
      context.topics.traffic.recordsSent &+= Int(records)
      account?.delivering?.spend(records: records, bytes: UInt64(max(writes.bytes - before, 0)))
    }
    while writes.work < limit, writes.hasRoom, let subscription = readySubscriptions.popFirst() {
      guard case .ready = subscription.place else { continue }
      subscription.place = .none
      let room = limit - writes.work
      let bytes = readySubscriptions.isEmpty ? room : min(room, Self.portion)
      let spent = subscription.credit.spent
      defer { records &+= subscription.credit.spent &- spent }
      switch subscription.produce(into: writes, bytes: bytes) {
      case .more:
        subscription.place = .ready
        readySubscriptions.append(subscription)
      case .waiting:
        subscription.wait()
      case .starved: subscription.starve()
      case .loading: break
      case .ended:
        let (stream, cursor) = (subscription.stream, subscription.endedCursor)
        endStream(stream)
        if let cursor { attach(CommittingStream(cursor, stream: stream, connection: self), to: stream) }
      }
    }
  }

  private func settlePublications() {
    guard !duePublications.isEmpty else { return }
    for publication in duePublications { publication.settleDue() }
    duePublications.removeAll(keepingCapacity: duePublications.capacity <= 16)
  }
}
