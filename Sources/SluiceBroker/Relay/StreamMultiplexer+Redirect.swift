import SluiceSession
import SluiceTopics
import SluiceWire

extension StreamMultiplexer {
  /// Sends the client to the node that serves the topic of a stream, if the client goes to nodes by itself. Ends the stream here then.
  ///
  /// For a subscription to one topic, or a publication, before SUBSCRIBED or PUBLISH_OPENED. Others are to be served by this node, by way of the other.
  ///
  /// - Returns: whether it was sent there.
  func redirect(_ stream: UInt32, to node: RemoteNode) -> Bool {
    guard session.mayRedirect(stream) else { return false }
    endStream(stream)
    send(Redirect(node: node.name, address: node.address), stream: stream)
    return true
  }
}
