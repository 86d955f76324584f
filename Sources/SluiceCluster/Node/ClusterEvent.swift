import SluiceIO
import SluiceNATS

/// What a node tells its broker.
public enum ClusterEvent: Sendable {
  /// The node is a member.
  case joined(session: UInt64)
  /// The node has a shard under a new term. The broker opens it and calls ``ClusterNode/opened(_:term:)``, or ``ClusterNode/closed(_:term:)`` if
  /// it can't.
  case gained(shard: Int, term: UInt64)
  /// A shard is to go to another node, or away if there is none. The broker grants no more, flushes, closes the shard's store, and calls
  /// ``ClusterNode/closed(_:term:)``. Its topics are ``ClusterRoute/moving``.
  case closing(shard: Int, term: UInt64, successor: String?)
  /// A shard has another owner or none. The broker stops at once: nothing of this term is stored any more.
  case lost(shard: Int, term: UInt64)
  /// The lease couldn't be renewed in time, and another node may have the shards. What the engine has confirmed may be acknowledged and delivered,
  /// since the engine refuses a former owner; nothing else may.
  case suspended
  /// The lease was held all the time: everything goes on.
  case resumed
  /// Another node has ended this one's session, because it was silent for too long or had left. The node joins again by itself.
  case expelled(by: String?)
  /// Nodes or owners of shards have changed. Without shards only the other nodes that live have, or their addresses.
  case directoryChanged(shards: [Int])
  /// This node has opened a shard; for logs.
  case takenOver(TakeOver)
  /// The cluster has another number of shards than this node was to make one with, and keeps it.
  case shardsKept(Int, wanted: Int)
  /// The engine would lose data or can't be asked: the sentences say why. The node doesn't join.
  case refused([String])
  /// The connection to the engine.
  case engineConnected(server: String)
  case engineInterrupted(NATSError)
  /// The node has left, after ``ClusterNode/leave()``.
  case left
}

/// How a shard came to this node.
public struct TakeOver: Hashable, Sendable, CustomStringConvertible {
  public enum Cause: Hashable, Sendable, CustomStringConvertible {
    /// No node has ever had it.
    case first
    /// The owner gave it away.
    case handedOver(from: String)
    /// The owner's session was ended, by this node or another one.
    case died(String)

    public var description: String {
      switch self {
      case .first: "first owner"
      case .handedOver(let node): "handed over by \(node)"
      case .died(let node): "\(node) was silent for too long"
      }
    }
  }

  public var shard: Int
  public var term: UInt64
  public var cause: Cause
  /// From the last sign of the former owner, or from the beginning of the hand-over, until the broker has opened the shard.
  public var duration: Duration

  public var description: String {
    "took shard \(shard) over in \(duration.clampedNanoseconds / 1_000_000) ms (term \(term)): \(cause)"
  }
}

/// How a topic is reached.
public enum ClusterRoute: Hashable, Sendable {
  /// This node owns the topic's shard, and its broker has opened it.
  case local(term: UInt64)
  case remote(node: String, address: String, term: UInt64)
  /// The shard has no owner at present, or its owner opens or closes it: to be tried again within milliseconds or seconds.
  case moving
}
