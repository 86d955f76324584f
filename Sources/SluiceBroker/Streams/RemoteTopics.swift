import SluiceTopics
import SluiceWire

/// The topics of a subscription to a pattern that other nodes of the cluster serve. Belongs to the subscription's loop.
///
/// They share the subscription's demand, its numbers, and its place among those that are ready.
protocol RemoteTopics: AnyObject {
  /// Whether each node has told which topics there are.
  var hasBegun: Bool { get }
  /// How many topics there are.
  var count: Int { get }
  /// Of the subscription's demand, the records that other nodes may send, or have sent and that aren't written yet.
  var reserved: UInt64 { get }
  /// Whether frames of other nodes are to be written.
  var hasWaiting: Bool { get }
  /// The number of the last frame that was written, for ``take(_:)``.
  var written: UInt64 { get }

  /// Asks the other nodes.
  ///
  /// - Parameter shards: those whose topics the subscription joins at this node.
  func begin(_ pattern: PatternStream, _ shards: ShardSet)
  /// The subscriber has asked for more.
  func demandChanged()
  /// Writes the next frames.
  func write(into writes: WriteBatch, _ frames: inout PatternFrames) -> RemoteFrames
  /// A turn is over.
  ///
  /// - Parameters:
  ///   - isUsed: whether topics of this node have used some of the demand.
  ///   - waits: whether they have records, and nothing is left for them.
  func turnEnded(isUsed: Bool, waits: Bool)

  /// A topic that was this node's moves.
  ///
  /// - Parameters:
  ///   - position: where its subscriber is in it.
  ///   - number: the number by which the subscriber knows it; 0 for none.
  func left(_ position: TopicPosition, number: UInt32) throws(WireError)
  /// A topic is this node's from now on.
  ///
  /// - Returns: where its subscriber is in it, and the number of the last frame that has to be written before; nil for a topic that wasn't there.
  func take(_ name: String) -> (position: TopicPosition, after: UInt64)?

  /// The client's permissions have changed.
  func reconsider()
  func release()
}

/// Frames of other nodes that were written.
enum RemoteFrames: Hashable {
  case none
  /// With so many records.
  case written(records: UInt64)
  /// The last frame of the stream.
  case end
}
