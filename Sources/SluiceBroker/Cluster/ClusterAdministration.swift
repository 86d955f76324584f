import SluiceWire

/// The cluster that a broker is a node of, as clients with the right to administer everything see and change it.
///
/// All of it is called from any thread, and calls back on any thread, once.
public protocol ClusterAdministration: Sendable {
  /// What this node knows: all nodes and all shards.
  func clusterInfo(_ body: @escaping @Sendable (ClusterInfo) -> Void)

  /// Has a node give its shards away, or takes that back. Holds over restarts.
  ///
  /// - Parameters:
  ///   - node: the node's name, which needn't live at present.
  ///   - isWanted: false takes it back.
  ///   - done: gets nil when the engine has stored it, or why it hasn't, in a sentence.
  func drain(_ node: String, _ isWanted: Bool, _ done: @escaping @Sendable (String?) -> Void)

  /// Has a node own a shard as long as it lives, or takes that back. Holds over restarts.
  ///
  /// - Parameters:
  ///   - shard: the shard's number, which exists.
  ///   - node: the node's name, which needn't live at present; nil takes it back.
  ///   - done: gets nil when the engine has stored it, or why it hasn't, in a sentence.
  func pin(_ shard: Int, to node: String?, _ done: @escaping @Sendable (String?) -> Void)
}
