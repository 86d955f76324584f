import SluiceWire

/// The broker's cluster, as clients with the right to administer everything see and change it.
///
/// All functions may be called from any thread, and call back once, on any thread.
public protocol ClusterAdministration: Sendable {
  /// Passes this node's view of the cluster, with all nodes and all shards, to `body`.
  func clusterInfo(_ body: @escaping @Sendable (ClusterInfo) -> Void)

  /// Makes a node hand over its shards, or cancels that. The setting survives restarts.
  ///
  /// - Parameters:
  ///   - node: the name of the node, which may be down.
  ///   - isWanted: false to cancel.
  ///   - done: called with nil when the engine has stored the setting; otherwise with the reason as a sentence.
  func drain(_ node: String, _ isWanted: Bool, _ done: @escaping @Sendable (String?) -> Void)

  /// Makes a node own a shard while the node is alive, or cancels that. The setting survives restarts.
  ///
  /// - Parameters:
  ///   - shard: the number of an existing shard.
  ///   - node: the name of the node, which may be down; nil to cancel.
  ///   - done: called with nil when the engine has stored the setting; otherwise with the reason as a sentence.
  func pin(_ shard: Int, to node: String?, _ done: @escaping @Sendable (String?) -> Void)
}
