import Glibc
import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

/// What there is of a connection whose client is gone.
final class MQTTLeaving {
  /// Until when its messages wait for the broker's grants.
  var linger: TimerToken?
  /// Until when its will waits.
  var willTimer: TimerToken?
  /// The will, once it was sent to the broker.
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

  /// The session has ended: its state is kept, and its will goes its way.
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
    // A client that isn't answered has no session, and no will.
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

  /// Whether CONNACK was sent: it waits until the session is the log's.
  private var isAnswered: Bool { hold == nil || keeping.map { $0.kept > 0 } ?? true }

  private func leaveHub(_ departure: MQTTDeparture?) {
    guard let key else { return }
    // Before CONNACK the session isn't this connection's.
    guard let departure else { return hub.detach(key, self) }
    var kept = departure.state.map { keptSession($0, expiry: departure.expiry) }
    // A session that the next connection ends is there until that connection's client is answered.
    if isForgotten, !isSurrendered { kept = nil }
    if let session = kept, !hub.canKeep(session) {
      hub.note(.mqttSessionEnded(client: key.clientID, identity: key.identity))
      kept = nil
    }
    // The broker stops: what is owed then, the will among it, is for the next process.
    let isStopping = !opensStreams && part == nil && keeping != nil
    if hold != nil, let will = departure.will, !isSurrendered || isForgotten || departure.willDelay == 0 {
      // Whatever becomes of this process, the will is published by another one.
      kept = kept ?? keptSession([], expiry: 0)
      kept?.will = will
    }
    let mourns = !isSurrendered && departure.will != nil && departure.willDelay > 0
    hub.leave(key, self, kept: kept, mourns: mourns, isStopping: isStopping)
  }

  /// Another connection takes the session.
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
    // The session goes on with another connection.
    guard !isSurrendered else { return self.will = nil }
    guard let key, hub.holdWill(will, of: key) else { return publishWill() }
    madeLeaving().willTimer = loop.schedule(after: .seconds(Int64(delay))) { [weak self] in
      self?.settleWill(publishing: true)
    }
  }

  /// The delay of the will is over, or the client is back.
  func settleWill(publishing: Bool) {
    guard let leaving, let timer = leaving.willTimer.take() else { return }
    loop.cancel(timer)
    if let will { hub.releaseWill(will) }
    if let key { hub.mourned(key, self) }
    if publishing, phase == .leaving || isCutOff { publishWill() } else { will = nil }
    guard phase != .closed else { return }
    // It has as long as messages have that a client has left.
    loop.cancel(&leaving.linger)
    leaving.linger = loop.schedule(after: Self.linger) { [weak self] in self?.finish() }
    endTurn()
  }

  /// Ends the link when everything that the client has published is in the log.
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
    // A will with a delay waits on: the hub keeps the connection for it.
    let waiting = leaving?.willTimer.take()
    cancelTimers()
    leaving?.willTimer = waiting
    clear()
  }

  /// The broker has refused the connection before CONNECT came: what is left waits for that only.
  func hand(to error: MQTTError) {
    phase = .closed
    cancelTimers()
    clear()
    handle.refuse(session, error, isRead: isRead)
  }

  /// The broker has closed the connection before the will was in the log.
  private func resendWill() {
    guard let sentWill = leaving?.sentWill, awaitsWill else { return }
    hub.publish(sentWill, of: self)
  }

  /// Whether the will was sent and isn't known to be in the log.
  private var awaitsWill: Bool {
    publishing?.byStream.values.contains { $0.role == .will && !$0.isInLog } ?? false
  }

  /// No other process needs to publish the will, if it is in the log.
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
  /// Why a door ends a connection of a client of MQTT; nil for a client that has left by itself, and for what the broker has refused, whose reason it knows.
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
  /// What it takes of memory while it waits, in bytes.
  var heldBytes: Int { topic.utf8.count + payload.count + properties.bytes.count }
}

extension MQTTReason {
  /// The reason that says most of what an error of the broker says.
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
