/// What a snapshot lists, and how much of it. Counts are always of all.
public struct SnapshotRequest: Hashable, Sendable {
  /// The only topic to list; nil for all.
  public var topic: String?
  /// The most topics to list: if the broker has more, those that had the most records. 0 for none.
  public var topics: Int
  /// The most subscriptions, and the most publications, to list for a topic.
  public var subscriptionsPerTopic: Int
  public var publicationsPerTopic: Int
  /// The most connections to list.
  public var connections: Int
  /// The most durable cursors, and the most groups, to list for a topic; 0 doesn't look at them. Looking takes time by the number of them.
  public var consumersPerTopic: Int
  /// The most durable cursors to list for a topic, where that is another number than of groups.
  public var cursorsPerTopic: Int?
  /// Connections, durable cursors and groups that are listed have it in their texts; see ``SnapshotFilter``.
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
