import SluiceBroker
import SluiceStore
import SluiceWire

/// A node's view of its cluster, and its counters since its start.
public struct ClusterSnapshot: Hashable, Sendable {
  /// The reason why a node takes a shard over.
  public enum Cause: String, Hashable, Sendable, CaseIterable {
    /// The shard has had no owner before.
    case first
    /// The owner handed it over.
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
    /// The time from the last heartbeat of the former owner, or from the beginning of the hand-over, until clients could use the shard's topics.
    public var milliseconds: UInt64
    /// The time of opening, in milliseconds since 1970.
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

  /// The times in which the engine stored commits of a shard that this node owns, since the node has opened the shard.
  public struct Commits: Hashable, Sendable {
    public var count: UInt64
    /// A moving average that favours the latest commits, in nanoseconds.
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
  /// Take-overs by cause, and by duration, with one count for each of ``bounds``.
  public var causes: [Cause: UInt64]
  public var durations: [UInt64]
  /// The total duration of all take-overs, in milliseconds.
  public var totalMilliseconds: UInt64
  /// Shards that this node has begun to hand over to other nodes.
  public var handedOver: UInt64
  /// Shards that it has lost to another node, or with its lease.
  public var lost: UInt64
  /// How often the lease couldn't be renewed in time.
  public var suspensions: UInt64
  /// How often other nodes have ended its session.
  public var expulsions: UInt64
  /// How often the connection to the engine was lost.
  public var interruptions: UInt64
  /// The copies that the engine stores, and those that are up to date; nil if that isn't known.
  public var engineCopies: Int?
  public var currentEngineCopies: Int?
  /// By the numbers of the shards that this node owns and has stored commits of.
  public var commits: [Int: Commits] = [:]
  /// The upper bounds of the histogram of commits, in nanoseconds, and the count for each.
  public var commitBounds: [UInt64] = [.max]
  public var commitCounts: [UInt64] = [0]
  /// The total time of all commits, in nanoseconds.
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

  /// The number of take-overs.
  public var takeOvers: UInt64 { causes.values.reduce(0, +) }

  /// Shards that this node owns.
  public var owned: Int { info.shards.count { $0.owner == info.name } }
}

extension ClusterInfo {
  /// The node that owns a topic's shard, if that isn't this node; nil also if no known node owns it.
  func otherOwner(of topic: String) -> Node? {
    guard shardCount > 0 else { return nil }
    let number = UInt32(ShardHash.shard(of: topic, of: Int(shardCount)))
    guard let shard = shards.first(where: { $0.number == number }), shard.owner != name else { return nil }
    return nodes.first { $0.name == shard.owner }
  }
}
