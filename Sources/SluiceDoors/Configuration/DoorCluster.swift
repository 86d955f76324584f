import SluiceIO

/// The cluster of a broker that has doors: what its doors need to know of the nodes.
public struct DoorCluster: Sendable {
  /// This node's name.
  public var node: String
  /// The names of the other nodes that live at that time; nil while this node doesn't know. Called from any thread, some times a second.
  public var otherNodes: @Sendable (MonotonicTime) -> Set<String>?

  public init(node: String, otherNodes: @escaping @Sendable (MonotonicTime) -> Set<String>?) {
    self.node = node
    self.otherNodes = otherNodes
  }
}
