import SluiceTopics
import SluiceWire

/// The topics of a subscription to a pattern that other nodes of the cluster serve. Belongs to the subscription's loop.
///
/// They share the subscription's demand, its numbers, and its turn among ready subscriptions.
protocol RemoteTopics: AnyObject {
  /// Whether each node has sent the list of its topics.
  var hasBegun: Bool { get }
  /// The number of topics.
  var count: Int { get }
  /// The part of the subscription's demand that other nodes may use, or have used for records that aren't written yet.
  var reserved: UInt64 { get }
  /// Whether frames of other nodes wait to be written.
  var hasWaiting: Bool { get }
  /// The number of the last written frame, for ``take(_:)``.
  var written: UInt64 { get }

  /// Subscribes at the other nodes.
  ///
  /// - Parameter shards: the shards whose topics the subscription joins at this node.
  func begin(_ pattern: PatternStream, _ shards: ShardSet)
  /// Called when the subscriber has requested more.
  func demandChanged()
  /// Writes the next frames.
  func write(into writes: WriteBatch, _ frames: inout PatternFrames) -> RemoteFrames
  /// Called at the end of a turn.
  ///
  /// - Parameters:
  ///   - isUsed: whether topics of this node have used some of the demand.
  ///   - waits: whether they have more records than demand.
  func turnEnded(isUsed: Bool, waits: Bool)

  /// Takes over a topic that moves from this node to another one.
  ///
  /// - Parameters:
  ///   - position: the subscriber's position in the topic.
  ///   - number: the topic's number for the subscriber; 0 for none.
  func left(_ position: TopicPosition, number: UInt32) throws(WireError)
  /// Releases a topic that this node now serves.
  ///
  /// - Returns: the subscriber's position in it, and the number of the last frame that has to be written before; nil for an unknown topic.
  func take(_ name: String) -> (position: TopicPosition, after: UInt64)?

  /// Called when the client's permissions have changed.
  func reconsider()
  func release()
}

/// Frames of other nodes that were written.
enum RemoteFrames: Hashable {
  case none
  /// With that many records.
  case written(records: UInt64)
  /// The last frame of the stream.
  case end
}
