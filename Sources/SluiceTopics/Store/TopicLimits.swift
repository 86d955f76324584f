/// What the topics of a broker may take.
package struct TopicLimits: Sendable {
  /// Topics at a time, and those that one connection has made.
  package var topics = Int.max
  package var topicsPerConnection = Int.max
  /// Subscriptions to patterns at a time.
  package var patterns = Int.max
  /// How many records a producer may send ahead of its grant.
  package var producerWindow: UInt64 = 65_536
  /// Producers that a topic remembers, and how long it remembers detached ones.
  package var producers = 10_000
  package var producerMemory: Duration = .seconds(86_400)
  /// Durable cursors and groups of a topic together, and how long it remembers unused ones.
  package var cursors = 10_000
  package var cursorMemory: Duration = .seconds(7 * 86_400)
  /// Records that a group with explicit acknowledgement may have under way.
  package var groupRecords = 65_536
  /// The longest record, in bytes of its body.
  package var record = 1 << 20
  /// The time without attached streams after which a topic with `TopicSettings.autoDelete` is deleted.
  package var autoDeleteTime: Duration = .seconds(10)
  /// Bytes that may wait for the disk, of one topic and of all.
  package var topicBacklog = 16 << 20
  package var storageBacklog = 256 << 20
  /// Bytes of stored records in memory for subscribers that catch up.
  package var catchUpMemory = 256 << 20

  package init() {}
}
