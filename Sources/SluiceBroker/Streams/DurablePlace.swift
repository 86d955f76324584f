import SluiceIO
import SluiceLog
import SluiceTopics
import SluiceWire

/// The durable cursor of a subscription: the one owner of where the cursor stands.
///
/// ```
///   offset ──►   committed ................ sent through ................... looked through
///                | sent, and not committed | unwanted: nothing to commit     |
/// ```
///
/// While the subscriber has committed everything that it was sent, the place follows the broker's look over records that it isn't sent: those
/// that a filter keeps back, that newer ones have replaced, or that the topic has dropped.
struct DurablePlace {
  let name: String
  let ticket: CursorTable.Ticket
  /// The offset of the first record that the subscriber has yet to deal with.
  private(set) var committed: UInt64
  /// The offset of a record that can't be sent: the place doesn't pass it.
  private var barrier = UInt64.max
  /// Whether the topic has yet to be told of ``committed``.
  private var hasMoved = false

  init(_ use: Topic.CursorUse, name: String) {
    self.name = name
    ticket = use.ticket
    committed = use.committed
  }

  static var isMissing: WireError {
    WireError(.unsupported, "COMMIT needs a subscription with a durable cursor; name one in SUBSCRIBE")
  }

  /// The broker has looked at the records before an offset, and sends none of those behind the last one that it has sent.
  ///
  /// - Parameter sent: the offset behind that one, or where the subscription began.
  mutating func looked(through offset: UInt64, sent: UInt64) {
    if committed >= sent { move(to: min(offset, barrier)) }
  }

  /// The record with that offset ends the stream and isn't sent.
  mutating func stop(at offset: UInt64) { barrier = min(barrier, offset) }

  /// The subscriber has dealt with everything before an offset.
  ///
  /// - Parameters:
  ///   - looked: the offset through which the broker has looked.
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

  /// Returns the place if it has moved since the last call.
  mutating func takeMoved() -> UInt64? {
    guard hasMoved else { return nil }
    hasMoved = false
    return committed
  }
}

/// The durable cursor of a subscription that was sent the last frame of its stream. Its subscriber may still commit the last records, until it uses the
/// stream's number for something else.
struct EndedCursor {
  let topic: Topic
  private var place: DurablePlace
  /// The offsets through which the broker has looked, and behind the last record that it has sent.
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
    durable.commit(through: offset, looked: nextOffset, sent: sentThrough)
    self.durable = durable
    storePlace()
  }

  /// Has the topic store where the cursor stands, if it has moved: once a turn, however many records were passed.
  func storePlace() {
    guard let ticket = durable?.ticket, let moved = durable?.takeMoved() else { return }
    topic.commit(ticket, through: moved)
  }

  /// The subscription is over: its cursor stays where it is, for the next subscription.
  func leaveCursor(now: MonotonicTime) {
    guard let durable else { return }
    self.durable = nil
    topic.leaveCursor(durable.ticket, at: durable.committed, now: now)
  }
}
