import Glibc
import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// State of a connection whose client has disconnected.
final class MQTTLeaving {
  /// Limits how long its messages wait for the broker's grants.
  var linger: TimerToken?
  /// Runs until the will's delay has passed.
  var willTimer: TimerToken?
  /// The will, set when it is sent to the broker.
  @OutOfLine var sentWill: MQTTConnect.Will? = nil
}

// The end of the connection, of its session, and its will.
extension MQTTConnection {
  func madeLeaving() -> MQTTLeaving {
    if let leaving { return leaving }
    let made = MQTTLeaving()
    leaving = made
    return made
  }

  /// The client's session has ended: stores its state, and publishes its will or schedules that.
  func depart(_ departure: MQTTDeparture?) {
    guard phase == .open else { return }
    phase = .leaving
    closeTransport()
    countTraffic()
    loop.cancel(&handle.timer)
    for feed in feeds.values where native.cancel(feed.stream) { link.send(Cancel(), stream: feed.stream) }
    removeFeeds()
    waitingRequests = []
    held = []
    // A client that got no CONNACK has no session and no will.
    let departure = isAnswered ? departure : nil
    leaveHub(departure)
    if let departure, let will = departure.will { mourn(will, after: departure.willDelay) }
    let leaving = madeLeaving()
    leaving.linger = loop.schedule(after: Self.linger) { [weak self] in
      guard let self, leaving.willTimer == nil else { return }
      finish()
    }
    leaveWhenDone()
  }

  /// Whether CONNACK was sent: it waits until the roster's log contains the session.
  private var isAnswered: Bool { hold == nil || keeping.map { $0.kept > 0 } ?? true }

  private func leaveHub(_ departure: MQTTDeparture?) {
    guard let key else { return }
    // Before CONNACK the session doesn't belong to this connection.
    guard let departure else { return hub.detach(key, self) }
    var kept = departure.state.map { keptSession($0, expiry: departure.expiry) }
    // A session that the next connection ends is kept until that connection's client gets its CONNACK.
    if isForgotten, !isSurrendered { kept = nil }
    if let session = kept, !hub.canKeep(session) {
      hub.note(.mqttSessionEnded(client: key.clientID, identity: key.identity))
      kept = nil
    }
    // The broker stops: unfinished work, including the will, is left to the next process.
    let isStopping = !opensStreams && part == nil && keeping != nil
    if hold != nil, let will = departure.will, !isSurrendered || isForgotten || departure.willDelay == 0 {
      // With the will in the log, another process publishes it if this one fails.
      kept = kept ?? keptSession([], expiry: 0)
      kept?.will = will
    }
    let mourns = !isSurrendered && departure.will != nil && departure.willDelay > 0
    hub.leave(key, self, kept: kept, mourns: mourns, isStopping: isStopping)
  }

  /// Another connection takes over the session.
  func surrender(isClean: Bool) {
    guard phase == .open else { return }
    isSurrendered = true
    isForgotten = isClean
    play { session, output, perform in session.takenOver(output: &output, perform) }
    endTurn()
  }

  private func mourn(_ will: MQTTConnect.Will, after delay: UInt32) {
    self.will = will
    // The broker stops: the will is kept for its next process.
    guard opensStreams || keeping == nil else { return self.will = nil }
    if delay == 0 || isSurrendered && isForgotten { return publishWill() }
    // Another connection continues the session.
    guard !isSurrendered else { return self.will = nil }
    guard let key, hub.holdWill(will, of: key) else { return publishWill() }
    madeLeaving().willTimer = loop.schedule(after: .seconds(Int64(delay))) { [weak self] in
      self?.settleWill(publishing: true)
    }
  }

  /// Ends the wait for the will's delay, because the delay has passed or the client has reconnected.
  func settleWill(publishing: Bool) {
    guard let leaving, let timer = leaving.willTimer.take() else { return }
    loop.cancel(timer)
    if let will { hub.releaseWill(will) }
    if let key { hub.mourned(key, self) }
    if publishing, phase == .leaving || isCutOff { publishWill() } else { will = nil }
    guard phase != .closed else { return }
    // The will has as much time as messages of a disconnected client.
    loop.cancel(&leaving.linger)
    leaving.linger = loop.schedule(after: Self.linger) { [weak self] in self?.finish() }
    endTurn()
  }

