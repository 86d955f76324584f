import SluiceIO

/// The session's deadlines.
extension NATSSession {
  /// The time at which ``advance(to:)`` must be called; nil without a deadline.
  public var nextDeadline: MonotonicTime? {
    var earliest: MonotonicTime?
    func consider(_ time: MonotonicTime?) {
      guard let time else { return }
      earliest = earliest.map { min($0, time) } ?? time
    }
    consider(phaseDeadline)
    consider(traffic.nextDeadline)
    switch phase {
    case .waiting(let time): consider(time)
    case .open, .leaving: consider(keepalive.deadline)
    case .idle, .connecting, .handshaking, .closed: break
    }
    return earliest
  }

  /// Handles all deadlines up to `now`.
  public mutating func advance(to now: MonotonicTime) -> NATSAction {
    var actions: [NATSAction] = []
    if let due = traffic.nextDeadline, due <= now {
      let server = server
      while let (number, error) = traffic.popOverdue(at: now, server: server) {
        actions.append(.failed(number, error))
      }
    }
    switch phase {
    case .waiting(let time) where time <= now:
      actions += follow(.connect, at: now)
    case .connecting, .handshaking:
      guard let phaseDeadline, phaseDeadline <= now else { break }
      let what =
        phase == .connecting
        ? "no connection to the NATS server within \(options.connectTimeout); check the address and the network"
        : "the server took the connection and didn't finish the handshake within \(options.connectTimeout); is it a NATS server?"
      actions += lose(NATSError(.connectTimeout, what), at: now)
    case .leaving where traffic.requestCount == 0 || phaseDeadline.map { $0 <= now } ?? false:
      actions += leaveIfDone(at: now, isLate: true)
    case .open, .leaving: actions += keepAlive(at: now)
    case .idle, .waiting, .closed: break
    }
    return NATSAction(actions)
  }

  private mutating func keepAlive(at now: MonotonicTime) -> [NATSAction] {
    switch keepalive.advance(to: now) {
    case .none: return []
    case .ping:
      output.append { NATSEncoder.ping(into: &$0) }
      return []
    case .expired(let silence):
      return lose(
        NATSError(
          .keepaliveTimeout, "the server was silent for \(silence); it hangs, or the network is gone"),
        at: now)
    }
  }
}
