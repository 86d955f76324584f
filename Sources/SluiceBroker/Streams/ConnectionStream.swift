import SluiceWire

/// What serves one open stream of a connection, from its beginning to its end. It is in the session's table, and belongs to the connection's loop.
protocol ConnectionStream: AnyObject {
  var kind: StreamKind { get }

  /// Gives up what the stream has of its topic. Called once, when the stream ends for whatever reason.
  func release()

  /// Checks the client's new permissions as if the stream began now.
  ///
  /// - Throws: the error that ends the stream.
  func reconsider() throws(WireError)

  /// Whether the client has what it may still have of the stream while the broker drains.
  ///
  /// - Parameter isPatient: whether a client that could ask for more is waited for.
  func isDrained(isPatient: Bool) -> Bool
}

/// What a stream counts as: see ``BrokerLimits``.
enum StreamKind {
  case subscription
  case publication
  /// A subscription that is over, but for the last commits.
  case committing
  case request
}

/// A subscription that waits for the store before it begins.
final class PendingSubscription: ConnectionStream {
  var kind: StreamKind { .subscription }
  func release() {}
  func reconsider() throws(WireError) {}
  func isDrained(isPatient: Bool) -> Bool { true }
}

/// A subscription with a durable cursor that was sent the last frame of its stream. Its subscriber hasn't dealt with the last records then, and commits
/// them when it has: up to when it uses the stream's number for something else.
final class CommittingStream: ConnectionStream {
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
  func attach(_ object: any ConnectionStream, to stream: UInt32) {
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

  /// What serves a stream, if that is of this type.
  func object<S: ConnectionStream>(_ type: S.Type, on stream: UInt32) -> S? {
    session.object(stream) as? S
  }
}
