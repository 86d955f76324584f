import SluiceIO
import SluiceMQTT
import SluiceSession
import SluiceWire

// Publications that the broker has ended temporarily, because another node serves the topic or its store accepts no records. The client waits; a message is
// reported as failed only if it certainly isn't in the log.
extension MQTTConnection {
  private static let longestDelay = Duration.seconds(2)

  /// Handles the end of a publication's stream.
  ///
  /// - Returns: whether the publication waits or the connection is closed; false if its messages must be refused.
  func waits(_ stream: UInt32, _ error: WireError) -> Bool {
    guard phase != .closed, let publication = publishing?.byStream[stream] else { return false }
    let isReplaced = error.code == .producerFenced && !publication.isSettled
    guard error.code.holdsPublications || isReplaced else { return false }
    if phase == .open, isReplaced || publication.hasUnknown {
      return endUnanswered(stream, publication, error)
    }
    guard error.code.holdsPublications else { return false }
    publishing?.byStream[stream] = nil
    openAgain(publication)
    return true
  }

  /// Closes the connection because it is unknown which of the messages are in the log. None is answered, so the client sends them again on its next
  /// connection.
  private func endUnanswered(_ stream: UInt32, _ publication: MQTTPublication, _ error: WireError) -> Bool {
    publishing?.byStream[stream] = nil
    pendingBytes -= publication.pendingBytes
    play { session, output, perform in
      session.close(
        .serverUnavailable,
        "it isn't known which messages to topic \(publication.topic) are stored: \(error.message); connect again, and send again what wasn't acknowledged",
        output: &output, perform)
    }
    return true
  }

  private func openAgain(_ publication: MQTTPublication) {
    let before = publication.pendingBytes
    publication.moved(isKnown: isLasting || publication.role == .will)
    pendingBytes += publication.pendingBytes - before
    // Meanwhile it counts as one of the client's publications.
    guard let number = publishing?.wait(publication) else { return }
    let delay = min(Self.moveDelay * (1 << min(publication.attempts - 1, 8)), Self.longestDelay)
    _ = loop.schedule(after: delay) { [weak self] in
      guard let self, phase != .closed, publishing?.byStream.removeValue(forKey: number) != nil else {
        return
      }
      publication.isMoving = false
      open(publication)
      runLater()
      endTurn()
    }
  }
}
