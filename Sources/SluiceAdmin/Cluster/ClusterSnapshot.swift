import SluiceBroker
import SluiceStore
import SluiceWire

/// What a node knows of its cluster, and what it has counted of it since its start.
public struct ClusterSnapshot: Hashable, Sendable {
  /// How shards come to a node.
  public enum Cause: String, Hashable, Sendable, CaseIterable {
    /// No node has ever had it.
    case first
    /// The owner gave it away.
    case handedOver = "handed-over"
    /// The owner was silent for too long.
    case ownerDied = "owner-died"
  }

  /// A shard that this node has opened.
  public struct TakeOver: Hashable, Sendable {
    public var shard: Int
    public var term: UInt64
    public var cause: Cause
    /// The former owner; empty for none.
    public var from: String
    /// From the last sign of the former owner, or from the beginning of the hand-over, until clients could use the shard's topics.
    public var milliseconds: UInt64
    /// When it was opened, in milliseconds since 1970.
    public var time: Int64

    public init(
      shard: Int, term: UInt64, cause: Cause, from: String, milliseconds: UInt64, time: Int64
    ) {
      self.shard = shard
      self.term = term
      self.cause = cause
      self.from = from
      self.milliseconds = milliseconds
      self.time = time
    }
  }

  /// How long the engine took to store the commits of a shard that this node owns, since the node has opened it.
  public struct Commits: Hashable, Sendable {
    public var count: UInt64
    /// A mean in which the latest commits count most, in nanoseconds.
    public var recent: UInt64
    /// The longest time, in nanoseconds.
    public var longest: UInt64

    public init(count: UInt64, recent: UInt64, longest: UInt64) {
      self.count = count
      self.recent = recent
      self.longest = longest
    }
  }

  /// Upper bounds of the histogram of take-overs, in milliseconds.
  public static let bounds: [UInt64] = [10, 30, 100, 300, 1_000, 2_000, 3_000, 5_000, 10_000, 30_000, .max]

  /// All nodes and all shards.
  public var info: ClusterInfo
  /// Whether the node may act as the owner of its shards.
  public var isLeaseValid: Bool
  /// The newest take-overs, the latest first.
  public var recent: [TakeOver]
  /// Take-overs by cause, and by how long they took, one count for each of ``bounds``.
  public var causes: [Cause: UInt64]
  public var durations: [UInt64]
  /// All take-overs together, in milliseconds.
  public var totalMilliseconds: UInt64
  /// Shards that this node has begun to give to other nodes.
  public var handedOver: UInt64
  /// Shards that it has lost to another node, or with its lease.
  public var lost: UInt64
  /// How often the lease couldn't be renewed in time.
  public var suspensions: UInt64
  /// How often other nodes have ended its session.
  public var expulsions: UInt64
  /// How often the connection to the engine was lost.
  public var interruptions: UInt64
  /// Copies of what the engine stores, and those among them that have everything; nil while that isn't known.
  public var engineCopies: Int?
  public var currentEngineCopies: Int?
  /// By the numbers of the shards that this node owns and has stored something of.
  public var commits: [Int: Commits] = [:]
  /// Upper bounds of the histogram of commits, in nanoseconds, and how many there were up to each.
  public var commitBounds: [UInt64] = [.max]
  public var commitCounts: [UInt64] = [0]
  /// The times of all commits together, in nanoseconds.
  public var commitTotal: UInt64 = 0
  /// The links to other nodes, sorted by the nodes' names.
  public var links: [LinkSnapshot] = []

  public init(_ info: ClusterInfo, isLeaseValid: Bool) {
    self.info = info
    self.isLeaseValid = isLeaseValid
    recent = []
    causes = [:]
    durations = Array(repeating: 0, count: Self.bounds.count)
    totalMilliseconds = 0
    handedOver = 0
    lost = 0
    suspensions = 0
    expulsions = 0
    interruptions = 0
  }

  /// How many take-overs there were.
  public var takeOvers: UInt64 { causes.values.reduce(0, +) }

  /// Shards that this node owns.
  public var owned: Int { info.shards.count { $0.owner == info.name } }
}

extension ClusterInfo {
  /// The node that owns a topic's shard, if that isn't the node that tells this; nil as well while no node that is known owns it.
  func otherOwner(of topic: String) -> Node? {
    guard shardCount > 0 else { return nil }
    let number = UInt32(ShardHash.shard(of: topic, of: Int(shardCount)))
    guard let shard = shards.first(where: { $0.number == number }), shard.owner != name else { return nil }
    return nodes.first { $0.name == shard.owner }
  }
}
