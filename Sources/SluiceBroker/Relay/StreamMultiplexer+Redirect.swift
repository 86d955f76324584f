import SluiceSession
import SluiceTopics
import SluiceWire

extension StreamMultiplexer {
  /// Redirects a client that follows redirects to the node that serves the topic of a stream, and ends the stream here.
  ///
  /// Only for a subscription to one topic, or a publication, before SUBSCRIBED or PUBLISH_OPENED. This node relays other streams.
  ///
  /// - Returns: whether the client was redirected.
  func redirect(_ stream: UInt32, to node: RemoteNode) -> Bool {
    guard session.mayRedirect(stream) else { return false }
    endStream(stream)
    send(Redirect(node: node.name, address: node.address), stream: stream)
    return true
  }
}
