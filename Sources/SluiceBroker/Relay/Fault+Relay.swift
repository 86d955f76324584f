import SluiceTopics
import SluiceWire

extension Fault {
  /// For a stream that goes on at the node which serves its topic by then.
  static func moved(_ topic: String, from node: RemoteNode? = nil, because reason: String? = nil) -> Fault {
    guard let node, let reason else {
      return Fault(
        code: .topicMoved, message: "another node serves topic \(topic) now; open the stream again")
    }
    return Fault(
      code: .topicMoved,
      message: """
        the connection to node \(node.name), which serves topic \(topic), is lost: \(reason); open the stream again
        """)
  }

  /// The error with which another node ends a stream, as the client is told. A stream on a node that is stopping goes on elsewhere.
  init(relayed body: UnsafeRawBufferPointer) throws(WireError) {
    try unsafe self.init(body: body)
    if code == .shuttingDown { code = .topicMoved }
  }

  /// The frame without its header.
  var encodedBody: [UInt8] { Array(encoded(stream: 0).dropFirst(FrameHeader.size)) }
}
