import SluiceAccess
import SluiceIO
import SluiceLog
import SluiceWire

// Durable cursors, as far as they are a connection's affair.
extension Connection {
  private static let cursorsPerPage = 200

  // MARK: Of subscriptions

  /// What a cursor's table knows of the subscription on `stream`.
  func cursorHolder(_ stream: UInt32) -> CursorTable.Holder {
    CursorTable.Holder { [reference] ticket, loss in
      reference.execute { $0.cursorLost(stream, ticket, loss) }
    }
  }

  private func cursorLost(_ stream: UInt32, _ ticket: CursorTable.Ticket, _ loss: CursorTable.Loss) {
    guard let subscription = subscription(stream), let durable = subscription.durable,
      durable.ticket == ticket
    else { return }
    refuse(stream, Fault(loss, ofCursor: durable.name, on: subscription.topic.name))
  }

  func commit(_ stream: UInt32, _ offset: UInt64) {
    if case .committing(let cursor) = handle(stream) { return cursor.commit(through: offset) }
    guard case .subscription(let consumer) = handle(stream) else { return }
    attempt(stream) { () throws(WireError) in
      guard let subscription = consumer as? Subscription else { throw DurablePlace.isMissing }
      try subscription.commit(through: offset)
    }
  }

  private func subscription(_ stream: UInt32) -> Subscription? {
    guard case .subscription(let consumer) = handle(stream) else { return nil }
    return consumer as? Subscription
  }

  // MARK: Requests

  func performCursorRequest(_ action: SessionAction) {
    switch action {
    case .listCursors(let stream, let topic, let after, let limit):
      attempt(stream) { () throws(WireError) in
        let topic = try self.topic(topic, for: .cursorList)
        workBudget.spend(topic.cursorCount, of: .cursors)
        topic.forgetGroups(
          idleFor: context.core.configuration.limits.cursorMemory, now: context.loop.now)
        let (page, more) = topic.cursors(
          after: after, limit: min(Int(limit), Self.cursorsPerPage), now: context.loop.now)
        answer(session.request(on: stream), Cursors(cursors: page, more: more), to: stream)
      }
    case .moveCursor(let stream, let frame):
      administer(.moveCursor(frame.name), of: frame.topic, stream) { () throws(WireError) in
        let topic = try topic(frame.topic, for: .cursorMove)
        let isAsked = findStart(frame.start, of: topic, stream) { connection, start in
          var frame = frame
          frame.start = start
          connection.performCursorRequest(.moveCursor(stream: stream, frame))
        }
        if isAsked { return false }
        if !topic.moveGroup(
          frame.name, to: frame.start, limits: context.core.configuration.limits, on: context)
        {
          try topic.moveCursor(
            frame.name, to: StartPosition(frame.start), now: context.loop.now,
            wallClock: context.loop.wallClock)
        }
        confirm(topic, of: frame.name, to: stream)
        return true
      }
    case .deleteCursor(let stream, let topic, let name):
      administer(.deleteCursor(name), of: topic, stream) { () throws(WireError) in
        let topic = try self.topic(topic, for: .cursorDelete)
        if !topic.deleteGroup(name, on: context) { try topic.deleteCursor(name, now: context.loop.now) }
        confirm(topic, of: name, to: stream)
        return true
      }
    default: break
    }
  }
}
