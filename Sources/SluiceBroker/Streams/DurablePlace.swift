import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire

/// The durable cursor of a subscription. The only owner of the cursor's position.
///
/// ```
///   offset ──►   committed ................ sent through ................... looked through
///                | sent, and not committed | unwanted: nothing to commit     |
/// ```
///
/// Once the subscriber has committed all records sent to it, the cursor also passes records that the broker skips: they don't match the filter, newer ones
/// have replaced them, or the topic has dropped them.
struct DurablePlace {
  let name: String
  let ticket: CursorTable.Ticket
  /// The offset of the first record that the subscriber hasn't committed.
  private(set) var committed: UInt64
  /// The offset of a record that can't be sent: the cursor doesn't pass it.
  private var barrier = UInt64.max
  /// Whether ``committed`` has changed since the topic last stored it.
  private var hasMoved = false

  init(_ use: Topic.CursorUse, name: String) {
    self.name = name
    ticket = use.ticket
    committed = use.committed
  }

  static var isMissing: WireError {
    WireError(.unsupported, "COMMIT needs a subscription with a durable cursor; name one in SUBSCRIBE")
  }

  /// Moves the cursor over skipped records. The broker has read the records before an offset, and sends none of those after the last one that it has sent.
  ///
  /// - Parameter sent: the offset after the last sent record; the start of the subscription if none was sent.
  mutating func looked(through offset: UInt64, sent: UInt64) {
    if committed >= sent { move(to: min(offset, barrier)) }
  }

  /// Stops the cursor at a record that isn't sent and ends the stream.
  mutating func stop(at offset: UInt64) { barrier = min(barrier, offset) }

  /// Commits all records before an offset.
  ///
  /// - Parameters:
  ///   - looked: the offset before which the broker has read all records.
  ///   - sent: as for ``looked(through:sent:)``.
  mutating func commit(through offset: UInt64, looked: UInt64, sent: UInt64) {
    move(to: min(offset, barrier))
    self.looked(through: looked, sent: sent)
  }

  private mutating func move(to offset: UInt64) {
    guard offset > committed else { return }
    committed = offset
    hasMoved = true
  }

  /// Returns the position if it has changed since the last call.
  mutating func takeMoved() -> UInt64? {
    guard hasMoved else { return nil }
    hasMoved = false
    return committed
  }
}

/// The durable cursor of a subscription after the last frame of its stream. Its subscriber may still commit the last records, until it reuses the stream's
/// number.
struct EndedCursor {
  let topic: Topic
  private var place: DurablePlace
  /// The offsets before which the broker has read and has sent all records.
  private let (looked, sent): (UInt64, UInt64)

  init(topic: Topic, _ place: DurablePlace, looked: UInt64, sent: UInt64) {
    self.topic = topic
    self.place = place
    (self.looked, self.sent) = (looked, sent)
  }

  mutating func commit(through offset: UInt64) {
    guard offset <= looked else { return }
    place.commit(through: offset, looked: looked, sent: sent)
    if let moved = place.takeMoved() { topic.commit(place.ticket, through: moved) }
  }
}

extension SubscriptionStream {
  /// Sends SUBSCRIBED. If the durable cursor or the number of the topic's epoch is new, it is sent only when that is on disk. Otherwise, after a crash, a
  /// subscriber could return with a cursor or an epoch that the broker doesn't know.
  func opened(_ frame: Subscribed, missed: UInt64, isNew: Bool) {
    let cursor = isNew ? durable?.name : nil
    guard topic.storage != nil, cursor != nil || topic.isEpochUnsaved else {
      return confirm(frame, missed: missed)
    }
    isOpening = true
    let continuation = streams.continuation(of: stream)
    topic.whenCommitted(of: cursor) { fault in
      continuation.resume(fault) { (subscription: SubscriptionStream) in
        subscription.isOpening = false
        subscription.confirm(frame, missed: missed)
      }
    }
  }

  private func confirm(_ frame: Subscribed, missed: UInt64) {
    streams.send(frame, stream: stream)
    if missed > 0 {
      loopState.traffic.missed(missed)
      streams.send(Lag(missed: missed, nextOffset: frame.nextOffset), stream: stream)
    }
    streams.makeReady(self)
  }

  /// Ends the subscription: another client now uses its durable cursor, or has moved or deleted it.
  func cursorLost(_ loss: CursorTable.Loss) {
    guard let durable else { return }
    streams.refuse(stream, Fault(loss, ofCursor: durable.name, on: topic.name))
  }

  /// Commits all records before an offset.
  ///
  /// - Throws: when records up to there weren't sent, or the subscription has no durable cursor.
  func commit(through offset: UInt64) throws(WireError) {
    guard var durable else { throw DurablePlace.isMissing }
    guard offset <= nextOffset else {
      throw WireError(
        .unsupported,
        "COMMIT through offset \(offset), where records before \(nextOffset) were sent; commit what has come"
      )
    }
    durable.commit(through: offset, looked: nextOffset, sent: sentThrough)
    self.durable = durable
    storePlace()
  }

  /// Stores the cursor's position in the topic if it has changed: once per turn, regardless of the number of records.
  func storePlace() {
    guard let ticket = durable?.ticket, let moved = durable?.takeMoved() else { return }
    topic.commit(ticket, through: moved)
  }

  /// Releases the cursor when the subscription ends; it keeps its position for the next subscription.
  func leaveCursor(now: MonotonicTime) {
    guard let durable else { return }
    self.durable = nil
    topic.leaveCursor(durable.ticket, at: durable.committed, now: now)
  }
}
