import SluiceIO
import SluiceWire

/// A stream's view of its connection. On the connection's loop.
protocol StreamTransport: AnyObject {
  /// The time since which the client hasn't read any of the pending output; nil when none is pending.
  var blockedSince: MonotonicTime? { get }
  /// The reason why the client doesn't get pending output; nil if it isn't known.
  var obstacle: StreamObstacle? { get }

  /// Writes the queued output of the streams at the end of this turn.
  func makeReady()
  /// Counts a change of the bytes that streams buffer for the client besides ``StreamMultiplexer/answers``.
  func held(_ change: Int)
  /// Sends an error to the client and closes the connection.
  func fail(_ error: WireError)
  /// Writes acknowledgements and grants at the end of this turn, after connections with records, for which subscribers wait.
  func makeDue()
}
