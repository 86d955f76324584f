/// CLUSTER_SHOW: asks a node for what it knows of its cluster, a page at a time. Answered by ``ClusterInfo`` or ``Fault`` on the same stream.
///
/// ```
/// string after · u32 nodes · u32 first shard · u32 shards
/// ```
public struct ClusterShow: LaidOutFrame {
  public static let type = FrameType.clusterShow

  /// Only nodes whose names come after this one in byte order; empty for the first page.
  public var after: String
  /// At most so many nodes; the broker may send fewer.
  public var nodes: UInt32
  /// Only shards from this number on; 0 for the first page.
  public var firstShard: UInt32
  /// At most so many shards; the broker may send fewer.
  public var shards: UInt32

  public init(after: String = "", nodes: UInt32, firstShard: UInt32 = 0, shards: UInt32) {
    self.after = after
    self.nodes = nodes
    self.firstShard = firstShard
    self.shards = shards
  }

  public static let layout = FrameLayout(
    Self.init, Field.string("CLUSTER_SHOW after", \Self.after),
    Field.integer("CLUSTER_SHOW nodes", \Self.nodes),
    Field.integer("CLUSTER_SHOW first shard", \Self.firstShard),
    Field.integer("CLUSTER_SHOW shards", \Self.shards))
}

/// CLUSTER_DRAIN: makes a node hand its shards over to the other nodes, or undoes that. Holds over restarts. Answered by ``Done`` when the engine
/// has stored it, or ``Fault`` on the same stream.
///
/// ```
/// string node · u8 wanted (0 or 1)
/// ```
public struct ClusterDrain: LaidOutFrame {
  public static let type = FrameType.clusterDrain

  /// The node's name. It needn't live at present.
  public var node: String
  /// False takes it back.
  public var wanted: Bool

  public init(node: String, wanted: Bool) {
    self.node = node
    self.wanted = wanted
  }

  public static let layout = FrameLayout(
    Self.init, Field.name(.node, "CLUSTER_DRAIN node", \Self.node),
    Field.flag("CLUSTER_DRAIN wanted", \Self.wanted))
}

/// CLUSTER_MOVE: makes a node own a shard while the node runs, or undoes that. Holds over restarts. Answered by ``Done`` when the engine has stored
/// it, or ``Fault`` on the same stream.
///
/// ```
/// u32 shard · string node
/// ```
public struct ClusterMove: LaidOutFrame {
  public static let type = FrameType.clusterMove

  public var shard: UInt32
  /// The node's name, which needn't live at present; empty to take it back.
  public var node: String

  public init(shard: UInt32, node: String) {
    self.shard = shard
    self.node = node
  }

  public static let layout = FrameLayout(
    Self.init, Field.integer("CLUSTER_MOVE shard", \Self.shard),
    Field.name(.node, "CLUSTER_MOVE node", isOptional: true, \Self.node))
}
