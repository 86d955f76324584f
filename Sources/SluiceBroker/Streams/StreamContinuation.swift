import SluiceIO
import SluiceLog
import SluiceSession
import SluiceTopics
import SluiceWire

/// Resumes a stream after an operation elsewhere: a commit, an answer of the store, or the loss of its cursor or producer ID to another client.
struct StreamContinuation: Sendable {
  let reference: StreamReference
  let token: StreamToken

  /// Calls `body` on the connection's loop, unless the stream or the connection has ended by then. From any thread.
  func resume(_ body: @escaping @Sendable (StreamMultiplexer) -> Void) {
    reference.execute { [token] streams in
      if streams.session.isCurrent(token) { body(streams) }
    }
  }

  /// Calls `body` with the stream's object. Otherwise like ``resume(_:)``.
  func resume<S: ServerStream & SendableMetatype>(_ body: @escaping @Sendable (S) -> Void) {
    resume(nil, body)
  }

  /// Calls `body` with the stream's object when a change is on disk; ends the stream with an error if the store has rejected the change. For the completion
  /// of a commit.
  func resume<S: ServerStream & SendableMetatype>(
    _ fault: Fault?, _ body: @escaping @Sendable (S) -> Void
  ) {
    let stream = token.stream
    resume { streams in
      if let fault { return streams.refuse(stream, fault) }
      if let object = streams.object(S.self, on: stream) { body(object) }
    }
  }
}

extension Topic {
  /// Looks up the start of a subscription or cursor if only the store can find it, and then calls `body`, unless the stream has ended by then.
  ///
  /// - Returns: whether the look-up has begun; if not, `body` isn't called.
  func findStart(
    _ start: Subscribe.Start, _ continuation: @autoclosure () -> StreamContinuation,
    _ body: @escaping @Sendable (StreamMultiplexer, Subscribe.Start) -> Void
  ) -> Bool {
    guard case .time(let time) = start, let storage, epoch.needsStore(for: .time(time)) else { return false }
    let continuation = continuation()
    storage.service.find(time, in: storage) { offset in
      continuation.resume { body($0, .offset(offset)) }
    }
    return true
  }
}
