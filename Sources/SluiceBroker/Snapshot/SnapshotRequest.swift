/// What a snapshot is to show, and how much of it: what is counted is of all in any case.
public struct SnapshotRequest: Hashable, Sendable {
  /// The only topic to be shown; nil for all.
  public var topic: String?
  /// The most topics to be shown: if there are more, those that had the most records. 0 for none.
  public var topics: Int
  /// The most subscriptions and publications to be listed of a topic.
  public var subscriptionsPerTopic: Int
  public var publicationsPerTopic: Int
  /// The most connections to be listed.
  public var connections: Int

  public init(
    topic: String? = nil, topics: Int = 1_000, subscriptionsPerTopic: Int = 100,
    publicationsPerTopic: Int = 100, connections: Int = 1_000
  ) {
    self.topic = topic
    self.topics = topics
    self.subscriptionsPerTopic = subscriptionsPerTopic
    self.publicationsPerTopic = publicationsPerTopic
    self.connections = connections
  }
}
