import SluiceIO

/// What is known of a node.
struct NodeEntry: Hashable, Sendable {
  /// The sequence of the last message on its subject that this node has seen; the engine may have removed it and later ones.
  var sequence: UInt64
  var record: NodeRecord
  /// When that message came first, by this node's clock.
  var heard: MonotonicTime
  /// When the node itself was last heard.
  var lastSign: MonotonicTime
  /// When the node's present process was first heard.
  var since: MonotonicTime

  var isLive: Bool { record.state != .ended }
  /// Where the node is reached; nil when it has ended.
  var liveAddress: String? { isLive ? record.address : nil }
}

/// What is known of a shard.
struct ShardEntry: Hashable, Sendable {
  var sequence: UInt64
  var record: ShardRecord?
  var heard: MonotonicTime
}
