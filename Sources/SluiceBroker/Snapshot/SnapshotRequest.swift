/// The contents of a snapshot and limits on its lists. Counts always include all objects.
public struct SnapshotRequest: Hashable, Sendable {
  /// The only topic to list; nil for all.
  public var topic: String?
  /// The most topics to list: if the broker has more, those with the most records. 0 for none.
  public var topics: Int
  /// The most subscriptions, and the most publications, to list for a topic.
  public var subscriptionsPerTopic: Int
  public var publicationsPerTopic: Int
  /// The most connections to list.
  public var connections: Int
  /// The most durable cursors, and the most groups, to list for a topic; 0 to skip them. The time to list them grows with their number.
  public var consumersPerTopic: Int
  /// The most durable cursors to list for a topic; nil for ``consumersPerTopic``.
  public var cursorsPerTopic: Int?
  /// Selects the listed connections, durable cursors and groups by their texts; see ``SnapshotFilter``.
  public var filter = SnapshotFilter("")

  public init(
    topic: String? = nil, topics: Int = 1_000, subscriptionsPerTopic: Int = 100,
    publicationsPerTopic: Int = 100, connections: Int = 1_000, consumersPerTopic: Int = 0
  ) {
    self.topic = topic
    self.topics = topics
    self.subscriptionsPerTopic = subscriptionsPerTopic
    self.publicationsPerTopic = publicationsPerTopic
    self.connections = connections
    self.consumersPerTopic = consumersPerTopic
  }
}
