import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire

/// The durable cursor of a subscription, and the offset through which it was committed.
struct DurablePlace {
  let name: String
  let ticket: CursorTable.Ticket
  private(set) var committed: UInt64

  init(_ use: Topic.CursorUse, name: String) {
    self.name = name
    ticket = use.ticket
    committed = use.committed
  }

  static var isMissing: WireError {
    WireError(.unsupported, "COMMIT needs a subscription with a durable cursor; name one in SUBSCRIBE")
  }

  /// Returns false when that was committed already.
  mutating func commit(through offset: UInt64) -> Bool {
    guard offset > committed else { return false }
    committed = offset
    return true
  }
}

/// The durable cursor of a subscription that was sent the last frame of its stream. Its subscriber may still commit the last records, until it uses the
/// stream's number for something else.
struct EndedCursor {
  let topic: Topic
  let ticket: CursorTable.Ticket
  let sentThrough: UInt64

  func commit(through offset: UInt64) {
    if offset <= sentThrough { topic.commit(ticket, through: offset) }
  }
}

extension SubscriptionStream {
  /// Sends SUBSCRIBED: at once, unless its durable cursor is new, or the number of the topic's epoch. Then when that is on
  /// disk, or a crash would leave a subscriber that comes back with a cursor, or an epoch, that the broker doesn't know.
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

  /// Another client uses its durable cursor now, or has moved or deleted it.
  func cursorLost(_ loss: CursorTable.Loss) {
    guard let durable else { return }
    streams.refuse(stream, Fault(loss, ofCursor: durable.name, on: topic.name))
  }

  /// The subscriber has dealt with everything before that offset.
  ///
  /// - Throws: when it wasn't sent so much, or has no durable cursor.
  func commit(through offset: UInt64) throws(WireError) {
    guard var durable else { throw DurablePlace.isMissing }
    guard offset <= nextOffset else {
      throw WireError(
        .unsupported,
        "COMMIT through offset \(offset), where records before \(nextOffset) were sent; commit what has come"
      )
    }
    // What the filter has kept back behind the last record that was sent is dealt with, too.
    guard durable.commit(through: offset >= sentThrough ? nextOffset : offset) else { return }
    self.durable = durable
    topic.commit(durable.ticket, through: durable.committed)
  }

  /// The subscription is over: its cursor stays where it was committed, for the next subscription.
  func leaveCursor(now: MonotonicTime) {
    guard let durable else { return }
    self.durable = nil
    let isAllDone = durable.committed >= sentThrough
    topic.leaveCursor(durable.ticket, at: isAllDone ? nextOffset : durable.committed, now: now)
  }
}
