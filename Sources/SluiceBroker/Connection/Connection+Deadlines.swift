import SluiceIO
import SluiceSession
import SluiceWire
import Synchronization

// What time brings: silence, stalls, and deadlines.
extension Connection {
  /// Called now and then: pings a silent peer, gives up a dead one.
  func sweep() {
    let now = context.loop.now
    switch phase {
    case .closed: return
    case .finishing(let deadline): return now >= deadline ? close() : ()
    case .open: break
    }
    if isInHandshake {
      if now >= handshakeDeadline {
        core.metrics.add(.handshakeTimeouts)
        fail(handshakeTimeout)
      }
      return
    }
    if checkExpiry() { return }
    if waitsForMemory || (isAtWork && hasWriteDeadline) { keepalive.heard(at: now.nanoseconds) }
    switch keepalive.check(at: now.nanoseconds) {
    case .sleep: break
    case .ping: send(Ping(token: id), stream: 0)
    case .expired: return giveUp()
    }
    pending.releaseRetiredSegments()
    countBuffered()
    if let stalledSince, isOver(core.configuration.limits.write, since: stalledSince, now) {
      return leaveUnread()
    }
    let patience = core.configuration.limits.idle
    if patience > .zero {
      if open.subscriptions > 0 || open.publications > 0 || session.hasRequests { lastUse = now }
      if isOver(patience, since: lastUse, now) { return endIdle() }
    }
    if isDraining, core.stage.load(ordering: .acquiring) == .draining, isDrained { finish() }
  }

  /// Whether a client that reads nothing is given up for that. While the broker works on what the client has sent, it reads nothing more,
  /// and silence says nothing of the client; one that leaves its answers unread for ever has this deadline, or the keepalive's without it.
  private var hasWriteDeadline: Bool {
    stalledSince == nil || core.configuration.limits.write > .zero
  }

  private func isOver(_ limit: Duration, since time: MonotonicTime, _ now: MonotonicTime) -> Bool {
    limit > .zero && now >= time + limit
  }

  /// The peer reads nothing: what it is told of that it won't read either.
  private func leaveUnread() {
    core.metrics.add(.writeTimeouts)
    fail(
      WireError(
        .writeTimeout,
        "the client has read nothing for \(core.configuration.limits.write) of what was sent to it; ask only for what is read, or have the time raised (--write-timeout)"
      ))
    flush()
    close(abruptly: true)
  }

  private func endIdle() {
    core.metrics.add(.idleTimeouts)
    fail(
      WireError(
        .idleTimeout,
        "nothing was open on this connection for \(core.configuration.limits.idle); connect again when there is something to do, or have the time raised (--idle-timeout)"
      ))
  }

  /// All connections together have too much waiting, and this one the most of them.
  func closeForBuffering() {
    core.metrics.add(.closedForBuffering)
    core.configuration.report(
      .closedForBuffering(connection: id, client: clientName, bytes: buffered))
    fail(
      WireError(
        .limitReached,
        "the broker's connections have more than \(core.configuration.limits.buffered) bytes waiting, which is the limit, and this one the most of them; read what is sent, and send frames whole"
      ))
    flush()
    close(abruptly: true)
  }

  /// The peer is dead, as far as one can know: says so, for the case that only its side of the line is, and frees everything.
  private func giveUp() {
    core.metrics.add(.keepaliveTimeouts)
    let deadline = (keepalive.deadline ?? 0) / 1_000_000
    fail(WireError(.keepaliveTimeout, "nothing was heard from the client for \(deadline) ms"))
    flush()
    // Nobody is there to close the other half.
    close(abruptly: true)
  }

  private var handshakeTimeout: WireError {
    let limit = core.configuration.limits.handshake
    return session.phase == .handshake
      ? WireError(.handshakeTimeout, "no HELLO came within \(limit)")
      : WireError(.handshakeTimeout, "the client couldn't be authenticated within \(limit); try again later")
  }
}
