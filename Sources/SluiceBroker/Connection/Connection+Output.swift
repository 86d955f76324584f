import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

// Writes answers, requested records, and producers' acknowledgements and grants. At the end of a turn.
extension Connection {
  /// The bytes that a connection writes before the next one is served.
  private static let turnBudget = 1 << 20

  /// Writes pending output until the transport is full or the turn's budget is used up. Called outside of the end of a turn.
  func flush() { flush(in: context) }

  /// Writes pending output like ``flush()``. Called by the connection's context at the end of a turn.
  func flush(in context: LoopContext) {
    writeOut(in: context)
    streams.freeUnused()
    if !streams.answers.isEmpty || !pending.isEmpty || buffered != 0 || stream.heldBytes != 0 {
      countBuffered()
    }
  }

  /// Bytes of a PING.
  private static let pingSize = Ping(token: 0).encoded(stream: 0).count

  private func writeOut(in context: LoopContext) {
    if case .closed = phase { return }
    if !pending.isEmpty {
      let waited = pending.byteCount
      switch pending.write(to: stream) {
      case .failure(let error): return streamFailed(error)
      // The transport accepted pending bytes, so the client has read some. That counts as activity: a PING may take long to reach the client behind
      // unread bytes, and the broker can't receive anything while the client's input is paused. If only a PING was pending, only its answer counts.
      case .success(let count):
        countSent(count, in: context)
        if count > 0, waited > Self.pingSize { keepalive.heard(at: context.loop.now.nanoseconds) }
        if count > 0 { stalledSince = pending.isEmpty ? nil : context.loop.now }
      }
      guard pending.isEmpty else { return }
    }
    if client.workBudget.isExhausted || streams.hasUnfinishedWork, case .open = phase { resumeWork() }
    let hasOldAnswers = !streams.answers.isEmpty
    streams.settlePublications()
    let writes = context.writes
    var budget = Self.turnBudget
    while budget > 0 {
      writes.append(&streams.answers)
      streams.serveSubscriptions(writes)
      budget -= writes.takePassed()
      guard !writes.isEmpty else { break }
      budget -= writes.bytes
      countSent(writes.bytes, in: context)
      let appendedAt = writes.takeSample()
      if context.hasLostLease || hasOldAnswers && context.losesLease {
        // The process was paused since the check of the lease in this turn. The records may not be stored, so they aren't sent; the client gets them
        // from the topic's next owner.
        writes.drop()
        return close(because: "the node's lease ran out while records were on their way")
      }
      switch writes.write(to: stream) {
      case .success(let rest):
        pending = rest
        if !rest.isEmpty {
          stalledSince = context.loop.now
          if stream.isLocal { keepalive.heard(at: context.loop.now.nanoseconds) }
          countSent(-rest.byteCount, in: context)
        }
      case .failure(let error): return streamFailed(error)
      }
      if let appendedAt { context.delivered(appendedAt: appendedAt) }
      // The answers are written. Records still to come, which may be endless, must not keep the client's input paused.
      if waitsForAnswers, case .open = phase { resumeReading() }
      guard pending.isEmpty else { return }
    }
    if streams.hasReady { return streams.isHeldByRate ? () : context.makeReady(self) }
    if case .finishing = phase { return close() }
  }
}
