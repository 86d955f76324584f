import SluiceSession
import SluiceTopics
import SluiceWire

/// A subscription that waits for the store before it begins.
final class PendingSubscription: ServerStream {
  var kind: StreamKind { .subscription }
  func release() {}
  func reconsider() throws(WireError) {}
  func isDrained(isPatient: Bool) -> Bool { true }
}

/// A subscription with a durable cursor that was sent the last frame of its stream. Its subscriber hasn't dealt with the last records then, and commits
/// them when it has: up to when it uses the stream's number for something else.
final class CommittingStream: ServerStream {
  private unowned let connection: Connection
  private let stream: UInt32
  private let cursor: EndedCursor

  init(_ cursor: EndedCursor, stream: UInt32, connection: Connection) {
    self.cursor = cursor
    self.stream = stream
    self.connection = connection
  }

  var kind: StreamKind { .committing }
  func release() {}
  func isDrained(isPatient: Bool) -> Bool { true }

  func reconsider() throws(WireError) {
    if try connection.denial(of: .subscribe, on: cursor.topic.name) != nil {
      connection.releaseStream(stream)
    }
  }

  func commit(through offset: UInt64) {
    cursor.commit(through: offset)
  }
}

// MARK: - The connection's streams

extension Connection {
  /// Gives a stream that the client has opened its object.
  func attach(_ object: any ServerStream, to stream: UInt32) {
    if let former = session.object(stream) { count(former.kind, -1) }
    session.attach(object, to: stream)
    count(object.kind, 1)
  }

  /// Ends what serves a stream, if anything does.
  func releaseStream(_ stream: UInt32) {
    guard let object = session.object(stream) else { return }
    object.release()
    session.detach(stream)
    count(object.kind, -1)
  }

  /// Ends a stream on the broker's side. Its object goes first: what that gives back to its topic is in the session's table until the stream has ended.
  func endStream(_ stream: UInt32) {
    releaseStream(stream)
    session.ended(stream)
  }

  /// What serves a stream, if that is of this type.
  func object<S: ServerStream>(_ type: S.Type, on stream: UInt32) -> S? {
    session.object(stream) as? S
  }
}
