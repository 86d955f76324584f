import SluiceIO

/// What a node knows of the cluster, for commands, health checks and pages.
public struct ClusterStatus: Hashable, Sendable {
  public struct Node: Hashable, Sendable {
    public enum State: String, Hashable, Sendable {
      case live
      /// It gives its shards away before it ends.
      case leaving
      /// It lives, and an operator wants it to have no shards.
      case drained
      case ended
      /// No sign of it has come for longer than a lease, and no node has been able to end its session: it may live or not.
      case silent
    }

    public var name: String
    public var address: String
    public var version: String
    public var state: State
    /// The shards that it owns.
    public var shards: Int
    /// How long ago its last sign of life came.
    public var silence: Duration
  }

  public struct Shard: Hashable, Sendable {
    public enum State: String, Hashable, Sendable {
      case held
      case moving
      /// No node has it.
      case free
    }

    public var number: Int
    public var state: State
    /// Nil for a free one.
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
  /// The server of the engine that the node is connected to, as `name (address)`; empty before the first connection.
  public var engineServer: String
  /// Why the engine isn't good enough or can't be reached; empty if all is well.
  public var engineProblems: [String]
  /// The node uses an engine that may lose data because it was told to.
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
    if !isMember { return engineProblems.first ?? "the node hasn't joined the cluster yet" }
    if isSuspended {
      return "the lease couldn't be renewed in time; the engine answers too late or not at all"
    }
    return nil
  }
}
