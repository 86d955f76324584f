import SluiceWire

/// How a topic leaves this node.
package enum TopicDeparture: Hashable, Sendable {
  /// It takes nothing more; what it has taken is being stored. Its streams go on until then.
  case leaving
  /// Another node serves it, or none at the moment.
  case moved
  case deleted

  /// Whether its streams are over.
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
