import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire
import Synchronization

// Keepalive, write and idle deadlines.
extension Connection {
  /// Checks all deadlines. Called periodically: pings a silent client, and closes the connection of a dead one.
  func sweep() {
    let now = context.loop.now
    switch phase {
    case .closed: return
    case .finishing(let deadline): return now >= deadline ? close() : ()
    case .open: break
    }
    if isInHandshake {
      if now >= acceptedAt + core.configuration.limits.handshake {
        core.metrics.add(.handshakeTimeouts)
        fail(handshakeTimeout)
      }
      return
    }
    if checkExpiry() { return }
    if waitsForMemory || (isAtWork && hasWriteDeadline) { keepalive.heard(at: now.nanoseconds) }
    if mayBeSilent {
      switch keepalive.check(at: now.nanoseconds) {
      case .sleep: break
      case .ping: send(Ping(token: id))
      case .expired: return giveUp()
      }
    }
    pending.releaseRetiredSegments()
    countBuffered()
    if let stalledSince, isOver(core.configuration.limits.write, since: stalledSince, now) {
      return leaveUnread()
    }
    let patience = core.configuration.limits.idle
    if patience > .zero {
      if streams.counts.subscriptions > 0 || streams.counts.publications > 0 || streams.session.hasRequests {
        lastUse = now
      }
      if isOver(patience, since: lastUse, now) { return endIdle() }
    }
    if isDraining, core.stage.present == .draining, isDrained { finish() }
  }

  /// Whether silence may mean that the client has disappeared. A gateway reports the loss of its client itself, so the broker pings one only while its
  /// output is stalled.
  private var mayBeSilent: Bool { !stream.isLocal || stalledSince != nil }

  /// Whether the write deadline covers a client that doesn't read. While the broker processes earlier input, it doesn't read, so the client's silence
  /// has no meaning. A client that never reads its answers meets this deadline or, if there is none, that of the keepalive.
  private var hasWriteDeadline: Bool {
    stalledSince == nil || core.configuration.limits.write > .zero
  }

  private func isOver(_ limit: Duration, since time: MonotonicTime, _ now: MonotonicTime) -> Bool {
    limit > .zero && now >= time + limit
  }

  /// Closes the connection of a client that reads nothing. The connection doesn't wait for the error to be sent, since the client won't read it either.
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

  /// Closes the connection because all connections together buffer too much, and this one the most.
  func closeForBuffering() {
    core.metrics.add(.closedForBuffering)
    core.configuration.report(
      .closedForBuffering(connection: id, client: client.name, bytes: buffered))
    fail(
      WireError(
        .limitReached,
        "the broker's connections buffer more than \(core.configuration.limits.buffered) bytes, which is the limit, and this one buffers the most; read what is sent, and send frames whole"
      ))
    flush()
    close(abruptly: true)
  }

  /// Closes the connection of a client that seems dead. The error still reaches the client if only the client's direction of the connection is broken.
  private func giveUp() {
    core.metrics.add(.keepaliveTimeouts)
    let deadline = (keepalive.deadline ?? 0) / 1_000_000
    fail(WireError(.keepaliveTimeout, "nothing was heard from the client for \(deadline) ms"))
    flush()
    // The client won't close its half.
    close(abruptly: true)
  }

  private var handshakeTimeout: WireError {
    let limit = core.configuration.limits.handshake
    return streams.session.phase == .handshake
      ? WireError(.handshakeTimeout, "no HELLO came within \(limit)")
      : WireError(.handshakeTimeout, "the client couldn't be authenticated within \(limit); try again later")
  }
}
