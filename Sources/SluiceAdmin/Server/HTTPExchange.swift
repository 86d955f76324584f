import SluiceIO

/// A connection of the admin listener, and the request that it is about at present. Belongs to the loop.
@safe
final class HTTPExchange {
  enum Phase {
    /// The head of a request is awaited.
    case head
    /// The broker is asked.
    case asking
    /// A response is under way.
    case sending
    /// Events are, for ever.
    case streaming
  }

  let connection: OpaquePointer
  private(set) var phase = Phase.head
  private(set) var since: MonotonicTime
  /// Counts the connection's requests, so that an answer that comes too late isn't taken for the next one's.
  private(set) var number = 0
  var target = ""
  /// What was found for the present request.
  var reply: Reply?
  /// Whether the library has been told to leave the connection alone for now.
  var isSuspended = false

  init(_ connection: OpaquePointer, at now: MonotonicTime) {
    unsafe self.connection = connection
    since = now
  }

  func enter(_ phase: Phase, at now: MonotonicTime) {
    self.phase = phase
    since = now
  }

  /// The request has been dealt with; the next one may come.
  func next(at now: MonotonicTime) {
    number += 1
    reply = nil
    target = ""
    enter(.head, at: now)
  }
}
