import SluiceIO

/// A node's last record, and when it was received.
struct NodeEntry: Hashable, Sendable {
  /// The sequence of the last message on its subject that this node has received; the engine may have removed it and later ones.
  var sequence: UInt64
  var record: NodeRecord
  /// When that message was first received, by this node's clock.
  var heard: MonotonicTime
  /// When a message of the node itself was last received.
  var lastSign: MonotonicTime
  /// When a message of the node's present process was first received.
  var since: MonotonicTime

  var isLive: Bool { record.state != .ended }
  /// The node's address; nil if it has ended.
  var liveAddress: String? { isLive ? record.address : nil }
}

/// A shard's last record, and when it was received.
struct ShardEntry: Hashable, Sendable {
  var sequence: UInt64
  var record: ShardRecord?
  var heard: MonotonicTime
}
