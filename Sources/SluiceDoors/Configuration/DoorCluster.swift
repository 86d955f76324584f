import SluiceIO

/// The cluster of a broker with gateways, as far as the gateways need it.
public struct DoorCluster: Sendable {
  /// This node's name.
  public var node: String
  /// Returns the names of the other nodes that are alive at that time; nil while this node can't determine them. Called from any thread, several times a
  /// second.
  public var otherNodes: @Sendable (MonotonicTime) -> Set<String>?

  public init(node: String, otherNodes: @escaping @Sendable (MonotonicTime) -> Set<String>?) {
    self.node = node
    self.otherNodes = otherNodes
  }
}
