import SluiceTopics
import SluiceWire

extension Fault {
  /// Ends a stream that the client may open again at the node which then serves its topic.
  ///
  /// - Parameter topic: empty for a request about no topic.
  static func lostNode(_ node: RemoteNode, serving topic: String, because reason: String) -> Fault {
    let what = topic.isEmpty ? "" : ", which serves topic \(topic),"
    return Fault(
      code: .topicMoved,
      message: "the connection to node \(node.name)\(what) is lost: \(reason); open the stream again")
  }

  /// Ends a stream whose topic's node can't be reached. The client may open it again.
  ///
  /// - Parameter topic: empty for a request about all topics.
  static func unreached(_ topic: String, because reason: String) -> Fault {
    let what = topic.isEmpty ? "all topics" : "topic \(topic)"
    return Fault(code: .topicMoved, message: "\(what) can't be reached: \(reason); try again")
  }

  /// Decodes an error with which another node ends a stream, for the client. If that node is stopping, the topic moves to another one, so the code becomes
  /// `topicMoved`.
  init(relayed body: UnsafeRawBufferPointer) throws(WireError) {
    try unsafe self.init(body: body)
    if code == .shuttingDown { code = .topicMoved }
  }

  /// The encoded frame without its header.
  var encodedBody: [UInt8] { Array(encoded(stream: 0).dropFirst(FrameHeader.size)) }
}
