import SluiceSession
import SluiceWire

/// What serves streams and requests about topics of other nodes. Belongs to a loop.
protocol TopicRouting: AnyObject {
  /// Serves what the action opens, if its topic isn't served by this node, or not yet.
  ///
  /// - Returns: false for a topic that this node serves, and for what isn't about one topic.
  /// - Throws: why the client may not do this; or ``ErrorCode/topicMoved``.
  func take(_ action: ServerAction, on streams: StreamMultiplexer) throws(WireError) -> Bool
}

/// A stream with acknowledgements and grants that are sent at the end of a turn.
protocol DueStream: ServerStream {
  /// Adds what is to be sent to the answers, if the stream still has its number.
  func settleDue()
}
