import SluiceIO
import SluiceWire

/// The connection under the streams, as they use it. On its loop.
protocol StreamTransport: AnyObject {
  /// Since when the client hasn't read anything of what was sent and waits; nil when nothing waits.
  var blockedSince: MonotonicTime? { get }
  /// What keeps from the client what waits; nil where that isn't known.
  var obstacle: StreamObstacle? { get }

  /// Has what the streams queued written at the end of this turn.
  func makeReady()
  /// Counts a change of the bytes that streams hold for the client besides ``StreamMultiplexer/answers``.
  func held(_ change: Int)
  /// Sends an error to the client and closes the connection.
  func fail(_ error: WireError)
  /// Has acknowledgements and grants written after the connections with records, for which subscribers wait.
  func makeDue()
}
