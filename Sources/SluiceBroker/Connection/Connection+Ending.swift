import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

// Ends a connection: with an error, at once, or in an orderly way with the broker.
extension Connection {
  /// How long pending answers may take to be written.
  private static let lingerTime = Duration.seconds(1)
  /// While draining, the broker waits for a subscriber that could request more if the broker has received something from its client this recently.
  private static let drainPatience = Duration.milliseconds(500)

  /// Sends an error to the client and closes. Producers first get the acknowledgements of their stored records.
  func fail(_ error: WireError) {
    lastWord = lastWord ?? error
    streams.acknowledgeAll()
    send(Fault(error))
    finish()
  }

  /// Sends the answers so far, then closes.
  func finish() {
    guard case .open = phase else { return }
    phase = .finishing(until: context.loop.now + Self.lingerTime)
    releaseStreams()
    stream.readsPaused = true
    context.makeReady(self)
  }

  /// Closes at once, and releases all streams.
  ///
  /// - Parameters:
  ///   - abruptly: true to reset the connection instead of waiting for the client to close its half.
  ///   - reason: the reason to report, unless an error was sent to the client before.
  func close(abruptly: Bool = false, because reason: String = "the broker stops") {
    if case .closed = phase { return }
    phase = .closed
    client.report {
      .closed(
        $0, reason: lastWord?.message ?? reason, code: lastWord?.code,
        milliseconds: (context.loop.now - acceptedAt).clampedMilliseconds)
    }
    releaseStreams()
    pending = PendingOutput()
    context.buffered(-buffered)
    buffered = 0
    if abruptly { stream.abort() } else { stream.close() }
    context.remove(self)
    streams.close()
    if isOwnPart { core.releaseOwn() } else { core.release(from: origin) }
  }

  private func releaseStreams() {
    streams.releaseAll()
    countTables(0)
    client.leave(now: context.loop.now)
  }

  /// Sends the client a notice that the broker is stopping. Requested records are still delivered; see ``sweep()``.
  func drain() {
    guard !isDraining, case .open = phase else { return }
    isDraining = true
    guard !isInHandshake else { return finish() }
    streams.session.drain()
    send(
      GoAway(code: .shuttingDown, message: "the broker is stopping; connect to another or try again later"))
  }

  /// Whether every subscription has all requested records of topics that no longer grow.
  var isDrained: Bool {
    guard pending.isEmpty, streams.answers.isEmpty else { return false }
    let silence = Duration.nanoseconds(keepalive.silence(at: context.loop.now.nanoseconds))
    let isPatient = silence < Self.drainPatience
    return streams.session.numbers.allSatisfy {
      streams.session.object($0)?.isDrained(isPatient: isPatient) ?? true
    }
  }
}
