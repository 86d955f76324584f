import SluiceIO
import SluiceSession
import SluiceWire

// How a connection ends: with an error, at once, or in an orderly way with the broker.
extension Connection {
  /// How long what was answered may take to be written.
  private static let lingerTime = Duration.seconds(1)
  /// While draining, a subscriber that could ask for more is waited for as long as it did something this recently.
  private static let drainPatience = Duration.milliseconds(500)

  /// Tells the peer what it did wrong, and closes. Its producers learn first which of their records are kept.
  func fail(_ error: WireError) {
    lastWord = lastWord ?? error
    for number in session.numbers { object(PublicationStream.self, on: number)?.acknowledge() }
    send(Fault(error), stream: 0)
    finish()
  }

  /// Sends what was answered so far, and nothing more.
  func finish() {
    guard case .open = phase else { return }
    phase = .finishing(until: context.loop.now + Self.lingerTime)
    releaseStreams()
    stream.readsPaused = true
    context.makeReady(self)
  }

  /// Closes at once. The peer's subscriptions and publications are gone with it.
  ///
  /// - Parameters:
  ///   - abruptly: true to reset the line rather than to wait for the peer's half to be closed too.
  ///   - reason: why, unless the peer was told something else before.
  func close(abruptly: Bool = false, because reason: String = "the broker stops") {
    if case .closed = phase { return }
    phase = .closed
    report(
      .closed(
        asClient, reason: lastWord?.message ?? reason, code: lastWord?.code,
        milliseconds: (context.loop.now - acceptedAt).wholeMilliseconds))
    releaseStreams()
    pending = PendingOutput()
    context.buffered(-buffered)
    buffered = 0
    if abruptly { stream.abort() } else { stream.close() }
    context.remove(self)
    clearReference()
    core.release(from: origin)
  }

  private func releaseStreams() {
    abandonAttempt()
    for number in session.numbers { releaseStream(number) }
    leaveAccount()
    core.storage?.waiters.remove(connection: id)
    session = ServerSession()
    keptTables.set(to: 0)
    duePublications = []
    readySubscriptions = ReadyQueue()
    unfinishedWork = ReadyQueue()
  }

  /// The broker is stopping: says so. What is granted is still delivered; see ``sweep()``.
  func drain() {
    guard !isDraining, case .open = phase else { return }
    isDraining = true
    guard !isInHandshake else { return finish() }
    session.drain()
    send(
      GoAway(code: .shuttingDown, message: "the broker is stopping; connect to another or try again later"),
      stream: 0)
  }

  /// Whether every subscription has what it may have of topics that no longer grow.
  var isDrained: Bool {
    guard pending.isEmpty, answers.isEmpty else { return false }
    let silence = Duration.nanoseconds(keepalive.silence(at: context.loop.now.nanoseconds))
    let isPatient = silence < Self.drainPatience
    return session.numbers.allSatisfy { session.object($0)?.isDrained(isPatient: isPatient) ?? true }
  }
}
