import SluiceIO

/// A node's knowledge of the cluster, for commands, health checks and pages.
public struct ClusterStatus: Hashable, Sendable {
  public struct Node: Hashable, Sendable {
    public enum State: String, Hashable, Sendable {
      case live
      /// It hands over its shards before it ends.
      case leaving
      /// It is live, and an operator wants it to have no shards.
      case drained
      /// It is live, and owns no shards until another node has reached it at its address.
      case unreached
      case ended
      /// No message of it has arrived for longer than a lease, and no node has been able to end its session: it may be live or not.
      case silent
    }

    public var name: String
    public var address: String
    public var version: String
    public var state: State
    /// The shards that it owns.
    public var shards: Int
    /// The time since its last message.
    public var silence: Duration
    /// Why this node, or any other one, can't reach it, in a sentence; nil if it can be reached, or that isn't known.
    public var problem: String?
  }

  public struct Shard: Hashable, Sendable {
    public enum State: String, Hashable, Sendable {
      case held
      case moving
      /// No node owns it.
      case free
    }

    public var number: Int
    public var state: State
    /// Nil for a free shard.
    public var owner: String?
    public var term: UInt64
    /// The node that it belongs to; nil without nodes.
    public var target: String?
    public var pin: String?
  }

  /// This node's name.
  public var name: String
  public var isMember: Bool
  /// The lease couldn't be renewed in time.
  public var isSuspended: Bool
  public var isEngineConnected: Bool
  /// The server of the engine to which the node is connected, as `name (address)`; empty before the first connection.
  public var engineServer: String
  /// Why the engine is unsuitable or unreachable; empty if there is no problem.
  public var engineProblems: [String]
  /// Problems that an operator should fix although the engine still stores: servers that are lost, lag, or are nearly full.
  public var engineWarnings: [EngineWarning] = []
  /// Why the engine doesn't store, in a sentence without a full stop; empty if it does.
  public var engineObstacle = ""
  /// The copies of the stream that has lost most of them, and how many of them are complete; nil while unknown.
  public var engineCopies: Int?
  public var currentEngineCopies: Int?
  /// The address of another process with this node's name, while this one isn't a member; nil for none.
  public var nameHolder: String?
  /// Whether the node uses an engine that may lose data because its options allow that.
  public var isEngineUnsafe: Bool
  /// How long the engine took to store the last renewal; nil before the first.
  public var commitLatency: Duration?
  /// Sorted by name.
  public var nodes: [Node]
  /// In order.
  public var shards: [Shard]
  /// How long the engine took to store the commits of this node's shards.
  public var commits = CommitTimes()

  /// Why the node isn't ready to serve, in a sentence; nil if it is.
  public var unreadiness: String? {
    if !isEngineConnected {
      let why = engineProblems.first.map { ": \($0)" } ?? ""
      return "the engine can't be reached\(why)"
    }
    if !isMember {
      if let problem = engineProblems.first { return problem }
      guard let nameHolder else { return "the node hasn't joined the cluster yet" }
      return
        "the node hasn't joined the cluster: another process has the name \(name), at \(nameHolder); it joins when that has ended. Two nodes that run need two names (--node)"
    }
    if isSuspended { return "the lease couldn't be renewed in time: \(engineObstacle)" }
    return nil
  }
}
