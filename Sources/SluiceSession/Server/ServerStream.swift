import SluiceWire

/// The object that serves one open stream of a connection, from its beginning to its end. It is in the session's table, and belongs to the
/// connection's loop.
package protocol ServerStream: AnyObject {
  var kind: StreamKind { get }

  /// The client asks for records up to a total of `granted`.
  func demand(through granted: UInt64)

  /// Another node of the cluster may be sent so many of its client's records.
  func lend(_ loan: Lend) throws(WireError)

  /// The client has dealt with the records before `offset`.
  func commit(through offset: UInt64) throws(WireError)

  /// The client says what became of records that it was given out.
  func settle(_ frame: Settle) throws(WireError)

  /// Takes a batch that the session has checked. It is valid during the call only. For publications.
  ///
  /// - Parameter isAwaited: whether the producer waits for the acknowledgement, which may otherwise come with a later one.
  func append(_ count: UInt32, _ batch: UnsafeRawBufferPointer, isAwaited: Bool)

  /// The producer ends its topic. For publications.
  func complete(_ ending: Complete.Ending)

  /// The client cancels the stream.
  ///
  /// - Returns: whether the stream has ended; otherwise it sends CANCELLED itself, later.
  func cancel() -> Bool

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

extension ServerStream {
  package func demand(through granted: UInt64) {}
  package func commit(through offset: UInt64) throws(WireError) {}
  package func append(_ count: UInt32, _ batch: UnsafeRawBufferPointer, isAwaited: Bool) {}
  package func complete(_ ending: Complete.Ending) {}
  package func cancel() -> Bool { true }

  package func lend(_ loan: Lend) throws(WireError) {
    throw WireError(.unsupported, "LEND is for a node's subscriptions to patterns; this stream isn't one")
  }

  package func settle(_ frame: Settle) throws(WireError) {
    throw WireError(.unsupported, "SETTLE is for members of a group; this subscription isn't one")
  }
}

/// The kind of a stream: the broker has a limit for each kind.
package enum StreamKind {
  case subscription
  case publication
  /// A subscription that has ended, except for the last commits.
  case committing
  case request
}

/// Names one use of a stream's number. When that use ends, the token is current no more: see ``ServerSession/isCurrent(_:)``.
package struct StreamToken: Hashable, Sendable {
  package var stream: UInt32
  package var generation: UInt32
}
