import SluiceIO
import SluiceNATS

/// An event that a node reports to its broker.
public enum ClusterEvent: Sendable {
  /// The node is a member.
  case joined(session: UInt64)
  /// The node owns a shard under a new term. The broker opens it and calls ``ClusterNode/opened(_:term:)``, or ``ClusterNode/closed(_:term:)`` if it can't.
  case gained(shard: Int, term: UInt64)
  /// A shard moves to another node, or is given up if there is none. The broker grants no more, flushes, closes the shard's store, and calls
  /// ``ClusterNode/closed(_:term:)``. Its topics are ``ClusterRoute/moving``.
  case closing(shard: Int, term: UInt64, successor: String?)
  /// A shard has another owner or none. The broker stops at once: no changes of this term are stored any more.
  case lost(shard: Int, term: UInt64)
  /// The lease couldn't be renewed in time, and another node may own the shards. Only changes that the engine has confirmed may be acknowledged and
  /// delivered, since the engine refuses a former owner.
  case suspended
  /// The lease was held all the time: the node continues.
  case resumed
  /// Another node has ended this one's session, because it was silent for too long or had left. The node rejoins by itself.
  case expelled(by: String?)
  /// Nodes or owners of shards have changed. An empty list means that other live nodes or their addresses have.
  case directoryChanged(shards: [Int])
  /// This node has opened a shard; for logs.
  case takenOver(TakeOver)
  /// The cluster already has another number of shards than this node was to create it with, and keeps it.
  case shardsKept(Int, wanted: Int)
  /// The engine would lose data, or can't be queried: the sentences state the reasons. The node doesn't join.
  case refused([String])
  /// The connection to the engine.
  case engineConnected(server: String)
  case engineInterrupted(NATSError)
  /// The node has left, after ``ClusterNode/leave()``.
  case left
}

/// How this node came to own a shard.
public struct TakeOver: Hashable, Sendable, CustomStringConvertible {
  public enum Cause: Hashable, Sendable, CustomStringConvertible {
    /// No node has owned it before.
    case first
    /// The owner handed it over.
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
  /// From the last message of the former owner, or from the beginning of the hand-over, until the broker has opened the shard.
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
  /// The shard has no owner at present, or its owner opens or closes it: retry within milliseconds or seconds.
  case moving
}