  /// Ends the link once all messages of the client are in the log.
  func leaveWhenDone() {
    guard phase == .leaving, leaving?.willTimer == nil, requested == nil else { return }
    let isSent = publishing?.byStream.values.allSatisfy { $0.role == .will ? $0.isInLog : $0.tokens.isEmpty }
    if isSent ?? true { finish() }
  }

  func finish() {
    guard phase == .leaving else { return }
    if hold != nil { endWill() }
    phase = .closed
    cancelTimers()
    link.end(error)
    clear()
  }

  /// The broker has closed the connection.
  func linkClosed() {
    guard phase != .closed else { return }
    isCutOff = true
    if phase == .open {
      play { session, output, perform in
        session.close(.serverShuttingDown, "the broker ends the connection", output: &output, perform)
      }
    }
    resendWill()
    closeTransport()
    phase = .closed
    // A delayed will keeps waiting: the hub retains the connection for it.
    let waiting = leaving?.willTimer.take()
    cancelTimers()
    leaving?.willTimer = waiting
    clear()
  }

  /// The broker has refused the connection before CONNECT. The remaining session waits only to send this error.
  func hand(to error: MQTTError) {
    phase = .closed
    cancelTimers()
    clear()
    handle.refuse(session, error, isRead: isRead)
  }

  /// Publishes the will again if the broker closed the connection before the log contained it.
  private func resendWill() {
    guard let sentWill = leaving?.sentWill, awaitsWill else { return }
    hub.publish(sentWill, of: self)
  }

  /// Whether the will was sent and may not be in the log.
  private var awaitsWill: Bool {
    publishing?.byStream.values.contains { $0.role == .will && !$0.isInLog } ?? false
  }

  /// Reports the will as done if it is in the log, so that no other process publishes it; otherwise publishes it again.
  private func endWill() {
    guard let sentWill = leaving?.sentWill else { return }
    if awaitsWill {
      hub.publish(sentWill, of: self)
    } else {
      hub.willDone(of: self)
    }
  }

  private func cancelTimers() {
    stopKeeping()
    loop.cancel(&handle.timer)
    guard let leaving else { return }
    loop.cancel(&leaving.linger)
    loop.cancel(&leaving.willTimer)
  }

  private func clear() {
    publishing = nil
    subscriptions = ShortTable()
    waitingRequests = []
    removeFeeds()
    held = []
    unread = []
    handle.end()
  }
}

extension IOError {
  /// The gateway's reason to end a connection of an MQTT client; nil if the client disconnected by itself, or if the broker refused it, which then knows the
  /// reason.
  init?(serving peer: SocketAddress, _ reason: MQTTReason, _ message: String) {
    let action = "serve \(peer)"
    switch reason {
    case _ where reason.rawValue < 0x80: return nil
    case .badCredentials, .notAuthorized, .quotaExceeded, .serverBusy, .serverShuttingDown,
      .administrativeAction:
      return nil
    case .sessionTakenOver, .unspecified, .implementationSpecific, .serverUnavailable:
      self.init(action: action, code: ECONNABORTED, reason: message)
    case .keepAliveTimeout: self.init(action: action, fault: .silence, reason: message)
    default: self.init(action: action, fault: .violation, reason: message)
    }
  }
}

extension MQTTConnect.Will {
  /// The memory of a waiting will, in bytes.
  var heldBytes: Int { topic.utf8.count + payload.count + properties.bytes.count }
}

extension MQTTReason {
  /// The closest reason for an error of the broker.
  init(_ code: ErrorCode) {
    self =
      switch code {
      case .authenticationRequired, .authenticationFailed, .credentialsExpired: .badCredentials
      case .accessRevoked, .permissionDenied: .notAuthorized
      case .tooManyConnections, .limitReached: .quotaExceeded
      case .tooManyAttempts: .serverBusy
      case .shuttingDown: .serverShuttingDown
      case .closedByOperator: .administrativeAction
      case .keepaliveTimeout, .handshakeTimeout, .idleTimeout: .keepAliveTimeout
      case .invalidTopic: .topicNameInvalid
      case .recordTooLarge, .frameTooLarge: .packetTooLarge
      case .topicMoved, .storageFull, .storageFailed: .implementationSpecific
      default: .unspecified
      }
  }
}
