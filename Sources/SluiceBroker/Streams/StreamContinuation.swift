import SluiceIO
import SluiceSession
import SluiceTopics
import SluiceWire

/// How a stream waits for what ends elsewhere: a commit, an answer of the store, the loss of its cursor or number to another client.
struct StreamContinuation: Sendable {
  let connection: ConnectionReference
  let token: StreamToken

  /// Calls `body` on the connection's loop, unless the stream or the connection is over by then. From any thread.
  func resume(_ body: @escaping @Sendable (Connection) -> Void) {
    connection.execute { [token] connection in
      if connection.session.isCurrent(token) { body(connection) }
    }
  }

  /// Calls `body` with the stream's object. Otherwise as ``resume(_:)``.
  func resume<S: ServerStream & SendableMetatype>(_ body: @escaping @Sendable (S) -> Void) {
    resume(nil, body)
  }

  /// Calls `body` with the stream's object when a change is on disk; ends the stream with an error when the store has refused the change. For the
  /// completion of a commit.
  func resume<S: ServerStream & SendableMetatype>(
    _ fault: Fault?, _ body: @escaping @Sendable (S) -> Void
  ) {
    let stream = token.stream
    resume { connection in
      if let fault { return connection.refuse(stream, fault) }
      if let object = connection.object(S.self, on: stream) { body(object) }
    }
  }
}

extension Connection {
  /// What resumes the present use of a stream.
  func continuation(of stream: UInt32) -> StreamContinuation {
    StreamContinuation(connection: reference, token: session.token(of: stream))
  }
}
