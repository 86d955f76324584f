import SluiceSession
import SluiceWire

/// Serves streams and requests about topics of other nodes. Belongs to a loop.
protocol TopicRouting: AnyObject {
  /// Serves the stream or request that the action opens, if this node doesn't serve its topic, or not yet.
  ///
  /// - Returns: false for a topic that this node serves, and for an action that isn't about a single topic.
  /// - Throws: the reason why the client may not do this; or ``ErrorCode/topicMoved``.
  func take(_ action: ServerAction, on streams: StreamMultiplexer) throws(WireError) -> Bool
}

/// A stream with acknowledgements and grants that are sent at the end of a turn.
protocol DueStream: ServerStream {
  /// Adds the due frames to the answers, if the stream still has its number.
  func settleDue()
}
