import SluiceTopics
import SluiceWire

extension Fault {
  /// For a stream that goes on at the node which serves its topic by then.
  ///
  /// - Parameter topic: empty for a request about no topic.
  static func lostNode(_ node: RemoteNode, serving topic: String, because reason: String) -> Fault {
    let what = topic.isEmpty ? "" : ", which serves topic \(topic),"
    return Fault(
      code: .topicMoved,
      message: "the connection to node \(node.name)\(what) is lost: \(reason); open the stream again")
  }

  /// For a stream whose topic's node can't be reached, and that may be opened again.
  ///
  /// - Parameter topic: empty for a request about all topics.
  static func unreached(_ topic: String, because reason: String) -> Fault {
    let what = topic.isEmpty ? "all topics" : "topic \(topic)"
    return Fault(code: .topicMoved, message: "\(what) can't be reached: \(reason); try again")
  }

  /// The error with which another node ends a stream, as the client is told. A stream on a node that is stopping goes on elsewhere.
  init(relayed body: UnsafeRawBufferPointer) throws(WireError) {
    try unsafe self.init(body: body)
    if code == .shuttingDown { code = .topicMoved }
  }

  /// The frame without its header.
  var encodedBody: [UInt8] { Array(encoded(stream: 0).dropFirst(FrameHeader.size)) }
}
