import SluiceWire

/// How a topic leaves this node.
package enum TopicDeparture: Hashable, Sendable {
  /// It accepts no more records, and is storing those that it has accepted. Its streams continue until then.
  case leaving
  /// Another node serves it, or no node at the moment.
  case moved
  case deleted

  /// Whether its streams have ended.
  var isOver: Bool { self != .leaving }

  func fault(of topic: String) -> Fault {
    switch self {
    case .leaving, .moved: .topicMoved(topic)
    case .deleted: .topicDeleted(topic)
    }
  }
}

extension Fault {
  package static func topicMoved(_ topic: String) -> Fault {
    Fault(
      code: .topicMoved,
      message: "topic \(topic) moves to another node of the cluster; open the stream again to continue there")
  }
}
