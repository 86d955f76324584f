import SluiceIO
import SluiceWire

/// The connection under the streams, as they use it. On its loop.
protocol StreamTransport: AnyObject {
  /// Whether the client doesn't read what it was sent.
  var isBlocked: Bool { get }

  /// Has what the streams queued written at the end of this turn.
  func makeReady()
  /// Has acknowledgements and grants written after the connections with records, for which subscribers wait.
  func makeDue()
}
